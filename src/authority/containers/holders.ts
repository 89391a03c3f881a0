import type { Fence } from "../../domain/fence.ts";
import type { Uuid } from "../../kernel/ids.ts";
import { readLiveRuns } from "../../store/rows/runs/live-runs.ts";
import type { Authority } from "../authority.ts";

/** The attempt that a run is at, and who holds it; null: it was detached, and nobody has adopted it yet. */
export type Holder = { runId: Uuid; fence: Fence; worker: string | null; class: string };

/**
 * The present attempts of those runs that are running. A plain read: what it says of a fence that is not there any more
 * stays true, since no fence comes back; whether an attempt may be adopted is for `adoptRuns` to decide.
 */
export async function readHolders(authority: Authority, runIds: readonly Uuid[]): Promise<Map<Uuid, Holder>> {
  if (runIds.length === 0) return new Map();
  const live = await readLiveRuns(authority.db, runIds);
  const holders = [...live.values()].flatMap((run): Holder[] =>
    run.state === "running" && run.fence !== null
      ? [{ runId: run.id, fence: run.fence, worker: run.worker, class: run.class }]
      : [],
  );
  return new Map(holders.map((holder) => [holder.runId, holder]));
}
