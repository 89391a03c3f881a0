import type { Work } from "../../domain/definition.ts";
import type { Fence } from "../../domain/fence.ts";
import { decideRetry, type Failure, type GiveUpReason } from "../../domain/retry.ts";
import type { Instant } from "../../kernel/clock.ts";
import type { Uuid } from "../../kernel/ids.ts";
import { storableText } from "../../kernel/storable.ts";
import { readClosedAttempts } from "../../store/rows/runs/endings.ts";
import { type LiveRun, lockLiveRuns } from "../../store/rows/runs/live-runs.ts";
import { announce } from "../announce.ts";
import type { Authority } from "../authority.ts";
import { loadAssignments } from "./assignment.ts";
import { type Departure, depart } from "./depart.ts";

export type FailureReport = { runId: Uuid; fence: Fence; failure: Failure };

export type FailOutcome =
  | { kind: "retrying"; notBefore: Instant; attempt: number }
  | { kind: "failed"; reason: GiveUpReason }
  | { kind: "canceled" }
  /** This attempt has said so before: its run knows, and what became of it meanwhile is not this worker's business. */
  | { kind: "already-reported" }
  /** Another attempt took over, or the run has ended otherwise: the worker stops. */
  | { kind: "stale-fence" };

/**
 * Records that attempts failed: another try later, or the end with a dead letter.
 * Locks   live runs (two rounds); then blocked siblings, then usage.
 * Time    authority time, after the live runs are locked.
 * Writes  attempt, live_run or run, dead_letter, outbox, usage.
 * Replay  `already-reported`, or `canceled` again: nothing written.
 */
export async function failRuns(
  authority: Authority,
  reports: readonly FailureReport[],
): Promise<readonly FailOutcome[]> {
  const done = await authority.transact("fail", async (tx) => {
    const live = await lockLiveRuns(tx, [...new Set(reports.map((report) => report.runId))]);
    const assignments = await loadAssignments(authority, tx, [...live.values()]);
    const closedAs = await readClosedAttempts(
      tx,
      reports.filter((report) => !isCurrent(live.get(report.runId), report)),
    );
    await authority.faults.reach("fail:locked");
    const nowAt = await tx.authorityNow();
    const departures: Departure[] = [];
    const told = new Map<Uuid, Fence>();
    const outcomes = reports.map((report): FailOutcome => {
      const run = live.get(report.runId);
      // A lapsed lease whose fence is current may still report: nobody else has taken over.
      if (!isCurrent(run, report)) {
        const closed = told.get(report.runId) === report.fence ? "failed" : closedAs(report);
        if (closed === "failed") return { kind: "already-reported" };
        return { kind: closed === "canceled" ? "canceled" : "stale-fence" };
      }
      live.delete(report.runId);
      told.set(report.runId, report.fence);
      const departure = decideFailure(
        run,
        assignments.get(run.id)!.work,
        storable(report.failure),
        "failed",
        nowAt,
        authority.chance(),
      );
      departures.push(departure);
      return outcomeOf(departure, run);
    });
    const intents = await depart(tx, departures, nowAt);
    await authority.faults.reach("fail:written");
    return { outcomes, departures, intents, nowAt };
  });
  announce(authority, done);
  for (const outcome of done.outcomes) {
    if (outcome.kind === "stale-fence") authority.metrics.staleCompletions.inc({ verb: "fail" });
  }
  return done.outcomes;
}

/** The attempt that holds this fence is the run's present one. */
export function isCurrent(run: LiveRun | undefined, { fence }: { fence: Fence }): run is LiveRun {
  return run !== undefined && run.state === "running" && run.fence === fence;
}

/** Whatever a job threw, its report must not poison the batch it is written in. */
function storable(failure: Failure): Failure {
  return { ...failure, code: storableText(failure.code, 100), message: storableText(failure.message) };
}

/** What becomes of a run whose attempt failed; shared with expiry, where the failure is the silence of its worker. */
export function decideFailure(
  run: LiveRun,
  work: Work,
  failure: Failure,
  attempt: "failed" | "expired",
  nowAt: Instant,
  chance: number,
): Departure {
  if (run.cancel_requested_at !== null) return { kind: "end", run, state: "canceled", attempt: "canceled" };
  const spent = { attempts: run.budget_attempt + 1, budgetFrom: run.budget_from };
  const decision = decideRetry(failure, work.retry, spent, nowAt, chance);
  if (decision.kind === "give-up") {
    return { kind: "end", run, state: "failed", attempt, failure, deadLetterReason: decision.reason };
  }
  // A detached attempt has no worker that it could have killed.
  const expired = attempt === "expired" && run.worker !== null;
  return { kind: "retry", run, notBefore: decision.notBefore, attempt, failure, spends: "retry", expired };
}

function outcomeOf(departure: Departure, run: LiveRun): FailOutcome {
  if (departure.kind === "retry") return { kind: "retrying", notBefore: departure.notBefore, attempt: run.attempt };
  if (departure.state === "canceled") return { kind: "canceled" };
  return { kind: "failed", reason: departure.deadLetterReason ?? "permanent" };
}
