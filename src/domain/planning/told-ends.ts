import type { Instant } from "../../kernel/clock.ts";
import type { Uuid } from "../../kernel/ids.ts";
import { boundsOf } from "../bounds.ts";
import type { Definition } from "../definition.ts";
import type { RunState, ScheduleStatus } from "../states.ts";

/**
 * Schedules that hear of the ends of their runs. Who ends a run does not lock its schedule: it leaves word, and
 * materialize takes that up under the schedule's lock. A run knows from birth whether its schedule wants to hear of it; an
 * edit that makes the schedule want more tells its open runs.
 */

/** What a run carries of what its end brings about: which ends its schedule hears of, whether success has effects. */
export type Telling = { tellsEnd: boolean; pausesOnFailure: boolean; hasEffects: boolean };

export function tellingOf(definition: Pick<Definition, "rule" | "pauseOnFailure" | "effects">): Telling {
  const { rule, pauseOnFailure } = definition;
  // Revisions from before there was such a thing do not name it.
  return {
    tellsEnd: rule.kind === "afterCompletion",
    pausesOnFailure: pauseOnFailure === true,
    hasEffects: hasEffects(definition),
  };
}

/** Whether a schedule wants to hear of ends that it did not want to hear of before an edit. */
export function hearsMore(before: Definition, after: Definition): boolean {
  const [was, is] = [tellingOf(before), tellingOf(after)];
  return (is.tellsEnd && !was.tellsEnd) || (is.pausesOnFailure && !was.pausesOnFailure);
}

export function hasEffects({ effects }: Pick<Definition, "effects">): boolean {
  return effects !== undefined && effects.length > 0;
}

/** A run's end as its schedule is told of it. */
export type ToldEnd = { runId: Uuid; endedAt: Instant; state: RunState | "open" | undefined };

/** The run whose failure pauses the schedule, if there is one. What was opened again since has not failed. */
export function failureThatPauses(definition: Definition, ends: readonly ToldEnd[]): Uuid | undefined {
  if (definition.pauseOnFailure !== true) return undefined;
  return ends.find((end) => end.state === "failed")?.runId;
}

export type Following =
  /** The cursor stands as it is. */
  { kind: "keep" } | { kind: "at"; nextRunAt: Instant } | { kind: "finished" };

/**
 * What the end of a run makes of an `afterCompletion` schedule: its next instant is the delay after the last of the
 * ends, whoever asked for the run, while no other run is open; so there is one pending instant at most, and a manual run
 * that ends moves it. `startAt` and `endAt` bound it as they bound any rule.
 */
export function nextAfterEnds(
  definition: Definition,
  ends: readonly { endedAt: Instant }[],
  schedule: { status: ScheduleStatus; hasOpenRuns: boolean; lastNominalAt: Instant | null },
): Following {
  if (definition.rule.kind !== "afterCompletion" || schedule.hasOpenRuns || ends.length === 0) return { kind: "keep" };
  if (schedule.status !== "active" && schedule.status !== "paused") return { kind: "keep" };
  return followingAt(definition, Math.max(...ends.map((end) => end.endedAt)), schedule.lastNominalAt);
}

/** The instant that follows something that ended at `endedAt`: whole ms, and later than the newest settled one. */
export function followingAt(
  definition: Pick<Definition, "rule" | "startAt" | "endAt">,
  endedAt: Instant,
  lastNominalAt: Instant | null,
): Following {
  const delayMs = definition.rule.kind === "afterCompletion" ? definition.rule.delayMs : 0;
  const { startAt, endAt } = boundsOf(definition);
  const nextRunAt = Math.max(Math.floor(endedAt) + delayMs, (lastNominalAt ?? -1) + 1, startAt);
  return nextRunAt >= endAt ? { kind: "finished" } : { kind: "at", nextRunAt };
}
