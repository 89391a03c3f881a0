import { describe, expect, it } from "vitest";
import { type Definition, definitionSchema } from "../../src/domain/definition.ts";
import {
  bounded,
  type Cursor,
  type MaterializationPlan,
  planMaterialization,
} from "../../src/domain/materialization.ts";
import type { OpenRun } from "../../src/domain/overlap.ts";
import { followingAt } from "../../src/domain/planning/told-ends.ts";
import { nextNominal, timetableOf } from "../../src/domain/preview/timetable.ts";
import { instantOf } from "../../src/kernel/ids.ts";

const MINUTE = 60_000;
const T0 = Date.UTC(2026, 4, 4);
const SCHEDULE = "01920000-0000-8000-8000-000000000001";
const everyMinute = (at: number) => (Math.floor(at / MINUTE) + 1) * MINUTE;

const definition = (change: object = {}): Definition =>
  definitionSchema.parse({
    rule: { kind: "cron", expression: "* * * * *", zone: "Etc/UTC" },
    job: { kind: "function", name: "test.noop" },
    overlap: { policy: "allow" },
    misfire: { graceMs: 0 },
    ...change,
  });
const cursor = (change: Partial<Cursor> = {}): Cursor => ({
  scheduleId: SCHEDULE,
  tenantId: "t",
  revision: 3,
  nextRunAt: T0,
  lastNominalAt: undefined,
  runsMade: 0,
  ...change,
});
const plan = (change: object, minutes: number, from: Partial<Cursor> = {}, open: readonly OpenRun[] = []) =>
  planMaterialization(cursor(from), definition(change), everyMinute, open, T0 + minutes * MINUTE, {
    floorAt: 0,
    missedReason: "misfire",
  });
const at = (instant: number | null) => (instant === null ? null : (instant - T0) / MINUTE);

/** Runs, skips and ranges by time, each with the one before it. */
function links(made: MaterializationPlan) {
  return [
    ...made.runs.map((run) => ({ from: at(run.scheduledAt), to: at(run.scheduledAt), prev: at(run.prevScheduledAt) })),
    ...made.skips.map((skip) => ({
      from: at(skip.scheduledAt),
      to: at(skip.scheduledAt),
      prev: at(skip.prevScheduledAt),
    })),
    ...made.ranges.map((range) => ({ from: at(range.fromAt), to: at(range.toAt), prev: at(range.prevScheduledAt) })),
  ].sort((a, b) => a.from! - b.from!);
}

