import { describe, expect, it } from "vitest";
import { compileRule } from "../../../src/domain/recurrence/compile.ts";
import { instants, zones } from "./support.ts";

const compile = (expression: string, zone = "UTC", seconds = false) =>
  compileRule({ kind: "cron", expression, zone, seconds }, zones);

describe("a refusal names the field and the item, and shows what was probably meant", () => {
  it.each([
    ["0 22-2 * * *", "hour", "22-2", "22-23,0-2"],
    ["0 0 * * FRI-MON", "day-of-week", "FRI-MON", "5-6,0-1"],
    ["0 0 * * 7-2", "day-of-week", "7-2", "0-2"],
    ["0 0 * NOV-FEB *", "month", "NOV-FEB", "11-12,1-2"],
    ["50-10/20 * * * *", "minute", "50-10/20", "50,10"],
    ["0 0 * * 1/2", "day-of-week", "1/2", "1-6/2"],
    ["0 9 * * Monday", "day-of-week", "MONDAY", "MON"],
    ["0 0 * * L", "day-of-week", "L", "5L"],
    ["@weekdays", "expression", "@weekdays", "0 0 * * 1-5"],
  ])("%s", (expression, field, found, suggestion) => {
    expect(compile(expression)).toMatchObject({ ok: false, fault: { field, found, suggestion } });
  });

  it.each([
    ["*/61 * * * *", "minute", "*/61"],
    ["0 */24 * * *", "hour", "*/24"],
    ["*/0 * * * *", "minute", "*/0"],
    ["1,,5 * * * *", "minute", ""],
    ["H * * * *", "minute", "H"],
    ["0 0 0 * *", "day-of-month", "0"],
    ["0 0 32W * *", "day-of-month", "32W"],
    ["0 0 L-31 * *", "day-of-month", "L-31"],
    ["0 0 1L * *", "day-of-month", "1L"],
    ["0 0 * * 5#0", "day-of-week", "5#0"],
    ["0 0 * * 8L", "day-of-week", "8L"],
    ["? * * * *", "minute", "?"],
    ["0 0 ?/2 * *", "day-of-month", "?/2"],
    ["0 0 *-5 * *", "day-of-month", "*-5"],
    ["0 0 L-30 2 *", "expression", "0 0 L-30 2 *"],
    ["0 0 31W 4 *", "expression", "0 0 31W 4 *"],
    ["15 23 * * 1-5 *", "expression", "15 23 * * 1-5 *"],
    ["0\u00a09 * * *", "expression", "0\u00a09 * * *"],
  ])("%s", (expression, field, found) => {
    expect(compile(expression)).toMatchObject({ ok: false, fault: { field, found } });
  });

  it("six fields need their switch, and the switch needs six fields", () => {
    expect(compile("0 15 23 * * 1-5", "UTC", true).ok).toBe(true);
    expect(compile("0 15 23 * * 1-5")).toMatchObject({ fault: { suggestion: expect.stringContaining("seconds") } });
    expect(compile("15 23 * * 1-5", "UTC", true)).toMatchObject({ fault: { suggestion: "0 15 23 * * 1-5" } });
    expect(compile("@daily", "UTC", true).ok).toBe(true);
  });

  it.each([
    ["america/new_york", "America/New_York"],
    ["New York", "America/New_York"],
    ["Europe/Berln", "Europe/Berlin"],
    ["UTC+5", "Etc/GMT-5"],
    ["+05:00", "Etc/GMT-5"],
    ["GMT-3", "Etc/GMT+3"],
    ["Z", "UTC"],
    [" America/New_York", "America/New_York"],
  ])("B19 zone %j", (zone, suggestion) => {
    expect(compile("0 9 * * *", zone)).toMatchObject({ ok: false, fault: { field: "zone", found: zone, suggestion } });
  });

  it.each([
    "local",
    "system",
    "default",
    "PST",
    "ACT",
    "Factory",
    "posixrules",
    "__proto__",
    "",
    "UTC+25",
    "a".repeat(64),
  ])("B19 zone %j is refused", (zone) => {
    expect(compile("0 9 * * *", zone)).toMatchObject({ ok: false, fault: { field: "zone" } });
  });
});

describe("what is accepted means what it says", () => {
  it.each([
    ["0 0 1W * *", "2025-05-31", ["2025-06-02", "2025-07-01", "2025-08-01", "2025-09-01", "2025-10-01", "2025-11-03"]],
    ["0 0 4W 5 *", "2025-01-01", ["2025-05-05"]],
    ["0 0 15W 6 *", "2024-01-01", ["2024-06-14"]],
    ["0 0 31W * *", "2026-04-30", ["2026-05-29", "2026-07-31", "2026-08-31", "2026-10-30"]],
    ["0 0 LW * *", "2025-05-01", ["2025-05-30", "2025-06-30", "2025-07-31", "2025-08-29"]],
    ["0 0 L-2,15 2 *", "2028-01-01", ["2028-02-15", "2028-02-27"]],
    ["0 0 * * 5L,1#2", "2026-05-01", ["2026-05-11", "2026-05-29", "2026-06-08"]],
    ["0 0 * * friL", "2026-05-01", ["2026-05-29"]],
    ["0 0 * * fri-Sun", "2026-05-04", ["2026-05-08", "2026-05-09", "2026-05-10", "2026-05-15"]],
    ["0 0 * * 7", "2026-05-04", ["2026-05-10"]],
    ["0 0 */10 * MON", "2026-05-01", ["2026-05-11", "2026-06-01"]],
    ["0 0 1-31 * MON", "2026-05-01", ["2026-05-02", "2026-05-03"]],
    ["@Monthly", "2026-05-01", ["2026-06-01"]],
  ])("B04 %s", (expression, from, days) => {
    const rule = { kind: "cron" as const, expression, zone: "UTC" };
    expect(instants(rule, `${from}T00:00:00Z`, days.length).map((at) => at.slice(0, 10))).toEqual(days);
  });
});
