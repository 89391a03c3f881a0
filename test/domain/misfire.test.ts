import { describe, expect, it } from "vitest";
import type { Misfire } from "../../src/domain/definition.ts";
import { type NextAfter, newestBefore } from "../../src/domain/planning/look-back.ts";
import { type DuePlan, planDue } from "../../src/domain/planning/misfire.ts";

const MINUTE = 60_000;
const T0 = Date.UTC(2026, 4, 4);

/** Every `stepMs` from `anchor`, counting its calls. */
function every(stepMs: number, anchor = T0, endAt = Number.POSITIVE_INFINITY) {
  const calls = { count: 0 };
  const next: NextAfter = (at) => {
    calls.count++;
    const found = anchor + Math.max(0, Math.floor((at - anchor) / stepMs) + 1) * stepMs;
    return found >= endAt ? null : found;
  };
  return { next, calls };
}

const policy = (change: Partial<Misfire> = {}): Misfire => ({
  policy: "latest",
  graceMs: MINUTE,
  maxCatchUp: 100,
  ...change,
});
const options = { floorAt: 0, missedReason: "misfire" as const };

/** Every instant that a plan accounts for, in order. */
function accounted(plan: DuePlan, next: NextAfter): number[] {
  const seen = plan.runs.map((run) => run.at);
  for (const skip of plan.skips) {
    if (skip.kind === "instant") seen.push(skip.at);
    else for (let at: number | null = skip.fromAt; at !== null && at <= skip.toAt; at = next(at)) seen.push(at);
  }
  return seen.sort((a, b) => a - b);
}

