import type { Instant } from "../../kernel/clock.ts";
import type { Effect } from "./definition.ts";
import type { EmailContent } from "./email-content.ts";

/**
 * What an effect speaks of, written down with it when its run succeeded: sent again, it says the same to the letter.
 * Ids are as people see them, instants epoch ms.
 */
export type EffectFacts = {
  schedule: { id: string; name: string } | null;
  job: string;
  run: { id: string; scheduledAt: Instant; finishedAt: Instant; attempt: number };
  result: {
    sha256: string;
    size: number;
    mediaType: string;
    /** Until when (epoch s) a link to it works; see linkExpiryOf. */
    linkExpires: number;
  } | null;
};

/** What is kept of an effect for as long as it exists. */
export type EffectRequest = {
  effect: Effect;
  facts: EffectFacts;
  /** What an email says, as it was accepted; absent of those that an older program wrote down. */
  content?: EmailContent;
};

export function hasExpiredLink({ result }: EffectFacts, nowAt: Instant): boolean {
  return result !== null && result.linkExpires * 1000 <= nowAt;
}

/** The stable name of this effect of this run, for ever: Message-ID and idempotency key are made of it. */
export function actionIdOf(effectName: string, shownRunId: string): string {
  return `${effectName}-${shownRunId}`;
}
