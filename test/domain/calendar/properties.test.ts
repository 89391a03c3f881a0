import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { compileCalendar } from "../../../src/domain/calendar/compile.ts";
import { type CalendarUse, calendarDefinitionSchema, WEEKDAYS } from "../../../src/domain/calendar/definition.ts";
import { placeByCalendars, useCalendars } from "../../../src/domain/calendar/place.ts";
import { toLocal } from "../../../src/domain/recurrence/local.ts";
import { nextAfter } from "../../../src/domain/recurrence/next.ts";
import type { Rule } from "../../../src/domain/recurrence/rule.ts";
import { compiled, zones } from "../recurrence/support.ts";

const DAY = 86_400_000;
const showDate = (at: number) => new Date(at).toISOString().slice(0, 10);

/** Zones with clock changes of an hour, of half an hour, at midnight, and none, each with days around a change. */
const PLACES = [
  ["UTC", "2027-03-01"],
  ["America/New_York", "2027-03-09"],
  ["America/New_York", "2027-11-02"],
  ["Europe/Berlin", "2027-10-26"],
  ["Australia/Lord_Howe", "2027-04-01"],
  ["Australia/Lord_Howe", "2027-10-01"],
  ["Africa/Cairo", "2027-04-27"],
  ["Pacific/Apia", "2011-12-27"],
] as const;

const fewOf = (most: number, values: number) =>
  fc.uniqueArray(fc.integer({ min: 0, max: values - 1 }), { minLength: 1, maxLength: most });
const cronIn = (zone: string) =>
  fc
    .record({
      minutes: fewOf(2, 4).map((some) => some.map((n) => n * 15).join(",")),
      hours: fc.oneof(
        fewOf(3, 24).map((some) => some.join(",")),
        fc.constant("0,1,2,3"),
        fc.constant("*/6"),
      ),
      weekdays: fc.oneof(
        fc.constant("*"),
        fewOf(4, 7).map((some) => some.join(",")),
      ),
      gap: fc.constantFrom(undefined, "first", "shift", "skip"),
      overlap: fc.constantFrom(undefined, "first", "last", "both"),
    })
    .map(({ minutes, hours, weekdays, gap, overlap }) => ({
      kind: "cron" as const,
      expression: `${minutes} ${hours} * * ${weekdays}`,
      zone,
      ...(gap === undefined ? {} : { gap }),
      ...(overlap === undefined ? {} : { overlap }),
    }));

const scenes = fc.constantFrom(...PLACES).chain(([zone, from]) => {
  const day = fc.integer({ min: 0, max: 13 }).map((n) => showDate(Date.parse(from) + n * DAY));
  return fc.record({
    zone: fc.constant(zone),
    fromAt: fc.constant(Date.parse(from) - DAY),
    rule: fc.oneof(
      { weight: 4, arbitrary: cronIn(zone) },
      {
        weight: 1,
        arbitrary: fc
          .array(fc.oneof(cronIn(zone), cronIn("Europe/London")), { minLength: 2, maxLength: 3 })
          .map((rules) => ({ kind: "anyOf" as const, rules })),
      },
    ),
    calendars: fc.array(
      fc.record({
        onExcluded: fc.constantFrom<CalendarUse["onExcluded"]>("shift", "shift", "exclude"),
        is: fc.record({
          weekend: fc.uniqueArray(fc.constantFrom(...WEEKDAYS), { maxLength: 3 }),
          dates: fc.array(fc.record({ date: day }), { maxLength: 4 }),
        }),
      }),
      { minLength: 1, maxLength: 3 },
    ),
  });
});

/** Settles sixteen days of a schedule, instant by instant. */
function settle({
  fromAt,
  rule,
  calendars,
}: {
  fromAt: number;
  rule: Rule;
  calendars: { onExcluded: CalendarUse["onExcluded"]; is: object }[];
}) {
  const ready = compiled(rule);
  const made = calendars.map((one, n) => compileCalendar(`c${n}`, 1, calendarDefinitionSchema.parse(one.is)));
  const uses = calendars.map((one, n) => ({ name: `c${n}`, onExcluded: one.onExcluded }));
  const all = useCalendars({ calendars: uses }, ready, made, zones);
  const dueAts = new Map<number, number>();
  const settled = [];
  for (let at = nextAfter(ready, fromAt); at !== null && at < fromAt + 16 * DAY; at = nextAfter(ready, at)) {
    const { placement } = placeByCalendars(all, at, (earlierAt) => dueAts.has(earlierAt));
    if (placement.kind === "due") dueAts.set(at, placement.dueAt);
    settled.push({ at, placement });
  }
  const isExcluded = (day: string) => {
    const weekday = WEEKDAYS[new Date(`${day}T00:00Z`).getUTCDay()]!;
    return calendars.some(({ is }) => {
      const { weekend, dates } = calendarDefinitionSchema.parse(is);
      return weekend.includes(weekday) || dates.some((one) => one.date === day);
    });
  };
  return { settled, dueAts, isExcluded };
}

describe("whatever the rule, the zone and the calendars", () => {
  it("no two runs of a schedule are due at one instant, none before its nominal one, and none on an excluded day", () => {
    fc.assert(
      fc.property(scenes, (scene) => {
        const { dueAts, isExcluded } = settle(scene);
        expect(new Set(dueAts.values()).size).toBe(dueAts.size);
        for (const [at, dueAt] of dueAts) {
          expect(dueAt).toBeGreaterThanOrEqual(at);
          if (scene.rule.kind === "cron")
            expect(isExcluded(toLocal(scene.zone, dueAt, zones).slice(0, 10))).toBe(false);
        }
      }),
      { numRuns: 150, endOnFailure: true },
    );
  });
});

it("in UTC, a shift is what counting days by hand gives", () => {
  const utc = scenes.filter((scene) => scene.zone === "UTC" && scene.rule.kind === "cron");
  fc.assert(
    fc.property(utc, (scene) => {
      const { settled, dueAts, isExcluded } = settle(scene);
      const own = new Set(settled.map((one) => one.at));
      const taken = new Set<number>();
      for (const { at, placement } of settled) {
        if (!isExcluded(showDate(at))) {
          expect(placement).toEqual({ kind: "due", dueAt: at });
          continue;
        }
        const weekday = WEEKDAYS[new Date(at).getUTCDay()]!;
        const first = scene.calendars.find(
          ({ is }) => is.weekend.includes(weekday) || is.dates.some((one) => one.date === showDate(at)),
        )!;
        if (first.onExcluded === "exclude") {
          expect(placement).toEqual({ kind: "skip", reason: "calendar" });
          continue;
        }
        let target = at + DAY;
        while (isExcluded(showDate(target)) && target < at + 366 * DAY) target += DAY;
        if (isExcluded(showDate(target))) {
          expect(placement).toEqual({ kind: "skip", reason: "calendar" });
          continue;
        }
        // Beyond the days that were settled nobody has written the rule's own instants down.
        if (target >= scene.fromAt + 16 * DAY) continue;
        const expected =
          own.has(target) || taken.has(target)
            ? { kind: "skip", reason: "calendar-merged" }
            : { kind: "due", dueAt: target };
        expect(placement).toEqual(expected);
        taken.add(target);
      }
      expect(dueAts.size).toBeLessThanOrEqual(settled.length);
    }),
    { numRuns: 60, endOnFailure: true },
  );
});
