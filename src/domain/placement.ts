import type { Instant } from "../kernel/clock.ts";
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
