/** All that decides which instants a schedule has: its rule, its bounds, and what places its instants. */
import type { Instant } from "../../kernel/clock.ts";
import type { Place, Placement } from "../placement.ts";
import type { CompiledRule } from "../recurrence/compiled.ts";
import { nextAfter } from "../recurrence/next.ts";

export type Timetable = {
  readonly rule: CompiledRule;
  /** Inclusive. */
  readonly startAt: Instant;
  /** Exclusive. */
  readonly endAt: Instant;
  /** What becomes of a nominal instant; `label` says in words what a calendar did to it. */
  place(nominalAt: Instant): Placed;
};

type Placed = { readonly placement: Placement; readonly label?: string };

export function timetableOf(
  rule: CompiledRule,
  bounds: { readonly startAt?: string | undefined; readonly endAt?: string | undefined },
  place: Timetable["place"],
): Timetable {
  const { startAt, endAt } = bounds;
  return {
    rule,
    startAt: startAt === undefined ? Number.NEGATIVE_INFINITY : Date.parse(startAt),
    endAt: endAt === undefined ? Number.POSITIVE_INFINITY : Date.parse(endAt),
    place,
  };
}

/** A timetable's instants as their rule has them. */
export function placedBy(place: Place): Timetable["place"] {
  return (nominalAt) => ({ placement: place(nominalAt) });
}

/** The first nominal instant after `afterAt` (exclusive), whatever becomes of it; null for none. */
export function nextNominal({ rule, startAt, endAt }: Timetable, afterAt: Instant): Instant | null {
  // startAt is inclusive, nextAfter is strict.
  const next = nextAfter(rule, Math.max(afterAt, startAt - 1));
  return next === null || next >= endAt ? null : next;
}

/** When the run of the nominal instant is due; undefined where the timetable has no such instant, or skips it. */
export function dueAtOf(timetable: Timetable, nominalAt: Instant): Instant | undefined {
  if (nextNominal(timetable, nominalAt - 1) !== nominalAt) return undefined;
  const { placement } = timetable.place(nominalAt);
  return placement.kind === "due" ? placement.dueAt : undefined;
}
