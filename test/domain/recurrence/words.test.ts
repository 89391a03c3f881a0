import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { compileRule } from "../../../src/domain/recurrence/compile.ts";
import { describeRule, toLocal } from "../../../src/domain/recurrence/local.ts";
import { ruleWarnings } from "../../../src/domain/recurrence/warnings.ts";
import { expression, policy } from "./random-rules.ts";
import { compiled, cron, zones } from "./support.ts";

describe("an instant in local words", () => {
  it.each([
    ["America/New_York", "2026-09-23T13:00:00Z", "2026-09-23T09:00:00-04:00[America/New_York]"],
    ["UTC", "2026-09-23T13:00:00.250Z", "2026-09-23T13:00:00.250+00:00[UTC]"],
    ["Asia/Kathmandu", "2026-09-23T13:00:00Z", "2026-09-23T18:45:00+05:45[Asia/Kathmandu]"],
    ["Pacific/Marquesas", "2026-09-23T13:00:00Z", "2026-09-23T03:30:00-09:30[Pacific/Marquesas]"],
    ["America/Vancouver", "2026-12-23T13:00:00Z", "2026-12-23T06:00:00-07:00[America/Vancouver]"],
    ["Etc/GMT+5", "2026-01-01T14:00:00Z", "2026-01-01T09:00:00-05:00[Etc/GMT+5]"],
  ])("%s at %s", (zone, at, expected) => {
    expect(toLocal(zone, Date.parse(at), zones)).toBe(expected);
  });

  it("needs a zone that exists", () => {
    expect(() => toLocal("Mars/Olympus", 0, zones)).toThrow("no zone of this name");
  });
});

describe("a rule in plain English", () => {
  it.each([
    ["0 9 * * MON-FRI", "At 09:00 on Monday to Friday, UTC time"],
    ["0 9,17 * * *", "At 09:00 and 17:00, UTC time"],
    ["*/15 * * * *", "Every 15 minutes, UTC time"],
    ["*/7 * * * *", "At minutes 0, 7, …, 56 of every hour (4 minutes across the hour), UTC time"],
    ["*/40 * * * *", "At minutes 0 and 40 of every hour (20 minutes across the hour), UTC time"],
    ["3/20 * * * *", "At minutes 3, 23 and 43 of every hour, UTC time"],
    ["0-30/10 * * * *", "At minutes 0, 10, 20 and 30 of every hour, UTC time"],
    ["0 */7 * * *", "On the hour, in the hours 00:00, 07:00, 14:00 and 21:00 (3 hours across midnight), UTC time"],
    ["*/7 * * * * *", "At seconds 0, 7, …, 56 (4 seconds across the minute), every minute, UTC time"],
    ["15 8-10 * * *", "At 08:15, 09:15 and 10:15, UTC time"],
    ["0,30 */2 * * *", "Every 30 minutes, in every second hour from midnight, UTC time"],
    ["5 * * * *", "At minute 5 of every hour, UTC time"],
    ["0 0-23 * * *", "Every hour on the hour, each time of day once, UTC time"],
    ["0-59 9 * * *", "Every minute, in the hour 09:00, each time of day once, UTC time"],
    ["@hourly", "Every hour on the hour, UTC time"],
    ["* * * * *", "Every minute, UTC time"],
    ["*/10 8-18 * * SAT,SUN", "Every 10 minutes, in the hours 08:00 to 18:00 on Saturday and Sunday, UTC time"],
    ["0 */6 * * *", "On the hour, in every 6th hour from midnight, UTC time"],
    ["0 0 13 * 5", "At 00:00 on day 13 of the month or on Friday, UTC time"],
    ["0 0 */2 * 1", "At 00:00 on Monday, only where that is also one of days 1, 3, …, 31 of the month, UTC time"],
    ["0 0 1-31 * 1", "At 00:00 every day, UTC time"],
    ["0 0 L 1-3 *", "At 00:00 on the last day of the month in January to March, UTC time"],
    ["0 0 * * 5L,1#2", "At 00:00 on the last Friday of the month and the second Monday of the month, UTC time"],
    ["0 0 L-3 * *", "At 00:00 on the day 3 days before the last of the month, UTC time"],
    [
      "0 0 15W,LW * *",
      "At 00:00 on the weekday nearest day 15 of the month and the last weekday of the month, UTC time",
    ],
    ["0 0 1,15 * MON#1", "At 00:00 on days 1 and 15 of the month or on the first Monday of the month, UTC time"],
    ["0 0 */10 * *", "At 00:00 on days 1, 11, 21 and 31 of the month, UTC time"],
    [
      "0 0 L * */2",
      "At 00:00 on Tuesday, Thursday, Saturday and Sunday, only where that is also the last day of the month, UTC time",
    ],
    ["*/10 * * * * *", "Every 10 seconds, UTC time"],
    ["30 0 9 * * *", "At 09:00:30, UTC time"],
  ])("%s", (expression, expected) => {
    expect(describeRule(compiled(cron(expression)))).toBe(expected);
  });

  it("says 'every N' only of an N that divides its unit, and never loses a restriction", () => {
    fc.assert(
      fc.property(expression, policy, ({ text }, choice) => {
        const compilation = compileRule(cron(text, "UTC", choice), zones);
        if (!compilation.ok) return;
        const described = describeRule(compilation.rule);
        for (const [, n, unit] of described.matchAll(/every (\d+) (minute|second)s/gi))
          expect([unit, 60 % Number(n)]).toEqual([unit, 0]);
        for (const [, n] of described.matchAll(/every (\d+)(?:th|rd) hour/gi)) expect(24 % Number(n)).toBe(0);
        const [minute, hour, day, month, weekday] = text.split(" ");
        if (/^\d+$/.test(minute!) && /^\d+$/.test(hour!))
          expect(described).toContain(`At ${[hour, minute].map((one) => one!.padStart(2, "0")).join(":")}`);
        if (/^\d+$/.test(day!) && !(weekday === "0-6")) expect(described).toMatch(new RegExp(`\\b${day}\\b`));
        if (month === "2") expect(described).toContain("February");
      }),
      { numRuns: 2000 },
    );
  });

  it("of every other kind", () => {
    const interval = { kind: "interval", everyMs: 5_400_000, anchorAt: 0 } as const;
    expect(describeRule(compiled(interval))).toBe("Every 90 minutes, counted from 1970-01-01T00:00:00Z");
    expect(describeRule(compiled({ kind: "once", at: "2026-10-01T09:00:00Z" }))).toBe("At 2026-10-01T09:00:00Z");
    expect(describeRule(compiled({ kind: "afterCompletion", delayMs: 1000 }))).toBe(
      "1 second after the previous run ended",
    );
    expect(describeRule(compiled({ kind: "anyOf", rules: [interval, cron("0 9 * * *")] }))).toBe(
      "Every 90 minutes, counted from 1970-01-01T00:00:00Z; or at 09:00, UTC time",
    );
  });
});

it("points out where people often expect something else", () => {
  const warnings = (expression: string, choice = {}) => ruleWarnings(compiled(cron(expression, "UTC", choice))).join();
  expect(warnings("0 9 */2 * 1")).toContain("Both day fields must match");
  expect(warnings("0 9 1-31/2 * 1")).toBe("");
  expect(warnings("*/40 * * * *")).toContain("*/40 is not evenly spaced");
  expect(warnings("*/15 * * * *", { gap: "skip" })).toContain("change nothing here");
  expect(warnings("0 9 * * 1", { gap: "skip" })).toBe("");
});