describe("what is due after a while away", () => {
  const rule = every(MINUTE);
  const firstAt = T0 + MINUTE;

  it.each(["latest", "skip", "all"] as const)(
    "%s: every instant is a run, a skip or inside a range, exactly once",
    (name) => {
      for (const minutes of [0.5, 1, 1.5, 2, 3.2, 4, 5, 61.3, 500]) {
        for (const graceMs of [0, 1, 90_000, 3_600_000]) {
          const nowAt = firstAt + minutes * MINUTE + 0.123;
          const plan = planDue(firstAt, nowAt, policy({ policy: name, graceMs, maxCatchUp: 3 }), rule.next, options);
          const expected: number[] = [];
          for (let at = firstAt; at <= nowAt; at += MINUTE) expected.push(at);
          expect(accounted(plan, rule.next)).toEqual(expected);
          expect(plan.next).toBe(expected.at(-1)! + MINUTE);
          expect(plan.lastNominalAt).toBe(expected.at(-1));
        }
      }
    },
  );

  it("within the grace everything simply runs, whatever the policy", () => {
    for (const name of ["latest", "skip", "all"] as const) {
      const plan = planDue(
        firstAt,
        firstAt + 2 * MINUTE,
        policy({ policy: name, graceMs: 2 * MINUTE }),
        rule.next,
        options,
      );
      expect(plan.runs.map((run) => run.late)).toEqual([false, false, false]);
      expect(plan.skips).toEqual([]);
    }
  });

  it("where nothing runs, every instant is a skip, on time or late, due later or in the middle of a catch-up", () => {
    const nothing = { floorAt: 0, missedReason: "paused" as const, nothingRuns: true };
    const catchUp = { untilAt: T0 + 5 * MINUTE, done: 1, reason: "misfire" as const };
    const place = (at: number) =>
      at % (2 * MINUTE) === 0
        ? { kind: "due" as const, dueAt: at + 86_400_000 }
        : { kind: "skip" as const, reason: "calendar" as const };
    for (const name of ["latest", "skip", "all"] as const) {
      for (const minutes of [0, 1, 7.5, 500]) {
        for (const more of [{}, { catchUp }, { offset: () => 59_000 }, { place }]) {
          const nowAt = firstAt + minutes * MINUTE + 0.5;
          const plan = planDue(firstAt, nowAt, policy({ policy: name }), rule.next, { ...nothing, ...more });
          expect([plan.runs, plan.catchUp]).toEqual([[], undefined]);
          expect(accounted(plan, rule.next)).toHaveLength(Math.floor(minutes) + 1);
          expect(plan.next).toBe(firstAt + Math.floor(minutes + 1) * MINUTE);
          const reasons = new Set(plan.skips.map((skip) => skip.reason));
          if (!("place" in more)) expect([...reasons]).toEqual(["paused"]);
          else expect([...reasons].sort()).toEqual(minutes === 0 ? ["calendar"] : ["calendar", "paused"]);
        }
      }
    }
  });

  it("1.8 s late is not a misfire; 61 s late is, under a grace of a minute", () => {
    const daily = every(86_400_000);
    expect(planDue(T0, T0 + 1800, policy({ policy: "skip" }), daily.next, options).runs).toMatchObject([
      { at: T0, late: false },
    ]);
    const late = planDue(T0, T0 + 61_000, policy({ policy: "skip" }), daily.next, options);
    expect(late).toMatchObject({
      runs: [],
      skips: [{ kind: "instant", at: T0, reason: "misfire" }],
      next: T0 + 86_400_000,
    });
  });

  it("B21 latest, under the default grace: the newest instant runs anyway, so of the missed ones none does", () => {
    const nowAt = Date.UTC(2026, 4, 4, 8, 20, 30);
    const plan = planDue(firstAt, nowAt, policy(), rule.next, options);
    expect(plan.runs).toMatchObject([{ at: Date.UTC(2026, 4, 4, 8, 20), late: false }]);
    expect(plan.skips).toEqual([
      { kind: "range", fromAt: firstAt, toAt: Date.UTC(2026, 4, 4, 8, 19), instants: 499, reason: "misfire" },
    ]);
    expect(plan.next).toBe(Date.UTC(2026, 4, 4, 8, 21));
  });

  it("500 missed minutes: latest runs one and tells of the other 499 in one range", () => {
    const nowAt = T0 + 500.5 * MINUTE;
    const plan = planDue(firstAt, nowAt, policy({ graceMs: 0 }), rule.next, options);
    expect(plan.runs).toMatchObject([{ at: T0 + 500 * MINUTE, late: true }]);
    expect(plan.skips).toEqual([
      { kind: "range", fromAt: firstAt, toAt: T0 + 499 * MINUTE, instants: 499, reason: "misfire" },
    ]);
    expect(plan.next).toBe(T0 + 501 * MINUTE);
  });

  it("all: the oldest up to the limit, in order; what is on time beyond them runs as well", () => {
    const nowAt = T0 + 10.5 * MINUTE;
    const plan = planDue(
      firstAt,
      nowAt,
      policy({ policy: "all", graceMs: 2 * MINUTE, maxCatchUp: 4 }),
      rule.next,
      options,
    );
    expect(plan.runs.map((run) => [(run.at - T0) / MINUTE, run.late])).toEqual([
      [1, true],
      [2, true],
      [3, true],
      [4, true],
      [9, false],
      [10, false],
    ]);
    expect(plan.skips).toMatchObject([{ kind: "range", fromAt: T0 + 5 * MINUTE, toAt: T0 + 8 * MINUTE, instants: 4 }]);
  });

  it("three skipped instants are rows, four are a range", () => {
    const skipping = policy({ policy: "skip", graceMs: 0 });
    expect(planDue(firstAt, T0 + 3.5 * MINUTE, skipping, rule.next, options).skips.map((skip) => skip.kind)).toEqual([
      "instant",
      "instant",
      "instant",
    ]);
    expect(planDue(firstAt, T0 + 4.5 * MINUTE, skipping, rule.next, options).skips.map((skip) => skip.kind)).toEqual([
      "range",
    ]);
  });

  it("an instant late by a fraction of a millisecond is not lost between the two sides of the grace", () => {
    const daily = every(86_400_000);
    for (const fraction of [0, 0.001, 0.5, 0.999]) {
      const plan = planDue(T0, T0 + 1000 + fraction, policy({ policy: "skip", graceMs: 1000 }), daily.next, options);
      expect(accounted(plan, daily.next)).toEqual([T0]);
      expect(plan.lastNominalAt).toBe(T0);
      expect(plan.runs.length).toBe(fraction === 0 ? 1 : 0);
    }
  });

  it.each(["latest", "skip", "all"] as const)(
    "%s: a two-year gap of a minutely rule asks the rule few times",
    (name) => {
      const away = every(MINUTE);
      const nowAt = T0 + 2 * 365 * 86_400_000;
      const plan = planDue(firstAt, nowAt, policy({ policy: name, graceMs: 0, maxCatchUp: 10 }), away.next, options);
      expect(away.calls.count).toBeLessThan(2_000);
      expect(plan.next).toBe(nowAt + MINUTE);
      const range = plan.skips.find((skip) => skip.kind === "range")!;
      expect(range).toMatchObject({ instants: null });
      const lastAt = Math.max(range.toAt, ...plan.runs.map((run) => run.at));
      expect(lastAt).toBe(nowAt);
    },
  );

  it("looking back from the end of a long gap costs a few questions", () => {
    const rare = every(86_400_000);
    expect(newestBefore(T0, T0 + 10 * 365 * 86_400_000 + 5, rare.next)).toBe(T0 + 10 * 365 * 86_400_000);
    expect(rare.calls.count).toBeLessThan(60);
  });

  it("the newest instant before an end is strictly before it", () => {
    const rule = every(MINUTE);
    expect(newestBefore(T0, T0 + 5 * MINUTE, rule.next)).toBe(T0 + 4 * MINUTE);
    expect(newestBefore(T0, T0 + 1, rule.next)).toBe(T0);
    const bursts: NextAfter = (at) => {
      // Ten seconds in a row, once an hour.
      const hour = Math.floor(at / 3_600_000) * 3_600_000;
      const second = Math.floor((at - hour) / 1000) + 1;
      return second < 10 ? hour + second * 1000 : hour + 3_600_000;
    };
    expect(newestBefore(T0, T0 + 24 * 3_600_000, bursts)).toBe(T0 + 23 * 3_600_000 + 9000);
  });

  it("a rule that ends in the gap leaves nothing further", () => {
    const ending = every(MINUTE, T0, T0 + 3 * MINUTE);
    const plan = planDue(firstAt, T0 + 60 * MINUTE, policy({ graceMs: 0 }), ending.next, options);
    expect(plan).toMatchObject({
      runs: [{ at: T0 + 2 * MINUTE, late: true }],
      next: null,
      lastNominalAt: T0 + 2 * MINUTE,
    });
    expect(plan.skips).toEqual([{ kind: "instant", at: firstAt, reason: "misfire" }]);
  });

  it("below the floor of history there are only ranges, even for one instant", () => {
    const floorAt = T0 + 1.5 * MINUTE;
    const plan = planDue(firstAt, T0 + 2.5 * MINUTE, policy({ graceMs: 0 }), rule.next, { ...options, floorAt });
    expect(plan.skips).toEqual([
      { kind: "range", fromAt: firstAt, toAt: firstAt, instants: 1, reason: "history-floor" },
    ]);
    expect(plan.runs).toMatchObject([{ at: T0 + 2 * MINUTE, late: true }]);
  });
});

it("a plan is bounded: a second's rule with a long grace is settled in several, none lost", () => {
  const next = (at: number) => Math.floor(at / 1000) * 1000 + 1000;
  const policy = { policy: "latest" as const, graceMs: 86_400_000, maxCatchUp: 100 };
  const seen: number[] = [];
  let firstAt: number | null = 1_000_000;
  const nowAt = 1_000_000 + 4_999_000;
  let plans = 0;
  while (firstAt !== null && firstAt <= nowAt) {
    const plan = planDue(firstAt, nowAt, policy, next, { floorAt: 0, missedReason: "misfire" });
    expect(plan.runs.length).toBeLessThanOrEqual(1000);
    seen.push(...plan.runs.map((run) => run.at));
    firstAt = plan.next;
    plans++;
  }
  expect(plans).toBe(5);
  expect(seen).toEqual(Array.from({ length: 5000 }, (_, i) => 1_000_000 + i * 1000));
});
