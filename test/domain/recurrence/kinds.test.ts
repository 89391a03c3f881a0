import { describe, expect, it } from "vitest";
import { compileRule } from "../../../src/domain/recurrence/compile.ts";
import { nextAfter } from "../../../src/domain/recurrence/next.ts";
import { type Rule, ruleSchema } from "../../../src/domain/recurrence/rule.ts";
import { compiled, cron, instants, zones } from "./support.ts";

function fault(rule: Rule) {
  const compilation = compileRule(rule, zones);
  if (compilation.ok) throw new Error("The rule was accepted");
  return compilation.fault;
}

describe("an interval", () => {
  const rule: Rule = { kind: "interval", every: { n: 15, unit: "minutes" }, anchorAt: "2026-10-25T00:05:00Z" };

  it("begins at its anchor and counts elapsed time through a clock change", () => {
    expect(instants(rule, "2020-01-01T00:00:00Z", 2)).toEqual(["2026-10-25T00:05:00.000Z", "2026-10-25T00:20:00.000Z"]);
    expect(instants(rule, "2026-10-25T00:20:00Z", 1)).toEqual(["2026-10-25T00:35:00.000Z"]);
  });

  it("B10 has no idea of clock changes: 96 runs on every day of 24 hours of elapsed time", () => {
    const after = Date.parse("2026-11-01T00:00:00Z");
    const day = instants({ ...rule, anchorAt: 0 }, new Date(after).toISOString(), 97);
    expect(day.at(96)).toBe(new Date(after + 97 * 900_000).toISOString());
  });

  it("never loses an instant to rounding, however long it has been running", () => {
    const every = compiled({ kind: "interval", everyMs: 1, anchorAt: 0 });
    const at = 200_000_000_000_000;
    expect(nextAfter(every, at - 0.5)).toBe(at);
    expect(nextAfter(every, at)).toBe(at + 1);
  });

  it("is not offered more often than once a second", () => {
    const ofMs = (everyMs: number) => ruleSchema.safeParse({ kind: "interval", everyMs, anchorAt: 0 }).success;
    expect([999, 1000].map(ofMs)).toEqual([false, true]);
  });

  it("needs exactly one length, at most a century", () => {
    expect(fault({ kind: "interval", anchorAt: 0 })).toMatchObject({ field: "everyMs", found: "neither" });
    expect(fault({ kind: "interval", everyMs: 1000, every: { n: 1, unit: "days" }, anchorAt: 0 }).found).toBe("both");
    expect(fault({ kind: "interval", every: { n: 1_000_000, unit: "days" }, anchorAt: 0 }).field).toBe("every");
    expect(fault({ kind: "interval", everyMs: 1000, anchorAt: "soon" }).field).toBe("anchorAt");
    expect(fault({ kind: "interval", everyMs: 1000, anchorAt: 9e15 }).field).toBe("anchorAt");
  });
});

describe("once and dates", () => {
  it("a single instant comes once", () => {
    expect(instants({ kind: "once", at: "2026-10-01T09:00:00+02:00" }, "2026-01-01T00:00:00Z", 2)).toEqual([
      "2026-10-01T07:00:00.000Z",
    ]);
  });

  it.each([
    ["an ordinary local time", "2026-07-01T09:00", "2026-07-01T13:00:00.000Z"],
    ["a skipped one comes when the gap ends", "2026-03-08T02:30:00.5", "2026-03-08T07:00:00.000Z"],
    ["a repeated one comes in its first pass", "2026-11-01 01:30", "2026-11-01T05:30:00.000Z"],
  ])("a local time in a zone: %s", (_, at, expected) => {
    expect(instants({ kind: "once", at, zone: "America/New_York" }, "2026-01-01T00:00:00Z", 2)).toEqual([expected]);
  });

  it("a list comes in order, each instant once", () => {
    const at = ["2026-12-24T10:00:00Z", "2026-02-01T10:00:00Z", "2026-12-24T11:00:00+01:00"];
    expect(instants({ kind: "dates", at }, "2026-01-01T00:00:00Z", 5)).toEqual([
      "2026-02-01T10:00:00.000Z",
      "2026-12-24T10:00:00.000Z",
    ]);
  });

  it.each([
    ["2026-10-01T09:00", undefined, "not one instant"],
    ["2026-10-01T09:00Z", "UTC", "contradict"],
    ["2026-02-29T09:00Z", undefined, "no such date"],
    ["2026-02-28T24:00Z", undefined, "no such time"],
    ["2026-02-28T09:00+99:00", undefined, "no such offset"],
    ["tomorrow", undefined, "not a date"],
    ["2026-10-01T09:00", "Mars/Olympus", "no zone"],
  ])("%s in %s is refused", (at, zone, message) => {
    expect(fault({ kind: "once", at, ...(zone === undefined ? {} : { zone }) }).message).toContain(message);
  });
});

