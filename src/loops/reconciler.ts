import type { Authority } from "../authority/authority.ts";
import { fillIdleGuards } from "../authority/repair/idle-guards.ts";
import { restoreLostEnds } from "../authority/repair/lost-ends.ts";
import { findLostInstants } from "../authority/repair/lost-instants.ts";
import { restoreLostIntents } from "../authority/repair/lost-intents.ts";
import { fromTheBeginning, restoreLostLiveRows } from "../authority/repair/lost-live-rows.ts";
import { endMissedStarts } from "../authority/repair/missed-starts.ts";
import { repairUsage } from "../authority/repair/usage-drift.ts";
import type { Pass } from "../kernel/loop.ts";

const BATCH = 1_000;
const EVERY_MS = 30_000;
/** Runs of history that one pass looks at: some hundred million take weeks, so `punctual doctor` is asked for them. */
const STRETCH = 10_000;

/**
 * Puts right what no verb should ever leave behind, under the verbs' own locks: runs that wait without an intent, ends
 * that no schedule was told of, guards that nobody holds while runs wait for them, running counts that drifted, schedules
 * that have lost their next instant, open runs that stand nowhere. Each repair is counted and logged: one that happens is
 * a bug somewhere. Beside that it ends what has missed its start deadline and is not claimed, which is no bug at all.
 */
export function createReconciler(options: { authority: Authority }): Pass {
  const { authority } = options;
  const walk = fromTheBeginning();
  const repairs: readonly [kind: string, repair: () => Promise<number>][] = [
    ["lost-live-row", () => restoreLostLiveRows(authority, walk, STRETCH)],
    ["lost-intent", () => restoreLostIntents(authority, BATCH)],
    ["lost-end", () => restoreLostEnds(authority, BATCH)],
    ["lost-instant", () => findLostInstants(authority, BATCH)],
    ["idle-guard", () => fillIdleGuards(authority, BATCH)],
    ["usage-drift", () => repairUsage(authority, BATCH)],
  ];
  return {
    name: "reconciler",
    everyMs: EVERY_MS,
    idleMs: EVERY_MS,
    async pass() {
      let did = await endMissedStarts(authority, BATCH);
      for (const [kind, repair] of repairs) {
        const repaired = await repair();
        if (repaired > 0) authority.log.error({ kind, repaired }, "something was broken and has been put right");
        did += repaired;
      }
      return { did, more: did > 0 };
    },
  };
}
