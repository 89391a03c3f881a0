import type { Fence } from "../../domain/fence.ts";
import { INTERRUPTION_LIMIT } from "../../domain/retry.ts";
import type { Uuid } from "../../kernel/ids.ts";
import { readClosedAttempts } from "../../store/rows/runs/endings.ts";
import { lockLiveRuns } from "../../store/rows/runs/live-runs.ts";
import { announce } from "../announce.ts";
import type { Authority } from "../authority.ts";
import { type Departure, depart } from "./depart.ts";
import { isCurrent } from "./fail.ts";

export type Release = { runId: Uuid; fence: Fence; worker: string };
export type ReleaseOutcome =
  | { kind: "released" }
  | { kind: "canceled" }
  | { kind: "failed" }
  /** Another attempt took over, or the run has ended otherwise. */
  | { kind: "stale-fence" }
  /** The attempt was detached: the work goes on without this worker, who has nothing to give back. */
  | { kind: "not-holder" };

/**
 * Gives runs back untried (deploy, shutdown): they start again at once elsewhere and spend no retry budget. Only after
 * their handlers have stopped.
 * Locks, time, writes as in fail. Replay: the same answer, nothing written.
 */
export async function releaseRuns(
  authority: Authority,
  releases: readonly Release[],
): Promise<readonly ReleaseOutcome[]> {
  const done = await authority.transact("release", async (tx) => {
    const live = await lockLiveRuns(tx, [...new Set(releases.map((one) => one.runId))]);
    const closedAs = await readClosedAttempts(
      tx,
      releases.filter((release) => !isCurrent(live.get(release.runId), release)),
    );
    await authority.faults.reach("release:locked");
    const nowAt = await tx.authorityNow();
    const departures: Departure[] = [];
    const outcomes = releases.map((release): ReleaseOutcome => {
      const run = live.get(release.runId);
      if (!isCurrent(run, release)) {
        const closed = closedAs(release);
        return { kind: closed === "released" || closed === "canceled" ? closed : "stale-fence" };
      }
      if (run.worker !== release.worker) return { kind: "not-holder" };
      live.delete(release.runId);
      if (run.cancel_requested_at !== null) {
        departures.push({ kind: "end", run, state: "canceled", attempt: "canceled" });
        return { kind: "canceled" };
      }
      if (run.interruptions >= INTERRUPTION_LIMIT) {
        const failure = {
          transient: false,
          code: "interrupted-too-often",
          message: `interrupted ${run.interruptions} times`,
        };
        departures.push({
          kind: "end",
          run,
          state: "failed",
          attempt: "released",
          failure,
          deadLetterReason: "interrupted-too-often",
        });
        return { kind: "failed" };
      }
      departures.push({
        kind: "retry",
        run,
        notBefore: nowAt,
        attempt: "released",
        spends: "interruption",
        expired: false,
      });
      return { kind: "released" };
    });
    const intents = await depart(tx, departures, nowAt);
    await authority.faults.reach("release:written");
    return { outcomes, departures, intents, nowAt };
  });
  announce(authority, done);
  return done.outcomes;
}
