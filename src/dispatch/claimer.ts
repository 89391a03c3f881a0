import { randomUUID } from "node:crypto";
import { type ClaimOutcome, claimRuns } from "../authority/attempts/claim.ts";
import type { Grant } from "../authority/attempts/grant.ts";
import type { Authority } from "../authority/authority.ts";
import { isRefusedItem } from "../authority/refused-item.ts";
import { trustedUntil } from "../domain/lease.ts";
import { backoffMs } from "../kernel/backoff.ts";
import { createBatcher } from "../kernel/batcher.ts";
import { PunctualError } from "../kernel/errors.ts";
import type { Hint } from "./source.ts";

const MOST_HINTS = 100;
const UNKNOWN_TRIES = 8;

export type Claimer = {
  /**
   * Resolves when the claim of this hint has committed, whatever its outcome: then it may be acknowledged. `slots` are
   * kept free for it; what does not fit is put back.
   */
  claim(hint: Hint, slots: number): Promise<void>;
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

  async function claim(waiting: readonly Waiting[]): Promise<undefined[]> {
    const slots: Record<string, number> = {};
    for (const { hint, kept } of waiting) slots[hint.class] = (slots[hint.class] ?? 0) + kept;
    const hints = waiting.map(({ hint }) => hint);
    const claimId = randomUUID();
    const sentAtMs = authority.clock.monotonic();
    const outcome = await insist((repeated) => claimRuns(authority, { claimId, worker, slots, hints, repeated }));
    onGrants(outcome.grants, trustedUntil(sentAtMs, authority.settings.lease));
    return hints.map(() => undefined);
  }

  /** An unknown outcome repeats the claim under the same id: it answers what was granted, or grants now. */
  async function insist(send: (repeated: boolean) => Promise<ClaimOutcome>): Promise<ClaimOutcome> {
    for (let tries = 1; ; tries++) {
      try {
        return await send(tries > 1);
      } catch (error) {
        const unknown = error instanceof PunctualError && error.code === "outcome-unknown";
        const unreachable = error instanceof PunctualError && error.code === "database-unreachable" && tries > 1;
        if (!(unknown || unreachable) || tries >= UNKNOWN_TRIES) throw error;
        await authority.clock.sleep(backoffMs(tries, { baseMs: 50, capMs: 2_000, floorMs: 20 }, authority.chance()));
      }
    }
  }

  const batcher = createBatcher<Waiting, undefined>({
    run: claim,
    maxItems: MOST_HINTS,
    lanes: options.lanes,
    isPoison: isRefusedItem,
  });
  return { claim: (hint, kept) => batcher.submit({ hint, kept }), drain: () => batcher.drain() };
}
