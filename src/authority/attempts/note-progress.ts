import type { Fence } from "../../domain/fence.ts";
import type { Uuid } from "../../kernel/ids.ts";
import { writeProgress } from "../../store/rows/leases.ts";
import { lockLiveRuns } from "../../store/rows/runs/live-runs.ts";
import type { Authority } from "../authority.ts";
import { isCurrent } from "./fail.ts";

export type ProgressNoted = { kind: "noted"; cancelRequested: boolean } | { kind: "stale-fence" };

/**
 * Notes how far an attempt is, for who has no lease to renew (a detached one's worker) or none due. `progress` is storable
 * JSON text.
 * Locks   the live run. Writes attempt (progress). Replay: the same again.
 */
export function noteProgress(
  authority: Authority,
  { runId, fence, progress }: { runId: Uuid; fence: Fence; progress: string },
): Promise<ProgressNoted> {
  return authority.transact("note-progress", async (tx) => {
    const run = (await lockLiveRuns(tx, [runId])).get(runId);
    if (!isCurrent(run, { fence })) return { kind: "stale-fence" };
    await writeProgress(tx, [{ runId, scheduledAt: run.scheduled_at, n: run.attempt, progress }]);
    return { kind: "noted", cancelRequested: run.cancel_requested_at !== null };
  });
}
