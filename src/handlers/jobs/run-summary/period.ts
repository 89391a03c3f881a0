import type { Period } from "../period.ts";

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

const MOST_BUCKETS = 60;
const WIDTHS_MS = [
  ...[1, 5, 10, 15, 30].map((minutes) => minutes * MINUTE_MS),
  ...[1, 3, 6, 12].map((hours) => hours * HOUR_MS),
  ...[1, 7].map((days) => days * DAY_MS),
];

/**
 * Cuts a period into some 60 stretches at most, of one round width (the first and the last may be shorter), aligned to the
 * zone's clock at the period's start. Where the clocks change inside it, later stretches are off by that hour; their
 * labels stay true.
 */
export function cutIntoBuckets(period: Period, offsetMs: number): Period[] {
  const lengthMs = period.toAt - period.fromAt;
  const widthMs = WIDTHS_MS.find((width) => lengthMs / width <= MOST_BUCKETS) ?? 7 * DAY_MS;
  // Weeks begin on Monday; 1 January 1970 was a Thursday.
  const originMs = widthMs === 7 * DAY_MS ? 4 * DAY_MS : 0;
  const local = period.fromAt + offsetMs - originMs;
  const buckets: Period[] = [];
  for (let at = period.fromAt - (local - Math.floor(local / widthMs) * widthMs); at < period.toAt; at += widthMs) {
    buckets.push({ fromAt: Math.max(at, period.fromAt), toAt: Math.min(at + widthMs, period.toAt) });
  }
  return buckets;
}
