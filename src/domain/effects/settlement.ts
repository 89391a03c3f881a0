import type { Instant } from "../../kernel/clock.ts";
import { decideRetry, type Failure } from "../retry.ts";
import { type Effect, idempotencyWindowMs } from "./definition.ts";
import type { EffectState, SendOutcome } from "./states.ts";

/** What a sender knows of its attempt. */
export type SendReport =
  | { kind: "sent"; externalId: string | null; message: string | null }
  /** It did not happen, and the other side said so. */
  | { kind: "refused"; transient: boolean; message: string; retryAfterMs?: number | undefined }
  /** It may have happened. */
  | { kind: "unknown"; message: string; retryAfterMs?: number | undefined }
  /** Nothing was tried. */
  | { kind: "not-sent"; message: string };

/** Of an effect that a recovery leaves in doubt. */
export const MAY_BE_LOST = "it may have been sent in commits that are lost";

/** An effect as far as it decides what becomes of it. `budgetAttempts` counts the attempt in question. */
export type EffectStanding = {
  state: EffectState;
  effect: Effect;
  nextAttemptAt: Instant;
  firstSentAt: Instant | null;
  /** An attempt of this budget may have happened; `doubtedBefore`: one before a person's resend. */
  inDoubt: boolean;
  doubtedBefore: boolean;
  budgetAttempts: number;
  budgetFrom: Instant;
};

export type Settlement =
  | { state: "sent" }
  | { state: "pending"; nextAttemptAt: Instant; inDoubt: boolean }
  | { state: "uncertain" }
  | { state: "failed" }
  | { state: "resolved"; resolution: "dropped" };

/** What becomes of a sending effect, now that its sender (or nobody, any more) has spoken. */
export function decideSettlement(
  standing: EffectStanding,
  report: SendReport,
  nowAt: Instant,
  chance: number,
): Settlement {
  const { effect, inDoubt } = standing;
  switch (report.kind) {
    case "sent":
      return { state: "sent" };
    case "not-sent":
      return { state: "pending", nextAttemptAt: nowAt, inDoubt };
    case "refused": {
      const retry = retryOf(standing, report, nowAt, chance);
      if (retry !== undefined) return { state: "pending", nextAttemptAt: retry, inDoubt };
      // This attempt did not happen; an earlier one may have.
      return inDoubt || standing.doubtedBefore ? givenUp(effect) : { state: "failed" };
    }
    case "unknown": {
      const retry = retryOf(standing, { ...report, transient: true }, nowAt, chance);
      if (retry !== undefined && (isKeyKnown(standing, retry) || effect.onUncertain === "resend")) {
        return { state: "pending", nextAttemptAt: retry, inDoubt: true };
      }
      return givenUp(effect);
    }
  }
}

/** What becomes of an effect of which nobody knows, and which may not be sent again. */
function givenUp(effect: Effect): Settlement {
  return effect.onUncertain === "drop" ? { state: "resolved", resolution: "dropped" } : { state: "uncertain" };
}

/** Whether the other side, if an attempt has reached it, knows the key again. */
export function isKeyKnown({ effect, firstSentAt }: EffectStanding, atInstant: Instant): boolean {
  return firstSentAt !== null && atInstant < firstSentAt + idempotencyWindowMs(effect);
}

function retryOf(
  standing: EffectStanding,
  failure: Pick<Failure, "transient" | "message" | "retryAfterMs">,
  nowAt: Instant,
  chance: number,
): Instant | undefined {
  const spent = { attempts: standing.budgetAttempts, budgetFrom: standing.budgetFrom };
  const decision = decideRetry({ ...failure, code: "" }, standing.effect.retry, spent, nowAt, chance);
  return decision.kind === "retry" ? decision.notBefore : undefined;
}

export type SendDecision = { kind: "send" } | { kind: "not-now" } | { kind: "settle"; settlement: Settlement };

/** Whether an effect may be sent now. One in doubt whose key the other side may have forgotten may not. */
export function decideSend(standing: EffectStanding, nowAt: Instant): SendDecision {
  const { state, effect, nextAttemptAt, inDoubt } = standing;
  if (state !== "pending" || nextAttemptAt > nowAt) return { kind: "not-now" };
  if (!inDoubt || effect.onUncertain === "resend" || isKeyKnown(standing, nowAt)) return { kind: "send" };
  return { kind: "settle", settlement: givenUp(effect) };
}

/**
 * Whether a report still counts: that of the attempt which is being made, or, of one that was given up as lapsed while
 * nobody sent since, the news that it was sent after all.
 */
export function isHeard(
  standing: { state: EffectState; fence: bigint | null },
  attempt: { fence: bigint; outcome: SendOutcome | null },
  report: SendReport,
): boolean {
  if (standing.fence !== attempt.fence) return false;
  if (standing.state === "sending") return attempt.outcome === null;
  const isOpen = standing.state === "pending" || standing.state === "uncertain";
  return isOpen && attempt.outcome === "lapsed" && report.kind === "sent";
}