describe("any of several rules", () => {
  it("is due once at an instant that two of them share", () => {
    const rule: Rule = { kind: "anyOf", rules: [cron("0 9 * * *"), cron("0 9 * * MON"), cron("30 9 1 1 *")] };
    expect(instants(rule, "2026-01-01T00:00:00Z", 3)).toEqual([
      "2026-01-01T09:00:00.000Z",
      "2026-01-01T09:30:00.000Z",
      "2026-01-02T09:00:00.000Z",
    ]);
  });

  it("says which of them is at fault", () => {
    const rules = [cron("0 9 * * *"), cron("0 25 * * *")];
    expect(fault({ kind: "anyOf", rules })).toMatchObject({ field: "rules.1.hour", found: "25" });
    expect(fault({ kind: "anyOf", rules: [{ kind: "afterCompletion", delayMs: 1 }] }).field).toBe("rules.0.kind");
  });

  it("holds at most sixteen", () => {
    const rules = Array.from({ length: 17 }, () => cron("0 9 * * *"));
    expect(ruleSchema.safeParse({ kind: "anyOf", rules }).success).toBe(false);
    expect(ruleSchema.safeParse({ kind: "anyOf", rules: rules.slice(1) }).success).toBe(true);
  });
});

it("a rule that follows completions has no instants of its own", () => {
  expect(nextAfter(compiled({ kind: "afterCompletion", delayMs: 1000 }), 0)).toBeNull();
});

it("nothing is due after the last instant that RFC 3339 can write", () => {
  const last = Date.parse("9999-12-31T23:59:00Z");
  for (const zone of ["UTC", "America/New_York"]) {
    const everyMinute = compiled(cron("* * * * *", zone));
    expect(nextAfter(everyMinute, last - 1)).toBe(last);
    expect(nextAfter(everyMinute, last)).toBeNull();
  }
});

it("B01 the thirteenth or a Friday has 61 runs in 2026", () => {
  const found = instants(cron("0 0 13 * 5"), "2025-12-31T23:59:59Z", 70).filter((at) => at.startsWith("2026"));
  expect(found).toHaveLength(61);
});

it.each([
  ["2026-11-01T03:59:59Z", "2026-11-02T05:00:00Z", 100],
  ["2026-03-08T04:59:59Z", "2026-03-09T04:00:00Z", 92],
])("B10 every quarter of an hour of the local day that begins after %s", (from, to, count) => {
  const found = instants(cron("*/15 * * * *", "America/New_York"), from, 120);
  expect(found.filter((at) => at < new Date(to).toISOString())).toHaveLength(count);
});

it("a choice of overlap decides between the passes of a repeated time", () => {
  const of = (overlap: "first" | "last" | "both") =>
    instants(cron("30 1 * * *", "America/New_York", { overlap }), "2026-11-01T00:00:00Z", 2).map((at) =>
      at.slice(8, 16),
    );
  expect(of("first")).toEqual(["01T05:30", "02T06:30"]);
  expect(of("last")).toEqual(["01T06:30", "02T06:30"]);
  expect(of("both")).toEqual(["01T05:30", "01T06:30"]);
});
