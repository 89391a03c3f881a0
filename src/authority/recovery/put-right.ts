import { finishRecovery } from "../../store/rows/recovery.ts";
import type { Authority } from "../authority.ts";
import { FROM_THE_START, readPublished } from "../dispatch/published.ts";
import { unpublish } from "../dispatch/unpublish.ts";
import { fillIdleGuards } from "../repair/idle-guards.ts";
import { restoreLostEnds } from "../repair/lost-ends.ts";
import { restoreLostIntents } from "../repair/lost-intents.ts";
import { repairUsage } from "../repair/usage-drift.ts";

const BATCH = 1_000;

/**
 * After the epoch was raised: hints of the old one count for nothing, so every outbox row is published again; what the
 * reconciler would find is put right at once. Twice is harmless, and without it the sweepers would come to the same.
 */
export async function putRight(authority: Authority, epoch: number): Promise<Record<string, number>> {
  const steps = {
    published: unpublishSome,
    intents: restoreLostIntents,
    ends: restoreLostEnds,
    guards: fillIdleGuards,
    counts: repairUsage,
  };
  const tally: Record<string, number> = {};
  for (const [name, step] of Object.entries(steps)) {
    tally[name] = await untilNothing(() => step(authority, BATCH));
  }
  await authority.faults.reach("recover:put-right");
  await finishRecovery(authority.db, epoch, tally);
  return tally;
}

async function untilNothing(step: () => Promise<number>): Promise<number> {
  let all = 0;
  for (;;) {
    const did = await step();
    all += did;
    if (did === 0) return all;
  }
}

async function unpublishSome(authority: Authority, limit: number): Promise<number> {
  const rows = await readPublished(authority, 0, FROM_THE_START, limit);
  return unpublish(
    authority,
    rows.map((row) => ({ rowId: row.id, publishNo: row.publish_no })),
  );
}
