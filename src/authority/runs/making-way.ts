import type { Instant } from "../../kernel/clock.ts";
import type { Ending } from "../../store/rows/endings.ts";
import type { LiveRun } from "../../store/rows/live-runs.ts";

/** How a run that has not started ends when a newer one takes its place: a waiter is skipped, a holder canceled. */
export function endingOfWaiting(run: LiveRun, state: "skipped" | "canceled", nowAt: Instant): Ending {
  return {
    id: run.id,
    scheduledAt: run.scheduled_at,
    state,
    attempts: run.attempt,
    startedAt: run.started_at,
    acceptedFence: null,
    skipReason: state === "skipped" ? "overlap" : null,
    cancelRequestedAt: state === "canceled" ? (run.cancel_requested_at ?? nowAt) : run.cancel_requested_at,
    error: null,
    result: null,
  };
}
