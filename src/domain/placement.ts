import { createHash } from "node:crypto";
import type { Instant } from "../kernel/clock.ts";
import type { Uuid } from "../kernel/ids.ts";
import type { SkipReason } from "./states.ts";

/**
 * What a nominal instant comes to: when its run is due (never before the nominal instant), or why there is none.
 *
 * It is asked when the nominal instant (and its window) has come, not when a moved run is due: what a calendar says is
 * decided by the calendar as it stands at the nominal instant. A run that is moved to the next business day is born
 * then, with its later `dueAt`, and `next_due_at` of a cursor never is a moved instant.
 */
export type Placement = { kind: "due"; dueAt: Instant } | { kind: "skip"; reason: SkipReason };

export type Place = (nominalAt: Instant) => Placement;

/** Without calendars a run is due at its nominal instant. */
export const atNominal: Place = (nominalAt) => ({ kind: "due", dueAt: nominalAt });

/** What is due is due that much later (ms); without an offset `place` itself. */
export function withOffset(place: Place, offset: ((nominalAt: Instant) => number) | undefined): Place {
  if (offset === undefined) return place;
  return (nominalAt) => {
    const placed = place(nominalAt);
    return placed.kind === "due" ? { kind: "due", dueAt: placed.dueAt + offset(nominalAt) } : placed;
  };
}

/**
 * How long after its nominal instant (whole ms, below `windowMs`) a run of a schedule with a window is due. Each schedule
 * has its own share of the window, by a hash of its id: the same for all time and whatever the release, so that a
 * schedule's runs keep their distance. Less than the way to the next nominal instant (null: there is none), so that due
 * instants are in the order of the nominal ones. Before a schedule has an id, only the range is known.
 */
export function windowOffset(
  scheduleId: Uuid,
  windowMs: number,
  nominalAt: Instant,
  nextNominalAt: Instant | null,
): number {
  const share = createHash("sha256").update(`${scheduleId}\nwindow`).digest().readUIntBE(0, 6) / 2 ** 48;
  return Math.floor(share * Math.min(windowMs, (nextNominalAt ?? Number.POSITIVE_INFINITY) - nominalAt));
}
