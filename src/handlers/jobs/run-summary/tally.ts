import { createHistogram, type RecordableHistogram } from "node:perf_hooks";
import type { RunState } from "../../../domain/states.ts";
import type { RunSummaryRow } from "../../run-reader.ts";
import type { Period } from "../period.ts";

/**
 * Everything a report says, counted run by run in memory that does not grow with the runs: percentiles come from
 * HDR histograms (two significant figures), lists are cut, names beyond a limit are counted together.
 */
export type Tally = {
  total: number;
  outcomes: Outcomes;
  buckets: Bucket[];
  lateMs: Distribution;
  durationMs: Distribution;
  schedules: Map<string, ScheduleTally>;
  errors: Map<string, ErrorTally>;
  /** The longest first. */
  slowest: (RunSummaryRow & { tookMs: number })[];
};

export const OUTCOMES = ["succeeded", "failed", "canceled", "skipped", "open"] as const;
export type Outcome = (typeof OUTCOMES)[number];
export type Outcomes = Record<Outcome, number>;

export type Bucket = Period & { outcomes: Outcomes; lateMs: Distribution };
export type ScheduleTally = {
  name: string;
  total: number;
  outcomes: Outcomes;
  started: number;
  lateSum: number;
  lateMax: number;
};
export type ErrorTally = { count: number; message: string };

const SLOWEST_KEPT = 10;
const SCHEDULES_KEPT = 10_000;
const ERRORS_KEPT = 1000;
const THE_REST = "";

export function createTally(buckets: readonly Period[]): Tally {
  return {
    total: 0,
    outcomes: noOutcomes(),
    buckets: buckets.map((bucket) => ({ ...bucket, outcomes: noOutcomes(), lateMs: createDistribution() })),
    lateMs: createDistribution(),
    durationMs: createDistribution(),
    schedules: new Map(),
    errors: new Map(),
    slowest: [],
  };
}

export function addRun(tally: Tally, run: RunSummaryRow): void {
  const outcome = outcomeOf(run.state);
  const lateMs = latenessOf(run);
  const bucket = tally.buckets[findBucket(tally.buckets, run.scheduledAt)];
  tally.total++;
  tally.outcomes[outcome]++;
  if (bucket !== undefined) bucket.outcomes[outcome]++;
  if (lateMs !== undefined) {
    tally.lateMs.add(lateMs);
    bucket?.lateMs.add(lateMs);
  }
  addToSchedule(tally, run, outcome, lateMs);
  if (run.state === "failed") addError(tally, run);
  const tookMs = durationOf(run);
  if (tookMs !== undefined) {
    tally.durationMs.add(tookMs);
    keepSlowest(tally.slowest, { ...run, tookMs });
  }
}

/** First start minus due instant; undefined for a run that has not started. */
export function latenessOf(run: RunSummaryRow): number | undefined {
  return run.startedAt === null ? undefined : Math.max(0, run.startedAt - run.dueAt);
}

/** End minus first start: retries and their waits are in it. */
export function durationOf(run: RunSummaryRow): number | undefined {
  return run.startedAt === null || run.finishedAt === null ? undefined : Math.max(0, run.finishedAt - run.startedAt);
}

function addToSchedule(tally: Tally, run: RunSummaryRow, outcome: Outcome, lateMs: number | undefined): void {
  const name = run.scheduleId === null ? "Ad hoc runs" : (run.scheduleName ?? "A deleted schedule");
  const schedule = entryOf(tally.schedules, run.scheduleId ?? "ad-hoc", SCHEDULES_KEPT, (rest) => ({
    name: rest ? "Other schedules" : name,
    total: 0,
    outcomes: noOutcomes(),
    started: 0,
    lateSum: 0,
    lateMax: 0,
  }));
  schedule.total++;
  schedule.outcomes[outcome]++;
  if (lateMs === undefined) return;
  schedule.started++;
  schedule.lateSum += lateMs;
  schedule.lateMax = Math.max(schedule.lateMax, lateMs);
}

function addError(tally: Tally, run: RunSummaryRow): void {
  const error = entryOf(tally.errors, run.errorCode ?? "unknown", ERRORS_KEPT, () => ({ count: 0, message: "" }));
  error.count++;
  error.message = (run.errorMessage ?? "").slice(0, 200);
}

/** The entry of `key`, made when there is room, else the one for all the rest. */
function entryOf<T>(map: Map<string, T>, key: string, kept: number, make: (rest: boolean) => T): T {
  const found = map.get(key);
  if (found !== undefined) return found;
  const isRest = map.size >= kept;
  const rest = isRest ? map.get(THE_REST) : undefined;
  if (rest !== undefined) return rest;
  const made = make(isRest);
  map.set(isRest ? THE_REST : key, made);
  return made;
}

function keepSlowest(slowest: Tally["slowest"], run: Tally["slowest"][number]): void {
  if (slowest.length === SLOWEST_KEPT && slowest.at(-1)!.tookMs >= run.tookMs) return;
  const at = slowest.findIndex((other) => other.tookMs < run.tookMs);
  slowest.splice(at < 0 ? slowest.length : at, 0, run);
  slowest.length = Math.min(slowest.length, SLOWEST_KEPT);
}

function findBucket(buckets: readonly Period[], at: number): number {
  let low = 0;
  let high = buckets.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (buckets[middle]!.toAt > at) high = middle;
    else low = middle + 1;
  }
  return low;
}

function outcomeOf(state: RunState): Outcome {
  return state === "succeeded" || state === "failed" || state === "canceled" || state === "skipped" ? state : "open";
}

function noOutcomes(): Outcomes {
  return { succeeded: 0, failed: 0, canceled: 0, skipped: 0, open: 0 };
}

export type Distribution = {
  add(ms: number): void;
  count(): number;
  /** undefined when nothing was added. */
  percentile(p: number): number | undefined;
};

const LONGEST_MS = 10_000_000_000; // 115 days

function createDistribution(): Distribution {
  let histogram: RecordableHistogram | undefined; // most stretches of a quiet tenant never need theirs
  return {
    add(ms) {
      histogram ??= createHistogram({ lowest: 1, highest: LONGEST_MS + 1, figures: 2 });
      histogram.record(Math.min(Math.round(ms), LONGEST_MS) + 1); // its lowest value is 1
    },
    count: () => histogram?.count ?? 0,
    percentile: (p) => (histogram === undefined ? undefined : Math.min(histogram.percentile(p), histogram.max) - 1),
  };
}
