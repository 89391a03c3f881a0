/** All that decides which instants a schedule has: its rule, its bounds, and what places its instants. */
import type { Instant } from "../../kernel/clock.ts";
import type { Uuid } from "../../kernel/ids.ts";
import { boundsOf } from "../bounds.ts";
import type { Placed } from "../calendar/place.ts";
import { atNominal, windowOffset } from "../placement.ts";
import type { CompiledRule } from "../recurrence/compiled.ts";
import { nextAfter } from "../recurrence/next.ts";

export type Timetable = {
  readonly rule: CompiledRule;
  /** Inclusive. */
  readonly startAt: Instant;
  /** Exclusive. */
  readonly endAt: Instant;
  /** What calendars make of a nominal instant; `label` says it in words. */
  place(nominalAt: Instant): Placed;
  readonly window: Window | undefined;
};

/** Spreads the runs of schedules; a schedule's own share follows from its id, which a new one has not. */
type Window = { readonly ms: number; readonly scheduleId: Uuid | undefined };

export function timetableOf(
  rule: CompiledRule,
  bounds: Parameters<typeof boundsOf>[0],
  place: Timetable["place"] = (at) => ({ placement: atNominal(at) }),
  window?: Window,
): Timetable {
  return { rule, ...boundsOf(bounds), place, window };
}

/** The first nominal instant after `afterAt` (exclusive), whatever becomes of it; null for none. */
export function nextNominal({ rule, startAt, endAt }: Timetable, afterAt: Instant): Instant | null {
  // startAt is inclusive, nextAfter is strict.
  const next = nextAfter(rule, Math.max(afterAt, startAt - 1));
  return next === null || next >= endAt ? null : next;
}

/** When a run is due: at `dueAt`, or where only the window is known, at some instant before `dueBefore`. */
export type Due = { readonly dueAt: Instant; readonly dueBefore?: Instant };

export type PlacedRun = {
  /** Undefined where the instant has no run. */
  readonly due: Due | undefined;
  readonly reason?: string;
  /** What a calendar did to it, in words. */
  readonly label?: string;
  /**
   * 1, or 3 where calendars looked for another day, and 1 more for so many days and earlier instants that they looked at:
   * some 20 µs each.
   */
  readonly work: number;
};

/** Days and earlier instants that are looked at (1 to 2 µs each) for the work of one instant. */
const LOOKS_PER_WORK = 10;

/** What becomes of a nominal instant. */
export function placeRun(timetable: Timetable, nominalAt: Instant): PlacedRun {
  const { placement, label, looks = 0 } = timetable.place(nominalAt);
  const moved = placement.kind === "due" ? placement.dueAt !== nominalAt : placement.reason === "calendar-merged";
  const work = (moved ? 3 : 1) + Math.floor(looks / LOOKS_PER_WORK);
  const said = { ...(label === undefined ? {} : { label }), work };
  if (placement.kind === "skip") return { due: undefined, reason: placement.reason, ...said };
  const { dueAt } = placement;
  if (timetable.window === undefined) return { due: { dueAt }, ...said };
  const { ms, scheduleId } = timetable.window;
  // Of the rule, whether or not the schedule ends before it: so it is when runs are born.
  const nextAt = nextAfter(timetable.rule, nominalAt);
  if (scheduleId !== undefined) {
    return { due: { dueAt: dueAt + windowOffset(scheduleId, ms, nominalAt, nextAt) }, ...said };
  }
  return { due: { dueAt, dueBefore: dueAt + Math.min(ms, (nextAt ?? Number.POSITIVE_INFINITY) - nominalAt) }, ...said };
}

/** When the run of the nominal instant is due; undefined where the timetable has no such instant, or skips it. */
export function dueAtOf(timetable: Timetable, nominalAt: Instant): Instant | undefined {
  if (nextNominal(timetable, nominalAt - 1) !== nominalAt) return undefined;
  return placeRun(timetable, nominalAt).due?.dueAt;
}
