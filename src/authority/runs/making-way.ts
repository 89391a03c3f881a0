import type { Instant } from "../../kernel/clock.ts";
import type { Uuid } from "../../kernel/ids.ts";
import type { Ending } from "../../store/rows/runs/endings.ts";
import type { LiveRun } from "../../store/rows/runs/live-runs.ts";

/** Ends of open runs that have not started and whose place newer ones take: a waiter is skipped, a holder canceled. */
export function endingsOfWaiting(
  plan: { superseded: readonly Uuid[]; canceled: readonly Uuid[] },
  open: readonly LiveRun[],
  nowAt: Instant,
): Ending[] {
  const find = (id: Uuid) => open.find((one) => one.id === id)!;
  return [
    ...plan.superseded.map((id) => endingOf(find(id), "skipped", nowAt)),
    ...plan.canceled.map((id) => endingOf(find(id), "canceled", nowAt)),
  ];
}

function endingOf(run: LiveRun, state: "skipped" | "canceled", nowAt: Instant): Ending {
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
