import type { Fence } from "../../domain/fence.ts";
import type { Uuid } from "../../kernel/ids.ts";
import { type Handover, handOver } from "../../store/rows/leases.ts";
import { type LiveRun, lockLiveRuns } from "../../store/rows/runs/live-runs.ts";
import type { Authority } from "../authority.ts";
import { isCurrent } from "./fail.ts";
import { type Grant, toGrants } from "./grant.ts";

export type Adoption = { runId: Uuid; fence: Fence; worker: string };

export type AdoptOutcome =
  /** The attempt is this worker's: it beats for it, and says how it ended. `remainingMs`: until the attempt's deadline. */
  | { kind: "adopted"; grant: Grant; remainingMs: number; cancelRequested: boolean }
  /** Another worker holds it: only who has detached an attempt gives it away. */
  | { kind: "not-detached" }
  /** Its callback is overdue: the attempt has failed, even if nobody has said so yet. */
  | { kind: "lease-lapsed" }
  /** Another attempt took over, or the run has ended. */
  | { kind: "stale-fence" };

/**
 * Takes detached attempts over, with the same attempt and fence and a fresh lease: the work goes on, only who watches it
 * is another.
 * Locks   live runs (two rounds; those that run have a guard).
 * Time    authority time, after the locks.
 * Writes  live_run (worker, lease), attempt.
 * Replay  the same grant: the attempt is this worker's.
 */
export async function adoptRuns(
  authority: Authority,
  adoptions: readonly Adoption[],
): Promise<readonly AdoptOutcome[]> {
  return authority.transact("adopt", async (tx) => {
    const live = await lockLiveRuns(tx, [...new Set(adoptions.map((one) => one.runId))]);
    await authority.faults.reach("adopt:locked");
    const nowAt = await tx.authorityNow();
    const taken = new Map<Uuid, LiveRun>();
    const handovers: Handover[] = [];
    const refusals = adoptions.map(({ runId, fence, worker }): AdoptOutcome | undefined => {
      const run = live.get(runId);
      if (!isCurrent(run, { fence })) return { kind: "stale-fence" };
      if (run.worker !== null && run.worker !== worker) return { kind: "not-detached" };
      if (run.lease_until! <= nowAt) return { kind: "lease-lapsed" };
      const leaseUntil = Math.min(nowAt + authority.settings.lease.ttlMs, run.deadline_at!);
      if (!taken.has(runId)) {
        handovers.push({ runId, scheduledAt: run.scheduled_at, n: run.attempt, worker, leaseUntil });
      }
      // In one batch the first comes first.
      const mine = { ...run, worker };
      live.set(runId, mine);
      taken.set(runId, mine);
      return undefined;
    });
    const startedAt = await handOver(tx, handovers, nowAt);
    await authority.faults.reach("adopt:written");
    const runs = [...taken.values()];
    const grants = await toGrants(
      authority,
      tx,
      runs,
      runs.map((run) => ({
        runId: run.id,
        attempt: run.attempt,
        fence: run.fence!,
        worker: run.worker!,
        startedAt: startedAt.get(run.id)!,
      })),
    );
    const granted = new Map(grants.map((grant) => [grant.runId, grant]));
    return adoptions.map((adoption, i): AdoptOutcome => {
      const refusal = refusals[i];
      if (refusal !== undefined) return refusal;
      const grant = granted.get(adoption.runId)!;
      const cancelRequested = taken.get(adoption.runId)!.cancel_requested_at !== null;
      return { kind: "adopted", grant, remainingMs: grant.deadlineAt - nowAt, cancelRequested };
    });
  });
}
