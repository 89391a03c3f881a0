/**
 * Whether the runs of a busy minute can start in time. A model of equal runs in waves: of n runs on s slots, each p95 long,
 * the last starts after ⌊(n − 1) / s⌋ waves. It knows nothing of other tenants, who share the slots.
 */

/** Source: the product's objective, design "on time and fair". */
export const START_OBJECTIVE_MS = 10_000;

export type Demand = {
  /** Runs of the tenant and class in that minute, the previewed one included. */
  readonly runs: number;
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
  /** How long after the instant the last run starts; null where it never does. */
  readonly lastStartsAfterMs: number | null;
  /** The shortest window (whole minutes, in ms) that brings every start within the objective; 0 for none needed. */
  readonly windowMsNeeded: number | null;
};

/** Pure arithmetic; monotone in runs and duration, and falling in slots and limits. */
export function quote(demand: Demand, objectiveMs: number = START_OBJECTIVE_MS): Quote {
  const { runs, p95Ms, slots, maxRunning, startRatePerSecond } = demand;
  if (maxRunning === 0) {
    return { verdict: "over-quota", limitedBy: "max-running", lastStartsAfterMs: null, windowMsNeeded: null };
  }
  if (slots === 0) return { verdict: "no-workers", limitedBy: "slots", lastStartsAfterMs: null, windowMsNeeded: null };
  const bySlots = lastStart(runs, p95Ms, slots);
  const byRunning = maxRunning === null ? 0 : lastStart(runs, p95Ms, maxRunning);
  const byRate = startRatePerSecond === null ? 0 : Math.floor(((runs - 1) * 1000) / startRatePerSecond);
  const last = Math.max(bySlots, byRunning, byRate);
  const limitedBy =
    last === 0 ? "nothing" : last === bySlots ? "slots" : last === byRunning ? "max-running" : "start-rate";
  if (last <= objectiveMs)
    return { verdict: "within-objective", limitedBy, lastStartsAfterMs: last, windowMsNeeded: 0 };
  // Spread over a window no shorter than what is late, they arrive as fast as they can start.
  const windowMsNeeded = Math.ceil((last - objectiveMs) / 60_000) * 60_000;
  return {
    verdict: limitedBy === "slots" ? "needs-window" : "over-quota",
    limitedBy,
    lastStartsAfterMs: last,
    windowMsNeeded,
  };
}

function lastStart(runs: number, p95Ms: number, slots: number): number {
  return Math.floor(Math.max(0, runs - 1) / slots) * Math.round(p95Ms);
}
