import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type Demand, quote } from "../../../src/domain/preview/quote.ts";

const demand: Demand = { dueAts: [0], p95Ms: 1000, slots: 10, maxRunning: null, startRatePerSecond: null };
const atOnce = (runs: number) => new Array<number>(runs).fill(7);
const every = (ms: number) => Array.from({ length: 60_000 / ms }, (_, n) => n * ms);

describe("a feasibility quote", () => {
  it.each([
    ["one run", {}, ["within-objective", "nothing", 0, 0]],
    ["a wave more than the slots", { dueAts: atOnce(11) }, ["within-objective", "slots", 1000, 0]],
    ["as many waves as the objective has room for", { dueAts: atOnce(110) }, ["within-objective", "slots", 10_000, 0]],
    ["one run too many", { dueAts: atOnce(111) }, ["needs-window", "slots", 11_000, 60_000]],
    ["ten minutes of work", { dueAts: atOnce(6200) }, ["needs-window", "slots", 619_000, 660_000]],
    ["a limit below the slots", { dueAts: atOnce(30), maxRunning: 2 }, ["over-quota", "max-running", 14_000, 60_000]],
    ["a limit that leaves room", { dueAts: atOnce(20), maxRunning: 2 }, ["within-objective", "max-running", 9000, 0]],
    [
      "a start rate",
      { dueAts: atOnce(100), slots: 100, startRatePerSecond: 2 },
      ["over-quota", "start-rate", 49_500, 60_000],
    ],
    [
      "runs that come no faster than they end",
      { dueAts: every(1000), slots: 1 },
      ["within-objective", "nothing", 0, 0],
    ],
    ["a limit that keeps up", { dueAts: every(10_000), maxRunning: 1 }, ["within-objective", "nothing", 0, 0]],
    ["a rate that keeps up", { dueAts: every(500), startRatePerSecond: 2 }, ["within-objective", "nothing", 0, 0]],
    ["twice as many as end", { dueAts: every(500), slots: 1 }, ["needs-window", "slots", 59_500, 120_000]],
    ["a limit of nothing", { maxRunning: 0 }, ["over-quota", "max-running", null, null]],
    ["nobody to run it", { slots: 0 }, ["no-workers", "slots", null, null]],
  ] as const)("of %s", (_, change, [verdict, limitedBy, lastStartsAfterMs, windowMsNeeded]) => {
    expect(quote({ ...demand, ...change })).toEqual({ verdict, limitedBy, lastStartsAfterMs, windowMsNeeded });
  });

  it("never gets worse with more slots or better with more runs, and its window is enough", () => {
    const some = fc.record<Demand>({
      dueAts: fc.array(fc.integer({ min: 0, max: 59_999 }), { minLength: 1, maxLength: 300 }),
      p95Ms: fc.integer({ min: 1, max: 900_000 }),
      slots: fc.integer({ min: 1, max: 1000 }),
      maxRunning: fc.option(fc.integer({ min: 1, max: 1000 })),
      startRatePerSecond: fc.option(fc.integer({ min: 1, max: 1000 })),
    });
    fc.assert(
      fc.property(some, (one) => {
        const { lastStartsAfterMs: last, windowMsNeeded } = quote(one);
        expect(quote({ ...one, slots: one.slots + 1 }).lastStartsAfterMs!).toBeLessThanOrEqual(last!);
        expect(quote({ ...one, dueAts: [...one.dueAts, 30_000] }).lastStartsAfterMs!).toBeGreaterThanOrEqual(last!);
        expect(last! - windowMsNeeded!).toBeLessThanOrEqual(10_000);
      }),
    );
  });
});
