import type { Uuid } from "../../kernel/ids.ts";
import type { Transaction } from "../../store/database.ts";
import { awaitLiveRun, type LiveRun, lockLiveRunsAndSiblings } from "../../store/rows/runs/live-runs.ts";
import { lookAgain } from "../refusal.ts";

/** Locks runs that are to be ended, and whoever their guards may be handed on to; or looks again, once it may have them. */
export async function lockWithSiblings(tx: Transaction, ids: readonly Uuid[]): Promise<Map<Uuid, LiveRun>> {
  const live = await lockLiveRunsAndSiblings(tx, ids);
  return live instanceof Map ? live : lookAgain((alone) => awaitLiveRun(alone, live.missed));
}
