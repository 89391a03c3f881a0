/** The next runs of a timetable, each with what touched it, and what is left out between them. */
import type { Instant } from "../../kernel/clock.ts";
import { type Label, labelOf, noteOf } from "../recurrence/touched/label.ts";
import { omittedBetween } from "../recurrence/touched/omitted.ts";
import { touchesOf } from "../recurrence/touched/touches.ts";
import { type Due, nextNominal, placeRun, type Timetable } from "./timetable.ts";

/** `at` is nominal; the labels are those of clock changes and calendars. */
type UpcomingRun = Due & { readonly at: Instant; readonly labels: readonly Label[] };
/**
 * Something left out. `at`: when the clocks jump over it, or the first instant that a calendar took away; `count` of
 * these in a row share the text.
 */
export type UpcomingNote = Label & { readonly at: Instant; readonly count: number };

const NOTES_AT_MOST = 100;
/** Work (see `placeRun`) that calendars may make before a preview gives up looking for more instants that run: 0.2 s. */
const WORK_AT_MOST = 10_000;

/** The first `count` runs after `fromAt`; fewer where the timetable ends. */
export function upcomingRuns(
  timetable: Timetable,
  fromAt: Instant,
  count: number,
): { readonly runs: readonly UpcomingRun[]; readonly notes: readonly UpcomingNote[] } {
  const runs: UpcomingRun[] = [];
  const notes: UpcomingNote[] = [];
  let seenUntil = Math.max(fromAt, timetable.startAt - 1);
  let work = 0;
  while (runs.length < count && work < WORK_AT_MOST) {
    const at = nextNominal(timetable, seenUntil);
    if (at === null) break;
    for (const omission of omittedBetween(timetable.rule, seenUntil, at, NOTES_AT_MOST - notes.length)) {
      notes.push({ kind: "gap", at: omission.at, text: noteOf(omission), count: 1 });
    }
    seenUntil = at;
    const placed = placeRun(timetable, at);
    const { due, label, reason } = placed;
    work += placed.work;
    if (due !== undefined) {
      const labels: Label[] = touchesOf(timetable.rule, at).map(labelOf);
      if (label !== undefined) labels.push({ kind: "calendar", text: calendarText(label) });
      runs.push({ at, ...due, labels });
      continue;
    }
    noteSkip(notes, at, calendarText(label ?? reason ?? ""));
  }
  return { runs, notes };
}

function noteSkip(notes: UpcomingNote[], at: Instant, text: string): void {
  const last = notes.at(-1);
  if (last?.kind === "calendar" && last.text === text) notes.splice(-1, 1, { ...last, count: last.count + 1 });
  else if (notes.length < NOTES_AT_MOST) notes.push({ kind: "calendar", at, text, count: 1 });
}

/** The kind says already that it was a calendar. */
function calendarText(label: string): string {
  return label.replace(/^calendar: /, "");
}
