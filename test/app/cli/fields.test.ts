import { expect, test } from "vitest";
import { sentenceOf } from "../../../src/app/cli/field-fault.ts";
import { type FieldOptions, readFields } from "../../../src/app/cli/schedules/field-options.ts";
import { showRule } from "../../../src/app/cli/words.ts";

const CRON = { kind: "cron", expression: "0 9 * * 1-5", zone: "America/New_York", gap: "skip" };
const ruleOf = (options: FieldOptions, current?: typeof CRON) => readFields(options, current).rule;

test("any rule can be given: cron, an interval, instants, the end of the run before, or as the API takes it", () => {
  expect(ruleOf({ cron: "@daily", tz: "Etc/UTC" })).toEqual({ kind: "cron", expression: "@daily", zone: "Etc/UTC" });
  expect(ruleOf({ every: "15m", anchor: "2027-01-01T00:00:00Z" })).toEqual({
    kind: "interval",
    every: { n: 15, unit: "minutes" },
    anchorAt: "2027-01-01T00:00:00Z",
  });
  expect(ruleOf({ every: "6h" })?.anchorAt).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/);
  expect(ruleOf({ at: ["2031-05-01T09:00"], tz: "Europe/Berlin" })).toEqual({
    kind: "once",
    at: "2031-05-01T09:00",
    zone: "Europe/Berlin",
  });
  const two = ["2031-05-01T09:00:00Z", "2031-06-01T09:00:00Z"];
  expect(ruleOf({ at: two })).toEqual({ kind: "dates", at: two });
  expect(ruleOf({ afterCompletion: "90s" })).toEqual({ kind: "afterCompletion", delayMs: 90_000 });
  expect(ruleOf({ rule: '{"kind":"interval","everyMs":5000,"anchorAt":0}' })).toMatchObject({ everyMs: 5000 });
});

test("rules that contradict each other, or say nothing, are refused with the option that is wrong", () => {
  expect(() => ruleOf({ every: "5m", at: ["2031-05-01T09:00:00Z"] })).toThrow("found 2 of them; allowed: one");
  expect(() => ruleOf({ every: "soon" })).toThrow('--every: found "soon"; allowed: a whole number and s, m, h or d');
  expect(() => ruleOf({ every: "5m", tz: "Etc/UTC" })).toThrow("--tz: found with a rule that has no clock");
  expect(() => ruleOf({ cron: "@daily" })).toThrow("--tz <zone>: not given");
  expect(() => ruleOf({ anchor: "2031-05-01T09:00:00Z" })).toThrow("--anchor: found without --every");
  expect(() => ruleOf({ tz: "Etc/UTC" })).toThrow("--tz: found without a rule");
  expect(() => ruleOf({ rule: "[]" })).toThrow("--rule: is no JSON object");
  expect(() => readFields({ set: '{"payload":{}}' })).toThrow("that one is given with --payload");
});

test("an edit of a cron rule's expression or zone keeps what else the rule says", () => {
  expect(ruleOf({ cron: "0 10 * * *" }, CRON)).toEqual({ ...CRON, expression: "0 10 * * *" });
  expect(ruleOf({ tz: "Etc/UTC" }, CRON)).toEqual({ ...CRON, zone: "Etc/UTC" });
  expect(ruleOf({ every: "1d", anchor: "2027-01-01T00:00:00Z" }, CRON)).not.toHaveProperty("zone");
  expect(readFields({ set: '{"notes":null}' }, CRON)).toEqual({ notes: null });
});

test("a rule is said in words, its durations too", () => {
  expect(showRule({ kind: "afterCompletion", delayMs: 45_000 })).toBe("45 s after the last run ended");
  expect(showRule({ kind: "once", at: "2031-05-01T09:00", zone: "Europe/Berlin" })).toBe(
    "once at 2031-05-01T09:00 Europe/Berlin",
  );
  expect(showRule({ kind: "interval", everyMs: 5_400_000, anchorAt: 0 })).toBe("every 90 min");
  expect(showRule({ kind: "interval", every: { n: 1, unit: "days" }, anchorAt: 0 })).toBe("every day");
  const two = ["2031-05-01T09:00:00Z", "2031-06-01T09:00:00Z"];
  expect(showRule({ kind: "anyOf", rules: [CRON, { kind: "dates", at: two }] })).toBe(
    "0 9 * * 1-5 America/New_York, or once at each of 2 dates",
  );
});

test("a fault of the API names the option that fills the field", () => {
  const optionOf = (field: string) => /\((--[a-z-]+)\)/.exec(sentenceOf({ field, message: "is wrong" }))?.[1];
  expect(optionOf("rule.zone")).toBe("--tz");
  expect(optionOf("rule.minute")).toBe("--cron");
  expect(optionOf("rule.at[1]")).toBe("--at");
  expect(optionOf("rule.every.n")).toBe("--every");
  expect(optionOf("payload.a.b")).toBe("--payload");
  const allowed = "none: make one with PUT /v1/calendars/{name}";
  expect(sentenceOf({ field: "calendars[0].name", message: "there is none", allowed })).toBe(
    "calendars[0].name (--calendar): there is none; allowed: none: make one with punctual calendars put",
  );
});
