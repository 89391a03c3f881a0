import { randomUUID } from "node:crypto";
import { claimRuns } from "../authority/attempts/claim.ts";
import type { Grant } from "../authority/attempts/grant.ts";
import type { Authority } from "../authority/authority.ts";
import { isRefusedItem } from "../authority/refused-item.ts";
import { trustedUntil } from "../domain/lease.ts";
import { createBatcher } from "../kernel/batcher.ts";
import { isOutcomeUnknown } from "../kernel/errors.ts";
import { insist, mayBeAnswered } from "./insist.ts";
import type { Hint } from "./source.ts";

const MOST_HINTS = 100;

export type Claimer = {
  /**
   * Resolves when the claim of this hint has committed, whatever its outcome: then it may be acknowledged. Rejects when
   * it has not, or nobody knows. `slots` are kept free for it; what does not fit is put back.
   */
  claim(hint: Hint, slots: number): Promise<void>;
  /** From now on a claim that gets no answer is given up instead of repeated: the worker is stopping. */
  giveUp(): void;
  drain(): Promise<void>;
};

type Waiting = { hint: Hint; kept: number };

/**
 * Turns hints into grants, all that gathered while the last claim ran in one transaction. The grants of a claim go to
 * `onGrants` once, with the end of the trust that counts from before the claim was sent; a grant has one taker even
 * when two hints of one batch name the same run.
 */
export function createClaimer(options: {
  authority: Authority;
  worker: string;
  lanes: number;
  onGrants(grants: readonly Grant[], trustedUntilMs: number): void;
}): Claimer {
  const { authority, worker, onGrants } = options;
  const ending = new AbortController();

  async function claim(waiting: readonly Waiting[]): Promise<undefined[]> {
    const slots: Record<string, number> = {};
    for (const { hint, kept } of waiting) slots[hint.class] = (slots[hint.class] ?? 0) + kept;
    const hints = waiting.map(({ hint }) => hint);
    const claimId = randomUUID();
    const sentAtMs = authority.clock.monotonic();
    const untilMs = trustedUntil(sentAtMs, authority.settings.lease);
    // Runs that were granted unheard wait for the end of their leases; as long as those can be trusted it is worth asking.
    const outcome = await insist(
      authority,
      { ending: ending.signal, untilMs },
      (tries) => claimRuns(authority, { claimId, worker, slots, hints, repeated: tries > 1 }),
      // Only a claim that may have committed is repeated; any other leaves its hints where they are.
      (error, tries) => (tries > 1 ? mayBeAnswered(error) : isOutcomeUnknown(error)),
    );
    onGrants(outcome.grants, untilMs);
    return hints.map(() => undefined);
  }

  const batcher = createBatcher<Waiting, undefined>({
    run: claim,
    maxItems: MOST_HINTS,
    lanes: options.lanes,
    isPoison: isRefusedItem,
  });
  return {
    claim: (hint, kept) => batcher.submit({ hint, kept }),
    giveUp: () => ending.abort(),
    drain: () => batcher.drain(),
  };
}
