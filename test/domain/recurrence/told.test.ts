/** What the cases that broke other schedulers tell beside their rows. */
import { describe, expect, it } from "vitest";
import { compileRule } from "../../../src/domain/recurrence/compile.ts";
import { nextAfter } from "../../../src/domain/recurrence/next.ts";
import type { Rule } from "../../../src/domain/recurrence/rule.ts";
import { compiled, countingLooks, cron, instants, zones } from "./support.ts";

/** All instants in [from, until). */
function within(rule: Rule, from: string, until: string): string[] {
  const ready = compiled(rule);
  const found: string[] = [];
  for (
    let at = nextAfter(ready, Date.parse(from) - 1);
    at !== null && at < Date.parse(until);
    at = nextAfter(ready, at)
  )
    found.push(new Date(at).toISOString());
  return found;
}

const accepts = (expression: string, zone = "UTC", more = {}) =>
  compileRule({ kind: "cron", expression, zone, ...more }, zones).ok;

describe("told beside the rows", () => {
  it("B01 the 13th or a Friday: 61 runs in 2026, the day that is both once", () => {
    const runs = within(cron("0 0 13 * 5"), "2026-01-01T00:00:00Z", "2027-01-01T00:00:00Z");
    expect(runs).toHaveLength(61);
    expect(runs.filter((at) => at.startsWith("2026-02-13"))).toHaveLength(1);
  });

  it("B02 a date that never comes is refused, one that is rare is found, with few looks at the zone", () => {
    const counted = countingLooks();
    for (const never of ["0 0 30 2 *", "0 0 31 2,4,6,9,11 *", "0 0 31 4 *"]) expect(accepts(never), never).toBe(false);
    expect(instants(cron("0 9 29 2 *"), "2096-03-01T00:00:00Z", 1, counted.zones)).toEqual([
      "2104-02-29T09:00:00.000Z",
    ]);
    expect(instants(cron("0 0 * 2 1#5"), "2026-01-01T00:00:00Z", 1, counted.zones)).toEqual([
      "2044-02-29T00:00:00.000Z",
    ]);
    expect(accepts("0 0 30 2 1")).toBe(true);
    // Measured: 30. There are 9,600 days in between.
    expect(counted.looks()).toBeLessThan(100);
  });

  it.each([
    ["1W", "2025-06-01", "2025-06-02"],
    ["1W", "2025-11-01", "2025-11-03"],
    ["4W", "2025-05-01", "2025-05-05"],
    ["15W", "2024-06-01", "2024-06-14"],
    ["LW", "2025-05-01", "2025-05-30"],
    ["LW", "2025-08-01", "2025-08-29"],
  ])("B04 %s of the month of %s is %s, and stays in that month", (day, from, date) => {
    const justBefore = new Date(Date.parse(`${from}T00:00:00Z`) - 1).toISOString();
    expect(instants(cron(`0 0 ${day} * *`), justBefore, 1)).toEqual([`${date}T00:00:00.000Z`]);
  });

  it("B07 exactly five fields, or six where seconds are asked for; nothing else is stored", () => {
    for (const wrong of [
      "",
      "   ",
      "0 9 * *",
      "15 23 * * 1-5 *",
      "0 9 1 1 * 2027",
      "* * * * * *",
      "@reboot",
      "H H * * *",
      "0 9 * * Monday",
      "60 * * * *",
      "0 24 * * *",
      "0 0 0 * *",
      "0 0 * 13 *",
      "0 9 * * 8",
    ])
      expect(accepts(wrong), JSON.stringify(wrong)).toBe(false);
    expect(accepts("@yearly")).toBe(true);
    expect(accepts("* * * * * *", "UTC", { seconds: true })).toBe(true);
    expect(accepts("0 9 * * *", "UTC", { seconds: true })).toBe(false);
  });

  it("B09 asked again between the two 01:30s, and asked for a window over both, a fixed time is the first one alone", () => {
    const rule = cron("30 1 * * *", "America/New_York");
    expect(instants(rule, "2026-11-01T05:45:00Z", 1)).toEqual(["2026-11-02T06:30:00.000Z"]);
    expect(within(rule, "2026-11-01T05:00:00Z", "2026-11-01T08:00:00Z")).toEqual(["2026-11-01T05:30:00.000Z"]);
  });

  it("B10 every quarter of an hour: 100 on the day of 25 hours, 92 on that of 23; elapsed time does not notice", () => {
    const quarters = cron("*/15 * * * *", "America/New_York");
    const elapsed: Rule = { kind: "interval", everyMs: 900_000, anchorAt: 0 };
    const long = ["2026-11-01T04:00:00Z", "2026-11-02T05:00:00Z"] as const;
    const short = ["2026-03-08T05:00:00Z", "2026-03-09T04:00:00Z"] as const;
    for (const rule of [quarters, elapsed]) {
      expect(within(rule, ...long)).toHaveLength(100);
      expect(within(rule, ...short)).toHaveLength(92);
    }
  });

  it("B12 each answer is strictly later than the question, at and around every midnight that did not exist", () => {
    for (const [zone, at] of [
      ["America/Sao_Paulo", "2018-11-04T03:00:00Z"],
      ["America/Santiago", "2022-09-11T04:00:00Z"],
      ["Africa/Cairo", "2023-04-27T22:00:00Z"],
      ["Asia/Beirut", "2023-03-29T22:00:00Z"],
    ] as const) {
      for (const expression of ["0 0 * * *", "30 0 * * *", "*/20 * * * *", "30 23 * * *"]) {
        const ready = compiled(cron(expression, zone));
        for (let from = Date.parse(at) - 7_200_000; from <= Date.parse(at) + 7_200_000; from += 300_000)
          expect(nextAfter(ready, from)!).toBeGreaterThan(from);
      }
    }
  });

  it("B19 only names of the tz database, in their own case", () => {
    for (const zone of ["UTC+5", "GMT+5", "+05:00", "", "local", "system", "Mars/Olympus", "america/new_york"])
      expect(accepts("0 9 * * *", zone), zone).toBe(false);
    for (const zone of ["Etc/GMT+5", "Etc/GMT-5", "Europe/Kyiv"]) expect(accepts("0 9 * * *", zone), zone).toBe(true);
  });
});
