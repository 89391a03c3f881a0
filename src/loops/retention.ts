import type { Authority } from "../authority/authority.ts";
import { type Afterwards, dropHistory, watchFloor } from "../authority/retention/drop-history.ts";
import { prune, type RangeAfter } from "../authority/retention/prune.ts";
import { raiseHistoryFloor } from "../authority/retention/raise-floor.ts";
import type { Pass } from "../kernel/loop.ts";

const BATCH = 1_000;
const EVERY_MS = 60_000;
const IDLE_MS = 600_000;
const DAY_MS = 86_400_000;

export type RetentionTerms = {
  historyDays: number;
  requestKeyDays: number;
  auditDays: number;
  /** What becomes of partitions: see docs/operations.md, "How long things are kept". */
  afterwards: Afterwards;
};

/**
 * Gives up old history: raises the floor over the oldest partition once nothing needs it, waits until every transaction
 * that may have read the old floor has ended, looks again, and drops it. Prunes the small tables beside it.
 */
export function createRetention(options: { authority: Authority; terms: RetentionTerms }): Pass {
  const { authority, terms } = options;
  const { log } = authority;
  /** A floor is known to everybody once the transactions that were there when we first saw it have ended. */
  let seen: { floorAt: number; next: bigint } | undefined;
  let after: RangeAfter | undefined;

  return {
    name: "retention",
    everyMs: EVERY_MS,
    idleMs: IDLE_MS,
    async pass() {
      const watch = await watchFloor(authority);
      const endedBefore = watch.nowAt - terms.historyDays * DAY_MS;
      if (seen?.floorAt !== watch.floorAt) seen = { floorAt: watch.floorAt, next: watch.next };
      const isKnown = watch.oldest >= seen.next;
      const { floorAt } = watch;
      const done = await dropHistory(authority, { floorAt, isKnown, endedBefore, afterwards: terms.afterwards });
      const { detached, dropped, waiting } = done;
      if (detached.length + dropped.length > 0) log.info({ detached, dropped }, "old history was dropped");
      for (const one of waiting) log.info(one, "a partition below the floor cannot go yet");

      const keysBefore = watch.nowAt - terms.requestKeyDays * DAY_MS;
      const auditBefore = watch.nowAt - terms.auditDays * DAY_MS;
      const pruned = await prune(authority, { floorAt, endedBefore, keysBefore, auditBefore }, after, BATCH);
      after = pruned.after;
      const rows = Object.values(pruned.gone);
      if (rows.length > 0) log.info({ rows: pruned.gone }, "old rows were deleted");

      const floor = await raiseHistoryFloor(authority, endedBefore);
      if (floor.kind === "raised") log.info({ floorAt: floor.toAt }, "the history floor was raised");
      if (floor.kind === "held") {
        log.info({ ...floor.hold, ...floor.range }, "old history is kept, because something in it is still needed");
      }
      const isRaised = floor.kind === "raised";
      const goesOn = isRaised || (detached.length > 0 && waiting.length === 0) || rows.some((count) => count >= BATCH);
      return { did: Number(isRaised) + detached.length + dropped.length + rows.length, more: goesOn };
    },
  };
}
