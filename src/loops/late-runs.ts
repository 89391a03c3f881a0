import type { Authority } from "../authority/authority.ts";
import { tellLateRuns } from "../authority/webhooks/due.ts";
import type { Instant } from "../kernel/clock.ts";
import type { Pass } from "../kernel/loop.ts";

const EVERY_MS = 10_000;
/** Each batch passes what those before it told of: few large ones are less work than many small ones. */
const BATCH = 2_000;
/** Looks reach back behind the last one by as much as a transaction may take that brings a run. */
const REACH_BACK_MS = 60_000;
/** Everything that waits is looked at so often: runs that were held back, and endpoints that are new or changed. */
const ALL_EVERY_MS = 300_000;

/**
 * Tells webhooks of runs that should have started by now. What starts late is told by its claim. What was told is not looked
 * at again and again: each look is at what became late since the last one, and one now and then at everything.
 */
export function createLateRunTeller(options: { authority: Authority }): Pass {
  const { authority } = options;
  /** When the last look at everything, and the last of all, found no more than it told. Of the database's clock. */
  let allAt: Instant | undefined;
  let lastAt = 0;
  return {
    name: "late-runs",
    everyMs: EVERY_MS,
    idleMs: EVERY_MS,
    async pass() {
      const isAll = allAt === undefined || lastAt - allAt >= ALL_EVERY_MS;
      const { told, at } = await tellLateRuns(authority, { most: BATCH, since: isAll ? null : lastAt - REACH_BACK_MS });
      const more = told === BATCH;
      if (!more) {
        lastAt = at;
        if (isAll) allAt = at;
      }
      if (told > 0) authority.signals.effectsDue();
      return { did: told, more };
    },
  };
}
