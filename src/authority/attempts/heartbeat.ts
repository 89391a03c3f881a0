import type { Fence } from "../../domain/fence.ts";
import type { Instant } from "../../kernel/clock.ts";
import type { Uuid } from "../../kernel/ids.ts";
import { type ProgressNote, renewLeases, writeProgress } from "../../store/rows/leases.ts";
import { lockLiveRunsSkipping, readLiveRuns } from "../../store/rows/runs/live-runs.ts";
import type { Authority } from "../authority.ts";

export type Beat = {
  runId: Uuid;
  fence: Fence;
  worker: string;
  /** How far the attempt is: storable JSON text, written where the lease is renewed. */
  progress?: string | undefined;
};

export type BeatOutcome =
  | { kind: "renewed"; cancelRequested: boolean; remainingMs: number }
  /** Somebody holds the row just now: beat again, alone. */
  | { kind: "busy" }
  /** Another attempt took over, or the run has ended: stop. */
  | { kind: "stale-fence" }
  /** The attempt goes on, but it was detached, and perhaps adopted: it is not this worker's any more. */
  | { kind: "not-holder" }
  /** The attempt's deadline has passed: it is not renewed any more. */
  | { kind: "deadline" };

/**
 * Renews many leases at once. With the current fence it also revives a lapsed one, since nobody took over meanwhile.
 * Locks   live runs, skipping what others hold: one slow row never costs another its lease.
 * Time    authority time, after the locks.
 * Writes  live_run (lease_until, last_heartbeat_at; no indexed column), attempt (progress).
 * Replay  the same again.
 */
export async function heartbeat(authority: Authority, beats: readonly Beat[]): Promise<readonly BeatOutcome[]> {
  return authority.transact("heartbeat", async (tx) => {
    const ids = beats.map((beat) => beat.runId);
    const live = await lockLiveRunsSkipping(tx, ids);
    const missing = ids.filter((id) => !live.has(id));
    const present = missing.length === 0 ? new Map() : await readLiveRuns(tx, missing);
    const nowAt = await tx.authorityNow();
    const renewals: { runId: Uuid; leaseUntil: Instant }[] = [];
    const progress: ProgressNote[] = [];
    const outcomes = beats.map((beat): BeatOutcome => {
      const run = live.get(beat.runId);
      if (run === undefined) return { kind: present.has(beat.runId) ? "busy" : "stale-fence" };
      if (run.state !== "running" || run.fence !== beat.fence) return { kind: "stale-fence" };
      if (run.worker !== beat.worker) return { kind: "not-holder" };
      if (run.deadline_at! <= nowAt) return { kind: "deadline" };
      const leaseUntil = Math.min(nowAt + authority.settings.lease.ttlMs, run.deadline_at!);
      renewals.push({ runId: run.id, leaseUntil });
      if (beat.progress !== undefined) {
        progress.push({ runId: run.id, scheduledAt: run.scheduled_at, n: run.attempt, progress: beat.progress });
      }
      return { kind: "renewed", cancelRequested: run.cancel_requested_at !== null, remainingMs: leaseUntil - nowAt };
    });
    await renewLeases(tx, renewals, nowAt);
    await writeProgress(tx, progress);
    return outcomes;
  });
}
