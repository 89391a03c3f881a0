import type { Work } from "../../domain/definition.ts";
import type { Fence } from "../../domain/fence.ts";
import { decideRetry, type Failure } from "../../domain/retry.ts";
import type { Instant } from "../../kernel/clock.ts";
import type { Uuid } from "../../kernel/ids.ts";
import { storableText } from "../../kernel/storable.ts";
import { type LiveRun, lockLiveRuns } from "../../store/rows/live-runs.ts";
import { announce } from "../announce.ts";
import type { Authority } from "../authority.ts";
import { loadAssignments } from "./assignment.ts";
import { type Departure, depart } from "./depart.ts";

export type FailureReport = { runId: Uuid; fence: Fence; failure: Failure };

export type FailOutcome =
  | { kind: "retrying"; notBefore: Instant; attempt: number }
  | { kind: "failed"; reason: string }
  | { kind: "canceled" }
  | { kind: "stale-fence" };

/**
 * Records that attempts failed: another try later, or the end with a dead letter.
 * Locks   live runs (two rounds); then blocked siblings, then usage.
 * Time    authority time, after the live runs are locked.
 * Writes  attempt, live_run or run, dead_letter, outbox, usage.
 * Replay  `stale-fence`: the fence was given up by the first report.
 */
export async function failRuns(
  authority: Authority,
  reports: readonly FailureReport[],
): Promise<readonly FailOutcome[]> {
  const done = await authority.transact("fail", async (tx) => {
    const live = await lockLiveRuns(tx, [...new Set(reports.map((report) => report.runId))]);
    const assignments = await loadAssignments(authority, tx, [...live.values()]);
    const nowAt = await tx.authorityNow();
    const departures: Departure[] = [];
    const outcomes = reports.map((report): FailOutcome => {
      const run = live.get(report.runId);
      // A lapsed lease whose fence is current may still report: nobody else has taken over.
      if (run === undefined || run.state !== "running" || run.fence !== report.fence) return { kind: "stale-fence" };
      live.delete(report.runId);
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
    return { outcomes, departures, intents, nowAt };
  });
  announce(authority, done);
  for (const outcome of done.outcomes) {
    if (outcome.kind === "stale-fence") authority.metrics.staleCompletions.inc({ verb: "fail" });
  }
  return done.outcomes;
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
  const expired = attempt === "expired";
  return { kind: "retry", run, notBefore: decision.notBefore, attempt, failure, spends: "retry", expired };
}

function outcomeOf(departure: Departure, run: LiveRun): FailOutcome {
  if (departure.kind === "retry") return { kind: "retrying", notBefore: departure.notBefore, attempt: run.attempt };
  if (departure.state === "canceled") return { kind: "canceled" };
  return { kind: "failed", reason: departure.deadLetterReason ?? "permanent" };
}
