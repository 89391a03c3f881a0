import { describe, expect, it } from "vitest";
import { compileCalendar } from "../../../src/domain/calendar/compile.ts";
import { calendarDefinitionSchema } from "../../../src/domain/calendar/definition.ts";
import { placeByCalendars, type ScheduleCalendars, useCalendars } from "../../../src/domain/calendar/place.ts";
import type { Rule } from "../../../src/domain/recurrence/rule.ts";
import { compiled, cron, zones } from "../recurrence/support.ts";

const MINUTE = 60_000;
const DAY = 86_400_000;
/** Far from every change of the clocks that would end the stretch. */
const AT = Date.parse("2026-11-29T09:00:00Z");
const LONG = { weekend: [], ranges: [{ from: "2026-01-01", to: "2026-12-31" }] };
const QUIET = { weekend: [], yearly: [{ date: "02-29" }] };

/** All shift; the calendars differ, and the last one has the long closed stretch. */
function closedFor(rule: Rule, quiet: readonly object[], closed: object = LONG, endAt?: string): ScheduleCalendars {
  const all = [...quiet, closed].map((is, n) => compileCalendar(`c${n}`, 1, calendarDefinitionSchema.parse(is)));
  const uses = all.map(({ name }) => ({ name, onExcluded: "shift" as const }));
  return useCalendars({ calendars: uses, endAt }, compiled(rule), all, zones);
}

const looksAt = (all: ScheduleCalendars, at: number, hasRun = (_: number): boolean | undefined => false) =>
  placeByCalendars(all, at, hasRun).looks!;

describe("a long closed stretch", () => {
  const minutely = cron("* * * 2-12 *", "Europe/Berlin");
  const seven = Array.from({ length: 7 }, () => QUIET);

  it("is walked once for all instants, with each calendar asked once for a day", () => {
    const all = closedFor(minutely, seven);
    // Eight calendars on the days from the first of the year to the first of the next, and each earlier day's instant.
    expect(looksAt(all, AT)).toBeLessThan(8 * 368 + 2 * 367);
    for (let n = 1; n <= 50; n++) expect(looksAt(all, AT + n * MINUTE)).toBeLessThan(2 * 367);
  });

  it("costs nothing more to shift over where the earlier day is known to have the run", () => {
    const all = closedFor(minutely, seven);
    looksAt(all, AT);
    for (let n = 1; n <= 50; n++) expect(looksAt(all, AT + n * MINUTE, () => true)).toBeLessThan(2 * 40);
  });

  it("that never ends is looked at up to where a shift gives up, and then one day further each day", () => {
    const all = closedFor(cron("* * * * *"), seven, {
      weekend: [],
      ranges: [{ from: "0001-01-01", to: "9999-12-31" }],
    });
    expect(looksAt(all, AT)).toBeLessThanOrEqual(8 * 367);
    expect(looksAt(all, AT + MINUTE)).toBe(0);
    for (let n = 1; n <= 50; n++) expect(looksAt(all, AT + n * DAY)).toBeLessThanOrEqual(2 * 8);
  });

  it("is walked once for a time of day where calendars of other zones judge, too", () => {
    const rule: Rule = { kind: "interval", everyMs: DAY, anchorAt: "2026-01-01T09:00:00Z" };
    const elsewhere = ["Asia/Tokyo", "America/Los_Angeles", "Europe/Berlin"].map((zone) => ({ weekend: [], zone }));
    // Tokyo's own days are open but for one, and what is shifted by its clock is due on a day that is closed in UTC.
    const tokyo = { ...elsewhere[0], dates: [{ date: "2026-11-29" }] };
    const all = closedFor(rule, [tokyo, ...elsewhere.slice(1)], LONG, "2026-12-30T00:00:00Z");
    // Four calendars' days and, in each of four zones, two looks for an earlier day: not the stretch again for each day.
    expect(looksAt(all, AT)).toBeLessThan(4 * 368 + 4 * 2 * 367);
    expect(looksAt(all, AT)).toBeLessThan(4 * 2 * 367);
  });
});

describe("earlier instants that are shifted to the same day", () => {
  const daily = cron("0 9 * 2-12 *");

  /** Answers as a history with these runs does, once it was asked for them; `rounds`: how many were asked for at once. */
  function settle(all: ScheduleCalendars, runs: readonly number[]) {
    const known = new Map<number, boolean>();
    const rounds: number[] = [];
    for (;;) {
      let asked: readonly number[] = [];
      const ask = (ats: readonly number[]) => {
        asked = ats;
      };
      const { placement } = placeByCalendars(all, AT, (at) => known.get(at), ask);
      if (asked.length === 0) return { placement, rounds };
      rounds.push(asked.length);
      for (const at of asked) known.set(at, runs.includes(at));
    }
  }

  it("are asked for in two rounds, however many they are: the earliest, then all others", () => {
    const first = Date.parse("2026-02-01T09:00:00Z");
    const others = (AT - first) / DAY - 1;
    const due = { kind: "due", dueAt: Date.parse("2027-01-01T09:00:00Z") };
    const merged = { kind: "skip", reason: "calendar-merged" };
    // January has no instants, so that the first one of the year to come is taken by nothing else.
    expect(settle(closedFor(daily, []), [])).toEqual({ placement: due, rounds: [1, others] });
    expect(settle(closedFor(daily, []), [first])).toEqual({ placement: merged, rounds: [1] });
    expect(settle(closedFor(daily, []), [AT - 9 * DAY])).toEqual({ placement: merged, rounds: [1, others] });
  });

  it("are asked for no more once one of them is known to have a run", () => {
    const asked: number[] = [];
    const answer = (at: number) => asked.push(at) === 3 || undefined;
    const { placement } = placeByCalendars(closedFor(daily, []), AT, answer, () => expect.fail("asked"));
    expect([placement.kind, asked.length]).toEqual(["skip", 3]);
  });
});
