import { describe, expect, it } from "vitest";
import { type Definition, definitionSchema } from "../../src/domain/definition.ts";
import {
  type Cursor,
  type MaterializationPlan,
  offsetOf,
  planMaterialization,
} from "../../src/domain/materialization.ts";
import type { Place } from "../../src/domain/placement.ts";
import { windowOffset } from "../../src/domain/placement.ts";
import { newestBefore } from "../../src/domain/planning/look-back.ts";
import { randomFrom } from "../support/random.ts";

/**
 * Whatever the window, the calendar, the policy, the outage and the bounds of plans: every nominal instant is one run, one
 * skip or inside one range, and names the one before it.
 */

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const T0 = Date.UTC(2026, 4, 4);

type Next = (at: number) => number | null;

const every =
  (stepMs: number): Next =>
  (at) =>
    (Math.floor(at / stepMs) + 1) * stepMs;
/** Ten seconds in a row at the start of each hour. */
const bursts: Next = (at) => {
  const hour = Math.floor(at / HOUR) * HOUR;
  const second = Math.floor((at - hour) / 1000) + 1;
  return second < 10 ? hour + second * 1000 : hour + HOUR;
};
const RULES: readonly Next[] = [every(1000), every(MINUTE), every(HOUR), every(DAY), bursts];

/** A calendar: some days are excluded, some of these days' instants are moved to the next open day or merged there. */
function calendarOf(chance: () => number): Place {
  const share = chance();
  const excluded = (at: number) => ((Math.floor(at / DAY) * 2654435761) % 1000) / 1000 < share;
  const moves = chance() < 0.5;
  return (at) => {
    if (!excluded(at)) return { kind: "due", dueAt: at };
    if (!moves) return { kind: "skip", reason: "calendar" };
    let dueAt = at;
    for (let days = 0; excluded(dueAt); days++) {
      if (days > 30) return { kind: "skip", reason: "calendar" };
      dueAt += DAY;
    }
    return at % 7 === 0 ? { kind: "skip", reason: "calendar-merged" } : { kind: "due", dueAt };
  };
}

/** Told only when it fails: there are millions of these. */
function must(holds: boolean, what: string, ...found: unknown[]): void {
  if (!holds) throw new Error(`${what}: ${JSON.stringify(found)}`);
}

type Link = { from: number; to: number; instants: number | null; previous: number | null };

function linksOf(plan: MaterializationPlan): Link[] {
  return [
    ...[...plan.runs, ...plan.skips].map((one) => ({
      from: one.scheduledAt,
      to: one.scheduledAt,
      instants: 1,
      previous: one.prevScheduledAt,
    })),
    ...plan.ranges.map((one) => ({
      from: one.fromAt,
      to: one.toAt,
      instants: one.instants,
      previous: one.prevScheduledAt,
    })),
  ].sort((a, b) => a.from - b.from);
}