describe("one pass over one schedule", () => {
  it.each([
    ["latest", 10.5],
    ["skip", 2.5],
    ["all", 7.5],
  ])("policy %s: each nominal instant names the one before it", (policy, minutes) => {
    const made = plan({ misfire: { policy, graceMs: 1.5 * MINUTE, maxCatchUp: 3 } }, minutes, {
      lastNominalAt: T0 - MINUTE,
    });
    let before: number | null = -1;
    for (const link of links(made)) {
      expect(link.prev).toBe(before);
      expect(link.from).toBe(before! + 1);
      before = link.to;
    }
    expect(at(made.next.lastNominalAt)).toBe(before);
    expect(at(made.next.runAt)).toBe(before! + 1);
  });

  it("a chain begins with nothing before it", () => {
    expect(links(plan({}, 0.5))).toEqual([{ from: 0, to: 0, prev: null }]);
  });

  it("runs carry their instant in their id, the revision, and how they came to be", () => {
    const { runs } = plan(
      { priority: "strict", startDeadlineMs: 5000, misfire: { policy: "all", graceMs: MINUTE } },
      2.5,
    );
    expect(
      runs.map((run) => [at(instantOf(run.id)), run.revision, run.trigger, run.lane, run.startDeadlineAt! - run.dueAt]),
    ).toEqual([
      [0, 3, "catch-up", 2, 5000],
      [1, 3, "catch-up", 2, 5000],
      [2, 3, "schedule", 0, 5000],
    ]);
    expect(plan({}, 2.5).runs[0]!.id).toBe(plan({}, 2.9).runs[0]!.id);
  });

  it("overlap skips are told, in the chain", () => {
    const made = plan({ overlap: { policy: "skip" }, misfire: { graceMs: 5 * MINUTE } }, 2.5);
    expect(made.runs.map((run) => at(run.scheduledAt))).toEqual([0]);
    expect(made.skips.map((skip) => [at(skip.scheduledAt), skip.reason, at(skip.prevScheduledAt)])).toEqual([
      [1, "overlap", 0],
      [2, "overlap", 1],
    ]);
    expect(made.next.runsMade).toBe(1);
  });

  it("a number of runs is kept: the last one finishes the schedule, and nothing after it is told as skipped", () => {
    const on = plan({ maxRuns: 2, misfire: { graceMs: 10 * MINUTE } }, 5.5);
    expect(on.runs.map((run) => at(run.scheduledAt))).toEqual([0, 1]);
    expect(on).toMatchObject({
      finished: true,
      next: { runAt: null, runsMade: 2, lastNominalAt: T0 + MINUTE },
      skips: [],
      ranges: [],
    });
    const late = plan({ maxRuns: 2, misfire: { policy: "all", graceMs: 0, maxCatchUp: 2 } }, 9.5);
    expect(late.runs.map((run) => at(run.scheduledAt))).toEqual([0, 1]);
    expect(late).toMatchObject({ finished: true, skips: [], ranges: [], next: { lastNominalAt: T0 + MINUTE } });
  });

  it("skips do not count as runs: what could not be taken yet is planned anew from where it was left", () => {
    const made = plan({ maxRuns: 3, overlap: { policy: "skip" }, misfire: { graceMs: 10 * MINUTE } }, 5.5, {
      runsMade: 1,
    });
    expect(made.runs.map((run) => at(run.scheduledAt))).toEqual([0]);
    expect(made.skips.map((skip) => at(skip.scheduledAt))).toEqual([1]);
    expect(made).toMatchObject({
      finished: false,
      next: { runAt: T0 + 2 * MINUTE, lastNominalAt: T0 + MINUTE, runsMade: 2 },
    });
  });

  it("a missed range before the last run is told, one after it is not", () => {
    const made = plan({ maxRuns: 1, misfire: { policy: "latest", graceMs: 0 } }, 9.5);
    expect(made.ranges).toMatchObject([{ fromAt: T0, toAt: T0 + 8 * MINUTE }]);
    expect(made.runs.map((run) => at(run.scheduledAt))).toEqual([9]);
    expect(made.finished).toBe(true);
  });

  it("no schedule goes on after 9999-12-01: a window and a deadline are counted on from its instants", () => {
    const lastAt = Date.UTC(9999, 11, 1);
    const daily = (after: number) => (Math.floor(after / 86_400_000) + 1) * 86_400_000;
    const next = bounded(daily, { endAt: "9999-12-31T23:59:59-23:59" });
    expect(next(lastAt - 1)).toBe(lastAt);
    expect(next(lastAt)).toBeNull();
    const far = "9999-12-31T23:59:59-23:59";
    const rule = { kind: "afterCompletion", delayMs: 1000 } as const;
    expect(followingAt(definition({ rule, startAt: far }), T0, null)).toEqual({ kind: "finished" });
    const timetable = timetableOf({ kind: "dates", instants: [lastAt, lastAt + 1] }, {});
    expect(nextNominal(timetable, T0)).toBe(lastAt);
    expect(nextNominal(timetable, lastAt)).toBeNull();
  });

  it("a rule stays between its start (inclusive) and its end (exclusive)", () => {
    const next = bounded(everyMinute, {
      startAt: new Date(T0).toISOString(),
      endAt: new Date(T0 + 2 * MINUTE).toISOString(),
    });
    expect([next(0), next(T0 - 1), next(T0), next(T0 + MINUTE)]).toEqual([T0, T0, T0 + MINUTE, null]);
  });
});
