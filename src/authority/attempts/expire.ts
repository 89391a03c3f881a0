import { epochOf } from "../../domain/fence.ts";
import { CRASH_LOOP_LIMIT, type Failure } from "../../domain/retry.ts";
import type { Instant } from "../../kernel/clock.ts";
import type { Uuid } from "../../kernel/ids.ts";
import { type LiveRun, lockLiveRunsSkipping } from "../../store/rows/runs/live-runs.ts";
import { announce } from "../announce.ts";
import type { Authority } from "../authority.ts";
import { readRaisedEpoch } from "../server.ts";
import { loadAssignments } from "./assignment.ts";
import { type Departure, depart } from "./depart.ts";
import { decideFailure } from "./fail.ts";

/**
 * Ends attempts whose leases ran out. An expired lease proves nothing about its worker; the next fence does the rest.
 * Locks   live runs, skipping what others hold (a heartbeat or completion in flight wins); siblings, usage.
 * Time    authority time, after the locks: a heartbeat that came in meanwhile is seen.
 * Writes  attempt, live_run or run, dead_letter, outbox, usage.
 * Replay  nothing: the runs are not running any more.
 *
 * `forgivenUntil`: leases that ended before this instant lapsed because the authority was away; they do not count
 * against the run. Nor do attempts from before a recovery, whatever their deadlines say: a restored one is as old as its
 * backup.
 */
export async function expireLeases(
  authority: Authority,
  runIds: readonly Uuid[],
  forgivenUntil: Instant,
): Promise<number> {
  if (runIds.length === 0) return 0;
  const done = await authority.transact("expire", async (tx) => {
    const live = await lockLiveRunsSkipping(tx, runIds);
    const assignments = await loadAssignments(authority, tx, [...live.values()]);
    await authority.faults.reach("expire:locked");
    const epoch = await readRaisedEpoch(tx);
    const nowAt = await tx.authorityNow();
    const departures: Departure[] = [];
    for (const run of live.values()) {
      if (run.state !== "running" || run.lease_until! >= nowAt) continue;
      const timedOut = run.deadline_at! <= nowAt;
      const failure = failureOf(run, timedOut);
      if (run.cancel_requested_at !== null)
        departures.push({ kind: "end", run, state: "canceled", attempt: "canceled" });
      else if (epochOf(run.fence!) < epoch || (run.lease_until! < forgivenUntil && !timedOut)) {
        departures.push({
          kind: "retry",
          run,
          notBefore: nowAt,
          attempt: "expired",
          failure,
          spends: "nothing",
          expired: false,
        });
      } else if (run.worker !== null && run.expiries + 1 >= CRASH_LOOP_LIMIT) {
        departures.push({
          kind: "end",
          run,
          state: "failed",
          attempt: "expired",
          failure,
          deadLetterReason: "crash-loop",
        });
      } else
        departures.push(
          decideFailure(run, assignments.get(run.id)!.work, failure, "expired", nowAt, authority.chance()),
        );
    }
    const intents = await depart(tx, departures, nowAt);
    return { departures, intents, nowAt };
  });
  authority.metrics.expiredLeases.inc(done.departures.length);
  announce(authority, done);
  return done.departures.length;
}

function failureOf(run: LiveRun, timedOut: boolean): Failure {
  if (timedOut) return { transient: true, code: "attempt-timeout", message: "the attempt ran past its deadline" };
  if (run.worker === null)
    return { transient: true, code: "callback-timeout", message: "no callback came in its time" };
  return { transient: true, code: "lease-expired", message: "the worker sent no heartbeat" };
}