describe("every nominal instant is accounted for exactly once", () => {
  it.each(Array.from({ length: 200 }, (_, seed) => [seed]))("story %i", (seed) => {
    const chance = randomFrom(seed);
    const pick = <T>(all: readonly T[]): T => all[Math.floor(chance() * all.length)]!;
    const next = pick(RULES);
    const place = chance() < 0.5 ? calendarOf(chance) : undefined;
    const windowMs = chance() < 0.5 ? pick([1000, 10 * MINUTE, DAY]) : undefined;
    const maxCatchUp = pick([1, 7, 100, 600]);
    const definition: Definition = definitionSchema.parse({
      rule: { kind: "cron", expression: "* * * * *", zone: "Etc/UTC" },
      job: { kind: "function", name: "test.noop" },
      overlap: pick([{ policy: "allow" }, { policy: "forbid" }, { policy: "skip" }]),
      misfire: { policy: pick(["latest", "skip", "all"]), graceMs: pick([0, 1, MINUTE, HOUR]), maxCatchUp },
      ...(windowMs === undefined ? {} : { windowMs }),
      ...(chance() < 0.2 ? { maxRuns: 1 + Math.floor(chance() * 40) } : {}),
    });
    const scheduleId = `01920000-0000-8000-8000-${String(seed).padStart(12, "0")}`;
    const offset = offsetOf(scheduleId, definition, next) ?? (() => 0);
    const due = (at: number) => at + offset(at);

    let cursor: Cursor = {
      scheduleId,
      tenantId: "t",
      revision: 1,
      nextRunAt: next(T0)!,
      lastNominalAt: undefined,
      runsMade: 0,
    };
    let now = cursor.nextRunAt + 0.25;
    let covered: number | null = null;
    let caughtUp = { untilAt: 0, runs: 0 };
    for (let plans = 0; plans < 30; plans++) {
      if (now < due(cursor.nextRunAt)) {
        // Awake at the instant, or long after it.
        now = due(cursor.nextRunAt) + pick([0, 0.5, 3, 2000, HOUR, 3 * DAY, 800 * DAY]) * chance();
      }
      const asked = { count: 0 };
      const plan = planMaterialization(
        cursor,
        definition,
        (at) => {
          asked.count++;
          return next(at);
        },
        [],
        now,
        { floorAt: 0, missedReason: "misfire", ...(place === undefined ? {} : { place }) },
      );
      expect(asked.count).toBeLessThan(60_000);
      expect(plan.runs.length).toBeLessThanOrEqual(1000);

      for (const link of linksOf(plan)) {
        must(link.previous === covered, "linked to the one before", link, covered);
        must(link.from === (covered === null ? next(T0) : next(covered)), "nothing is left out", link, covered);
        if (link.to !== link.from) must(newestBefore(link.from, link.to + 1, next) === link.to, "ends at one", link);
        if (link.instants !== null && link.to !== link.from) {
          let count = 0;
          for (let at: number | null = link.from; at !== null && at <= link.to; at = next(at)) count++;
          must(link.instants === count, "is counted right", link, count);
        }
        covered = link.to;
      }
      for (const run of plan.runs) {
        const placed = place?.(run.scheduledAt) ?? { kind: "due" as const, dueAt: run.scheduledAt };
        must(placed.kind === "due" && run.dueAt === placed.dueAt + offset(run.scheduledAt), "is placed", run, placed);
        const lateUntil = now - definition.misfire.graceMs + 1;
        must(run.trigger !== "catch-up" || run.dueAt < lateUntil, "is late", run, now);
        must(place !== undefined || run.dueAt < next(run.scheduledAt)!, "is due before the next", run);
      }
      const late = plan.runs.filter((run) => run.trigger === "catch-up");
      for (const run of late) {
        if (run.scheduledAt >= caughtUp.untilAt) {
          const untilAt = plan.next.catchUp?.untilAt ?? Math.ceil(now - definition.misfire.graceMs);
          caughtUp = { untilAt, runs: 0 };
        }
        caughtUp.runs++;
        const most = definition.misfire.policy === "all" ? maxCatchUp : 1;
        must(caughtUp.runs <= most, "no more is caught up than asked for", run, caughtUp);
      }
      expect(plan.next.lastNominalAt).toBe(covered);
      if (definition.maxRuns !== undefined) expect(plan.next.runsMade).toBeLessThanOrEqual(definition.maxRuns);
      if (plan.finished) {
        expect(plan.next.runsMade).toBe(definition.maxRuns);
        return;
      }
      expect(plan.next.runAt).toBe(next(covered!));
      expect(plan.next.dueAt).toBe(due(plan.next.runAt!));
      cursor = {
        ...cursor,
        nextRunAt: plan.next.runAt!,
        lastNominalAt: plan.next.lastNominalAt ?? undefined,
        runsMade: plan.next.runsMade,
        catchUp: plan.next.catchUp,
      };
    }
  });
});

