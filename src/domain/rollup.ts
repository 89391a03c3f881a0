/** Counts of what happened to runs in a stretch of time, and how late they started. */
export type Counts = {
  /** First starts. */
  started: number;
  succeeded: number;
  /** For good: after their retries. */
  failed: number;
  canceled: number;
  /** As rows of history: what lies in a range of skips is not counted. */
  skipped: number;
  /** Attempts that ended while their run went on: failed, expired or released. */
  retried: number;
  /** Of those that started and were held by nothing of their own, by `LATENESS_BOUNDS_MS`. */
  lateness: readonly number[];
};

/**
 * Upper bounds (ms) of the histogram's buckets; a bucket holds what is less than its bound, the last one the rest. They
 * are what stored histograms were made by: another list needs other columns.
 */
export const LATENESS_BOUNDS_MS = [
  5, 10, 20, 50, 100, 250, 500, 1_000, 2_000, 3_000, 5_000, 10_000, 30_000, 60_000, 300_000, 3_600_000,
] as const;
export const LATENESS_BUCKETS = LATENESS_BOUNDS_MS.length + 1;

/** Bounds of a bucket that a share of all lie below or in: null where there are none, Infinity past the last bound. */
export function latenessQuantile(lateness: readonly number[], share: number): number | null {
  const all = lateness.reduce((sum, n) => sum + n, 0);
  if (all === 0) return null;
  let below = 0;
  const bucket = lateness.findIndex((n) => {
    below += n;
    return below >= share * all;
  });
  return LATENESS_BOUNDS_MS[bucket] ?? Number.POSITIVE_INFINITY;
}

export function addCounts(all: readonly Counts[]): Counts {
  const sum = (pick: (one: Counts) => number) => all.reduce((total, one) => total + pick(one), 0);
  return {
    started: sum((one) => one.started),
    succeeded: sum((one) => one.succeeded),
    failed: sum((one) => one.failed),
    canceled: sum((one) => one.canceled),
    skipped: sum((one) => one.skipped),
    retried: sum((one) => one.retried),
    lateness: Array.from({ length: LATENESS_BUCKETS }, (_, i) => sum((one) => one.lateness[i] ?? 0)),
  };
}

/** How finely rollups are read, and the most buckets of each that one answer has. */
export const RESOLUTIONS = {
  minute: { ms: 60_000, keptMinutes: 1 },
  hour: { ms: 3_600_000, keptMinutes: 60 },
  day: { ms: 86_400_000, keptMinutes: 60 },
} as const;
export type Resolution = keyof typeof RESOLUTIONS;
