import { expect, it } from "vitest";
import { loadBundledTzData } from "../../../src/app/tz-data.ts";
import { leastGap } from "../../../src/domain/quotas/least-gap.ts";
import { compileRule } from "../../../src/domain/recurrence/compile.ts";
import { ruleSchema } from "../../../src/domain/recurrence/rule.ts";

const { zones } = loadBundledTzData();
const FROM = Date.parse("2026-11-30T10:00:00Z");
const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

function gapOf(rule: object, toAt = Number.POSITIVE_INFINITY, enough = 0): number | null {
  const compiled = compileRule(ruleSchema.parse(rule), zones);
  if (!compiled.ok) throw new Error(compiled.fault.message);
  return leastGap(compiled.rule, FROM, toAt, enough);
}
const cron = (expression: string, zone = "America/New_York", more = {}) => ({
  kind: "cron",
  expression,
  zone,
  ...more,
});

it.each([
  ["every minute", cron("* * * * *"), MINUTE],
  ["every 15 s", cron("*/15 * * * * *", "Etc/UTC", { seconds: true }), 15_000],
  ["on some minutes of an hour", cron("0,50 * * * *"), 10 * MINUTE],
  ["daily where clocks stay", cron("30 2 * * *", "Etc/UTC"), DAY],
  ["daily where clocks change: the day that is an hour short", cron("0 9 * * *"), 23 * HOUR],
  ["a time that is skipped once a year runs when the gap ends", cron("30 2 * * *"), DAY - 30 * MINUTE],
  ["an appointment just behind the gap", cron("30 2,3 * * *"), 30 * MINUTE],
  [
    "two times of which one falls into the gap and one where it ends",
    cron("45 2,3 * * *", "Europe/Berlin"),
    45 * MINUTE,
  ],
  // More than 10,000 instants lie before the change of March.
  [
    "a dense rule whose skipped times run when the gap ends",
    cron("5,20,35,50 0-23 * * *", "Europe/Berlin"),
    5 * MINUTE,
  ],
  ["monthly: February", cron("0 9 1 * *", "Etc/UTC"), 28 * DAY],
  ["leap days", cron("0 0 29 2 *", "Etc/UTC"), 1461 * DAY],
  ["an interval", { kind: "interval", everyMs: 90_000, anchorAt: 0 }, 90_000],
  ["after completion: the delay", { kind: "afterCompletion", delayMs: 5_000 }, 5_000],
  ["once: no two", { kind: "once", at: "2027-01-01T00:00:00Z" }, null],
  ["dates", { kind: "dates", at: ["2027-01-01T00:00:00Z", "2027-01-01T00:00:07Z", "2028-01-01T00:00:00Z"] }, 7_000],
  [
    "two rules that nearly meet",
    { kind: "anyOf", rules: [cron("0 0 * * *", "Etc/UTC"), { kind: "interval", everyMs: DAY, anchorAt: 5_000 }] },
    5_000,
  ],
  [
    "a rule that begins when more than 10,000 instants of another have passed",
    {
      kind: "anyOf",
      rules: [
        cron("* * * * *", "Etc/UTC"),
        { kind: "interval", everyMs: 1_000, anchorAt: Date.parse("2028-01-01T00:00:00Z") },
      ],
    },
    1_000,
  ],
  [
    "two rules that meet so late, and are no closer than the limit each by itself",
    {
      kind: "anyOf",
      rules: [cron("* * * * *", "Etc/UTC"), cron("7 * * * 6 *", "Etc/UTC", { seconds: true })],
    },
    7_000,
  ],
])("the least gap of %s", (_name, rule, expected) => {
  expect(gapOf(rule)).toBe(expected);
});

it("looks no further than the schedule goes, and no further than it needs to", () => {
  expect(gapOf(cron("0 9 * * *"), FROM + 10 * DAY)).toBe(DAY);
  expect(gapOf({ kind: "interval", everyMs: HOUR, anchorAt: 0 }, FROM + MINUTE)).toBeNull();
  expect(gapOf(cron("0,50 * * * *"), undefined, HOUR)).toBeLessThan(HOUR);
});

it("is an instant early on the shortest day for every zone that changes its clocks by an hour", () => {
  for (const zone of ["Europe/Berlin", "America/New_York", "Australia/Sydney", "America/Santiago"]) {
    expect(gapOf(cron("0 12 * * *", zone)), zone).toBe(23 * HOUR);
  }
  expect(gapOf(cron("0 12 * * *", "Australia/Lord_Howe"))).toBe(23.5 * HOUR);
});