describe("a long catch-up", () => {
  const definition = (maxCatchUp: number) =>
    definitionSchema.parse({
      rule: { kind: "cron", expression: "* * * * *", zone: "Etc/UTC" },
      job: { kind: "function", name: "test.noop" },
      overlap: { policy: "allow" },
      misfire: { policy: "all", graceMs: MINUTE, maxCatchUp },
    });

  it("takes many plans and runs exactly the oldest it may; the rest of the outage is one range, jumped over", () => {
    const next = every(MINUTE);
    const nowAt = T0 + 730 * DAY;
    let cursor: Cursor = {
      scheduleId: "01920000-0000-8000-8000-000000000001",
      tenantId: "t",
      revision: 1,
      nextRunAt: T0,
      lastNominalAt: undefined,
      runsMade: 0,
    };
    const late: number[] = [];
    const ranges: { fromAt: number; toAt: number }[] = [];
    let plans = 0;
    // The clock goes on meanwhile, and what comes due then is not lost to the catch-up.
    for (let now = nowAt; cursor.nextRunAt <= now; now += 100, plans++) {
      const plan = planMaterialization(cursor, definition(10_000), next, [], now, {
        floorAt: 0,
        missedReason: "misfire",
      });
      expect(plan.runs.length).toBeLessThanOrEqual(252);
      late.push(...plan.runs.filter((run) => run.trigger === "catch-up").map((run) => run.scheduledAt));
      ranges.push(...plan.ranges);
      cursor = { ...cursor, nextRunAt: plan.next.runAt!, catchUp: plan.next.catchUp };
    }
    expect(plans).toBeGreaterThan(39);
    // One that was within its grace when this began is not late because the catch-up takes its time.
    expect(late).toEqual(Array.from({ length: 10_000 }, (_, n) => T0 + n * MINUTE));
    expect(ranges).toEqual([expect.objectContaining({ fromAt: T0 + 10_000 * MINUTE, toAt: nowAt - 2 * MINUTE })]);
  });
});

describe("the newest instant before an end", () => {
  it.each([
    ["every second", every(1000)],
    ["every day", every(DAY)],
    ["ten seconds an hour", bursts],
    [
      "one day of seconds, once",
      (at: number) => (at < T0 ? T0 : at < T0 + DAY ? (Math.floor(at / 1000) + 1) * 1000 : null),
    ],
  ] as const)("%s: some dozens of questions, however long the outage", (_, rule) => {
    let asked = 0;
    const next: Next = (at) => {
      asked++;
      return rule(at);
    };
    const endAt = T0 + 3650 * DAY + 17;
    const found = newestBefore(T0, endAt, next);
    expect(found).toBeLessThan(endAt);
    const after = rule(found);
    expect(after === null || after >= endAt).toBe(true);
    expect(asked).toBeLessThan(130);
  });
});

describe("a schedule's share of its window", () => {
  const id = "01920000-0000-8000-8000-000000000001";

  it("is the same for all time", () => {
    expect(windowOffset(id, HOUR, T0, T0 + DAY)).toBe(windowOffset(id, HOUR, T0 + 365 * DAY, null));
    // Written down: another release that computed another share would move every schedule that has a window.
    expect(windowOffset(id, HOUR, T0, null)).toBe(1_588_006);
  });

  it("spreads many schedules evenly, never to the next instant", () => {
    const shares = Array.from({ length: 10_000 }, (_, n) =>
      windowOffset(`01920000-0000-8000-8000-${String(n).padStart(12, "0")}`, HOUR, T0, T0 + 10 * MINUTE),
    );
    for (let tenth = 0; tenth < 10; tenth++) {
      const inTenth = shares.filter((ms) => Math.floor(ms / MINUTE) === tenth).length;
      expect(Math.abs(inTenth - 1000)).toBeLessThan(150);
    }
    expect(Math.max(...shares)).toBeLessThan(10 * MINUTE);
  });
});
