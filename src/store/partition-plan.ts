import type { Instant } from "../kernel/clock.ts";

export type PartitionWidth = "week" | "day";

/** From `fromAt` (inclusive) to `toAt` (exclusive), epoch ms. */
export type Range = { fromAt: Instant; toAt: Instant };

export const DAY_MS = 86_400_000;
const WEEK_MS = 7 * DAY_MS;
const A_MONDAY_MS = 4 * DAY_MS; // 1970-01-05

/**
 * Which ranges to create so that `wanted` is covered, beside the `covered` ones (sorted, disjoint). Every bound is a UTC
 * midnight; weeks begin on Monday. A gap between partitions of another width is filled as it is.
 */
export function planPartitions(wanted: Range, covered: readonly Range[], width: PartitionWidth): Range[] {
  const plan: Range[] = [];
  let at = Math.floor(wanted.fromAt / DAY_MS) * DAY_MS;
  while (at < wanted.toAt) {
    const here = covered.find((one) => one.fromAt <= at && at < one.toAt);
    if (here) {
      at = here.toAt;
      continue;
    }
    const next = covered.find((one) => one.fromAt > at);
    const toAt = Math.min(endOf(at, width), next?.fromAt ?? Number.POSITIVE_INFINITY);
    plan.push({ fromAt: at, toAt });
    at = toAt;
  }
  return plan;
}

/** Until when instants from `fromAt` on are covered without a gap; `fromAt` itself when it is not covered. */
export function coveredUntil(fromAt: Instant, covered: readonly Range[]): Instant {
  let untilAt = fromAt;
  for (const one of covered) {
    if (one.fromAt <= untilAt && untilAt < one.toAt) untilAt = one.toAt;
  }
  return untilAt;
}

function endOf(midnight: Instant, width: PartitionWidth): Instant {
  if (width === "day") return midnight + DAY_MS;
  const weeks = Math.floor((midnight - A_MONDAY_MS) / WEEK_MS);
  return A_MONDAY_MS + (weeks + 1) * WEEK_MS;
}
