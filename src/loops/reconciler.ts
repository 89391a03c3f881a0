import type { Authority } from "../authority/authority.ts";
import { fillIdleGuards } from "../authority/repair/idle-guards.ts";
import { restoreLostEnds } from "../authority/repair/lost-ends.ts";
import { restoreLostIntents } from "../authority/repair/lost-intents.ts";
import { repairUsage } from "../authority/repair/usage-drift.ts";
import type { Pass } from "../kernel/loop.ts";

const BATCH = 1_000;
const EVERY_MS = 30_000;

/**
 * Puts right what no verb should ever leave behind, under the verbs' own locks: runs that wait without an intent, ends
 * that no schedule was told of, guards that nobody holds while runs wait for them, running counts that drifted. Each
 * repair is counted and logged: one that happens is a bug somewhere.
 */
export function createReconciler(options: { authority: Authority }): Pass {
  const { authority } = options;
  const repairs = [
    ["lost-intent", restoreLostIntents],
    ["lost-end", restoreLostEnds],
    ["idle-guard", fillIdleGuards],
    ["usage-drift", repairUsage],
  ] as const;
  return {
    name: "reconciler",
    everyMs: EVERY_MS,
    idleMs: EVERY_MS,
    async pass() {
      let did = 0;
      for (const [kind, repair] of repairs) {
        const repaired = await repair(authority, BATCH);
        if (repaired > 0) authority.log.error({ kind, repaired }, "something was broken and has been put right");
        did += repaired;
      }
      return { did, more: did > 0 };
    },
  };
}
