import type { Fence } from "../../domain/fence.ts";
import type { Instant } from "../../kernel/clock.ts";
import type { Uuid } from "../../kernel/ids.ts";
import { type Handover, handOver } from "../../store/rows/leases.ts";
import { lockLiveRuns } from "../../store/rows/runs/live-runs.ts";
import type { Authority } from "../authority.ts";
import { isCurrent } from "./fail.ts";

export type Detachment = {
  runId: Uuid;
  fence: Fence;
  worker: string;
  /** How long the callback may take (ms); never beyond the attempt's deadline, which it is where nothing is said. */
  callbackWithinMs?: number | undefined;
};

export type DetachOutcome =
  /** From now on whoever knows run and fence may complete or fail the attempt, until `callbackDueAt`. */
  | { kind: "detached"; callbackDueAt: Instant; cancelRequested: boolean }
  /** Another attempt took over, or the run has ended: perhaps the callback was faster. */
  | { kind: "stale-fence" }
  /** Another worker has adopted the attempt. */
  | { kind: "not-holder" }
  /** The attempt's deadline has passed: nobody may wait for it any more. */
  | { kind: "deadline" };

/**
 * Lets work outlive its worker (an HTTP 202, a queue, a container): attempt and fence stay, the lease becomes the deadline
 * of the callback, and the worker may not renew it any more. As a heartbeat does, it takes a lapsed lease for as good as
 * ever while nobody has taken over.
 * Locks   live runs (two rounds; those that run have a guard).
 * Time    authority time, after the locks.
 * Writes  live_run (worker, lease), attempt.
 * Replay  the same answer: a detached attempt has no worker.
 */
export async function detachRuns(
  authority: Authority,
  detachments: readonly Detachment[],
): Promise<readonly DetachOutcome[]> {
  return authority.transact("detach", async (tx) => {
    const live = await lockLiveRuns(tx, [...new Set(detachments.map((one) => one.runId))]);
    await authority.faults.reach("detach:locked");
    const nowAt = await tx.authorityNow();
    const handovers: Handover[] = [];
    const outcomes = detachments.map(({ runId, fence, worker, callbackWithinMs }): DetachOutcome => {
      const run = live.get(runId);
      if (!isCurrent(run, { fence })) return { kind: "stale-fence" };
      const cancelRequested = run.cancel_requested_at !== null;
      if (run.worker === null) return { kind: "detached", callbackDueAt: run.lease_until!, cancelRequested };
      if (run.worker !== worker) return { kind: "not-holder" };
      if (run.deadline_at! <= nowAt) return { kind: "deadline" };
      const leaseUntil = Math.min(run.deadline_at!, nowAt + (callbackWithinMs ?? Number.POSITIVE_INFINITY));
      handovers.push({ runId, scheduledAt: run.scheduled_at, n: run.attempt, worker: null, leaseUntil });
      live.set(runId, { ...run, worker: null, lease_until: leaseUntil });
      return { kind: "detached", callbackDueAt: leaseUntil, cancelRequested };
    });
    await handOver(tx, handovers, nowAt);
    await authority.faults.reach("detach:written");
    return outcomes;
  });
}
