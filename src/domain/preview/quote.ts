import type { Instant } from "../../kernel/clock.ts";

/**
 * Whether the runs of a busy minute can start in time. A model of equal runs, each p95 long, that start in the order in
 * which they are due, as soon as one of s slots is free. It knows nothing of the minutes before, nor of other tenants, who
 * share the slots.
 */

/** Source: the product's objective, design "on time and fair". */
export const START_OBJECTIVE_MS = 10_000;

export type Demand = {
  /** When the runs of the tenant and class in that minute are due, the previewed one included; in any order. */
  readonly dueAts: readonly Instant[];
  /** 95th percentile of a run's duration (ms). */
  readonly p95Ms: number;
  /** Slots of the live workers of the class. */
  readonly slots: number;
  /** The tenant's limits in that class; null for none. */
  readonly maxRunning: number | null;
  readonly startRatePerSecond: number | null;
};

export type Verdict = "within-objective" | "needs-window" | "over-quota" | "no-workers";

export type Quote = {
  readonly verdict: Verdict;
  /** What holds the last run back: the workers' slots or a limit of the tenant. */
  readonly limitedBy: "slots" | "max-running" | "start-rate" | "nothing";
  /** How long after its instant the latest run starts; null where it never does. */
  readonly lastStartsAfterMs: number | null;
  /** The shortest window (whole minutes, in ms) over which all these runs could start in time; 0 for none needed. */
  readonly windowMsNeeded: number | null;
};

/** Pure arithmetic; monotone in runs and duration, and falling in slots and limits. */
export function quote(demand: Demand, objectiveMs: number = START_OBJECTIVE_MS): Quote {
  const { p95Ms, slots, maxRunning, startRatePerSecond } = demand;
  if (maxRunning === 0) {
    return { verdict: "over-quota", limitedBy: "max-running", lastStartsAfterMs: null, windowMsNeeded: null };
  }
  if (slots === 0) return { verdict: "no-workers", limitedBy: "slots", lastStartsAfterMs: null, windowMsNeeded: null };
  const runMs = Math.round(p95Ms);
  // A start rate is as good as one slot that is held for so long.
  const latest = (dueAts: readonly Instant[]) => ({
    bySlots: latestStart(dueAts, runMs, slots),
    byRunning: maxRunning === null ? 0 : latestStart(dueAts, runMs, maxRunning),
    byRate: startRatePerSecond === null ? 0 : latestStart(dueAts, 1000 / startRatePerSecond, 1),
  });
  const dueAts = demand.dueAts.toSorted((a, b) => a - b);
  const { bySlots, byRunning, byRate } = latest(dueAts);
  const last = Math.max(bySlots, byRunning, byRate);
  const limitedBy =
    last === 0 ? "nothing" : last === bySlots ? "slots" : last === byRunning ? "max-running" : "start-rate";
  if (last <= objectiveMs)
    return { verdict: "within-objective", limitedBy, lastStartsAfterMs: last, windowMsNeeded: 0 };
  // Spread over a window no shorter than what is late when all come at once, they arrive as fast as they can start.
  const atOnce = Math.max(...Object.values(latest(dueAts.map(() => 0))));
  return {
    verdict: limitedBy === "slots" ? "needs-window" : "over-quota",
    limitedBy,
    lastStartsAfterMs: last,
    windowMsNeeded: Math.ceil((atOnce - objectiveMs) / 60_000) * 60_000,
  };
}

/** How long after its instant the latest of these runs starts (ms), where each holds one of the slots for so long. */
function latestStart(dueAts: readonly Instant[], holdMs: number, slots: number): number {
  const startAts: Instant[] = [];
  let latest = 0;
  for (const [n, dueAt] of dueAts.entries()) {
    const freeAt = n < slots ? dueAt : startAts[n - slots]! + holdMs;
    startAts.push(Math.max(dueAt, freeAt));
    latest = Math.max(latest, startAts[n]! - dueAt);
  }
  return Math.floor(latest + 1e-6);
}
