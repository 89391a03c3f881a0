import fc from "fast-check";
import { expect, it } from "vitest";
import { PERIOD_LIMIT_MS } from "../../src/handlers/jobs/period.ts";
import { createZoneFormat, formatMs, formatShare } from "../../src/handlers/jobs/run-summary/format.ts";
import { cutIntoBuckets } from "../../src/handlers/jobs/run-summary/period.ts";
import { addRun, createTally } from "../../src/handlers/jobs/run-summary/tally.ts";
import { RUN_AT } from "./context.ts";
import { runRow } from "./runs.ts";

const HOUR_MS = 3_600_000;

it("stretches cover the period without a gap, are few, and keep to the zone's clock", () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: PERIOD_LIMIT_MS }),
      fc.integer({ min: 0, max: 4 * PERIOD_LIMIT_MS }),
      fc.constantFrom(0, -5 * HOUR_MS, 5.5 * HOUR_MS, 14 * HOUR_MS),
      (lengthMs, startMs, offsetMs) => {
        const fromAt = RUN_AT + startMs;
        const buckets = cutIntoBuckets({ fromAt, toAt: fromAt + lengthMs }, offsetMs);
        expect(buckets[0]!.fromAt).toBe(fromAt);
        expect(buckets.at(-1)!.toAt).toBe(fromAt + lengthMs);
        expect(buckets.length).toBeLessThanOrEqual(61);
        for (let i = 1; i < buckets.length; i++) {
          expect(buckets[i]!.fromAt).toBe(buckets[i - 1]!.toAt);
          expect((buckets[i]!.fromAt + offsetMs) % 60_000).toBe(0);
        }
      },
    ),
  );
});

it("a day's stretches begin at the half hours of a zone that is half an hour off", () => {
  const { offsetMs } = createZoneFormat("Asia/Kolkata");
  expect(offsetMs(RUN_AT)).toBe(5.5 * HOUR_MS);
  const buckets = cutIntoBuckets({ fromAt: RUN_AT + 60_000, toAt: RUN_AT + 40 * 24 * HOUR_MS }, offsetMs(RUN_AT));
  expect(createZoneFormat("Asia/Kolkata").time(buckets[1]!.fromAt)).toBe("00:00");
});

it("percentiles are right to one percent, zero and huge values included", () => {
  const tally = createTally([{ fromAt: 0, toAt: RUN_AT + 1 }]);
  expect(tally.lateMs.percentile(50)).toBeUndefined();
  for (let ms = 0; ms < 10_000; ms++) addRun(tally, runRow(RUN_AT, { startedAt: RUN_AT + ms }));
  expect(tally.lateMs.percentile(50)! / 5000).toBeCloseTo(1, 1.9);
  expect(tally.lateMs.percentile(99)! / 9900).toBeCloseTo(1, 1.9);
  addRun(tally, runRow(RUN_AT, { startedAt: RUN_AT + 1e15 }));
  expect(tally.lateMs.percentile(100)).toBeLessThanOrEqual(1.01e10);
  const punctual = createTally([{ fromAt: 0, toAt: RUN_AT + 1 }]);
  addRun(punctual, runRow(RUN_AT, { startedAt: RUN_AT }));
  expect(punctual.buckets[0]!.lateMs.percentile(99)).toBe(0);
});

it("a tenant with a hundred thousand schedules is counted in bounded memory, and no run is lost", () => {
  const tally = createTally([{ fromAt: 0, toAt: RUN_AT + 1 }]);
  for (let i = 0; i < 30_000; i++) {
    addRun(tally, runRow(RUN_AT, { scheduleId: `s${i}`, scheduleName: `s${i}`, state: "failed", errorCode: `e${i}` }));
  }
  expect(tally.schedules.size).toBe(10_001);
  expect(tally.errors.size).toBe(1001);
  expect([...tally.schedules.values()].reduce((sum, each) => sum + each.total, 0)).toBe(30_000);
  expect(tally.schedules.get("")).toMatchObject({ name: "Other schedules", total: 20_000 });
});

it("keeps the ten slowest, the longest first", () => {
  const tally = createTally([]);
  for (const ms of [5, 90, 1, 40, 77, 3, 60, 2, 88, 10, 11, 12, 95, 0]) {
    addRun(tally, runRow(RUN_AT, { startedAt: RUN_AT, finishedAt: RUN_AT + ms }));
  }
  expect(tally.slowest.map((run) => run.tookMs)).toEqual([95, 90, 88, 77, 60, 40, 12, 11, 10, 5]);
});

it.each([
  [undefined, "–"],
  [0, "0 ms"],
  [999.6, "1 s"],
  [1449, "1.4 s"],
  [9951, "10 s"],
  [59_400, "59 s"],
  [59_600, "1 min"],
  [125_000, "2 min 5 s"],
  [12_000_000, "3 h 20 min"],
  [86_400_000, "1 d"],
])("%s ms is written %s", (ms, text) => {
  expect(formatMs(ms)).toBe(text);
});

it("a share never rounds to a false all or nothing", () => {
  expect([
    formatShare(99_999, 100_000),
    formatShare(1, 100_000),
    formatShare(3, 3),
    formatShare(0, 3),
    formatShare(0, 0),
  ]).toEqual(["99.9 %", "0.1 %", "100 %", "0 %", "–"]);
});
