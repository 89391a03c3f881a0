import { expect, it } from "vitest";
import { busiest, dueInMinute, expectedDuration, minuteOf } from "../../../src/domain/preview/demand.ts";
import { timetableOf } from "../../../src/domain/preview/timetable.ts";
import { compiled, cron } from "../recurrence/support.ts";

const of = (expression: string) => timetableOf(compiled(cron(expression)), {});
const NINE = Date.parse("2026-06-01T09:00:00Z");
const countInMinute = (...asked: Parameters<typeof dueInMinute>) => dueInMinute(...asked).length;

it("a minute's runs are found each at its instant", () => {
  const found = dueInMinute([of("*/20 * * * * *"), of("0 9 * * *")], NINE);
  expect(found.map((at) => at - NINE).toSorted((a, b) => a - b)).toEqual([0, 0, 20_000, 40_000]);
});

it("a minute's runs are counted over all schedules, those of seconds as often as they come", () => {
  const all = [of("0 9 * * *"), of("*/15 * * * *"), of("0 10 * * *"), of("*/20 * * * * *")];
  expect(countInMinute(all, NINE)).toBe(1 + 1 + 3);
  expect(countInMinute(all, NINE + 60_000)).toBe(3);
  expect(countInMinute([], NINE)).toBe(0);
  expect(
    countInMinute(
      Array.from({ length: 300 }, () => of("* * * * * *")),
      NINE,
    ),
  ).toBe(10_000);
});

it("a window moves runs out of their minute, each schedule's own way, and loses none", () => {
  const spread = (expression: string, ms: number) =>
    Array.from({ length: 200 }, (_, k) =>
      timetableOf(compiled(cron(expression)), {}, undefined, { ms, scheduleId: `00000000-0000-0000-0000-${k}` }),
    );
  const minutes = (timetables: ReturnType<typeof spread>, n: number) =>
    Array.from({ length: n }, (_, k) => countInMinute(timetables, NINE + k * 60_000));
  const daily = minutes(spread("0 9 * * *", 600_000), 11);
  expect(daily.reduce((sum, n) => sum + n)).toBe(200);
  expect(daily[10]).toBe(0);
  expect(Math.max(...daily)).toBeLessThan(45);
  // The window is cut at the next instant: every minute has each schedule's run of that minute.
  expect(minutes(spread("* * * * *", 3_600_000), 3)).toEqual([200, 200, 200]);
  expect(minutes(spread("0 8 * * *", 7_200_000), 60).reduce((sum, n) => sum + n)).toBeGreaterThan(70);
});

it("the busiest minute is the first of the fullest", () => {
  const runs = (n: number) => Array.from({ length: n }, (_, k) => k);
  const minutes = new Map([
    [1, runs(2)],
    [2, runs(5)],
    [3, runs(5)],
  ]);
  expect(busiest(minutes)).toEqual({ at: 2, dueAts: runs(5) });
  expect(busiest(new Map())).toBeUndefined();
  expect(minuteOf(NINE + 59_999)).toBe(NINE);
});

it("a duration comes from the tenant's own runs, else from the workers, else from the class", () => {
  const hundred = Array.from({ length: 100 }, (_, k) => 100 - k);
  expect(expectedDuration(hundred, 7, "short")).toEqual({ p95Ms: 95, basis: "recent-runs", samples: 100 });
  expect(expectedDuration([1, 2], 7.2, "short")).toEqual({ p95Ms: 8, basis: "workers", samples: 2 });
  expect(expectedDuration([], 0, "long")).toEqual({ p95Ms: 600_000, basis: "class-default", samples: 0 });
  expect(expectedDuration([], null, "short").basis).toBe("class-default");
});
