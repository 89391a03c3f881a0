import type { Instant } from "../kernel/clock.ts";
import type { OutboxRow } from "../store/rows/outbox.ts";
import type { Departure } from "./attempts/depart.ts";
import { isTold } from "./attempts/tell-ends.ts";
import type { Authority } from "./authority.ts";

/** After commit: counts what ended and wakes whoever may have work from it. Best effort. */
export function announce(
  authority: Authority,
  done: { departures: readonly Departure[]; intents: readonly OutboxRow[]; nowAt: Instant },
): void {
  for (const one of done.departures) {
    if (one.kind !== "end") continue;
    authority.metrics.runsEnded.inc({ class: one.run.class, state: one.state });
    countMissed(authority, one);
  }
  if (done.intents.length > 0) {
    authority.signals.outboxGrew(Math.min(...done.intents.map((row) => row.available_at)));
  }
  if (done.departures.some((one) => one.kind === "end" && isTold(one))) authority.signals.scheduleMoved(done.nowAt);
  if (done.departures.some((one) => one.run.state === "running")) authority.signals.slotsFreed();
}

/** A run that never started is in no histogram of lateness: without this, missing one would look better than being late. */
export function countMissed(
  { metrics }: Pick<Authority, "metrics">,
  { run, skipReason }: Extract<Departure, { kind: "end" }>,
): void {
  if (skipReason !== "start-deadline") return;
  // Whoever ends a run that waits has read what held it.
  metrics.missedStarts.inc({ class: run.class, held_by: "held_by" in run ? String(run.held_by) : "none" });
}
