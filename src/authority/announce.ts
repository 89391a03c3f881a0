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
    if (one.kind === "end") authority.metrics.runsEnded.inc({ class: one.run.class, state: one.state });
  }
  if (done.intents.length > 0) {
    authority.signals.outboxGrew(Math.min(...done.intents.map((row) => row.available_at)));
  }
  if (done.departures.some((one) => one.kind === "end" && isTold(one))) authority.signals.scheduleMoved(done.nowAt);
  if (done.departures.some((one) => one.run.state === "running")) authority.signals.slotsFreed();
}
