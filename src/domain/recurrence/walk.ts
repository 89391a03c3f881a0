/**
 * From matching wall times to instants. All in epoch seconds; every function answers the first instant strictly after `t`.
 * Nothing here knows how large a clock change is, and none of it can go back: each answer is the smallest of candidates
 * that are all later than `t`.
 */
import { DAY_SECONDS } from "./civil.ts";
import { nextMatch, type WallPattern } from "./cron/pattern.ts";
import type { Gap, Overlap } from "./rule.ts";
import { firstReading, gapBefore, highestWall, segmentAt, segmentEnd, type Zone } from "./zone.ts";

/** A fixed time in its ordinary policy: skipped times run when the gap ends, repeated times in their first pass. */
export function nextFixed(pattern: WallPattern, zone: Zone, t: number, until: number): number {
  const wall = nextMatch(pattern, highestWall(zone, t) + 1, until + DAY_SECONDS);
  return wall === Number.POSITIVE_INFINITY ? wall : firstReading(zone, wall);
}

/** What the clock on the wall shows: both passes of a repeated time, nothing of a skipped one. */
export function nextShown(pattern: WallPattern, zone: Zone, t: number, until: number): number {
  let from = t + 1;
  for (let k = segmentAt(zone, from); from < until; k += 1) {
    const offset = zone.offsets[k]!;
    const end = segmentEnd(zone, k);
    const wall = nextMatch(pattern, from + offset, Math.min(end, until) + offset);
    if (wall !== Number.POSITIVE_INFINITY) return wall - offset;
    from = end;
  }
  return Number.POSITIVE_INFINITY;
}

/** A fixed time in any policy; `nextFixed` is the shorter way to ("first", "first"). */
export function nextByPolicy(
  pattern: WallPattern,
  zone: Zone,
  t: number,
  until: number,
  policy: { readonly gap: Gap; readonly overlap: Overlap },
): number {
  let best = Number.POSITIVE_INFINITY;
  // A shifted time may come out as much after its gap as the gap is wide, so gaps of the last days still count.
  let k = segmentAt(zone, policy.gap === "shift" ? t - LONGEST_GAP : t);
  for (; zone.at[k]! < Math.min(best, until); k += 1) {
    best = Math.min(
      best,
      skippedBefore(pattern, zone, k, t, policy.gap),
      shownIn(pattern, zone, k, t, until, policy.overlap),
    );
    if (segmentEnd(zone, k) === Number.POSITIVE_INFINITY) break;
  }
  return best;
}

/** No zone has skipped more than a day (Samoa and Kiribati did skip one). */
export const LONGEST_GAP = 2 * DAY_SECONDS;

/** The first run owed to the wall times that were skipped on entering segment `k`. */
function skippedBefore(pattern: WallPattern, zone: Zone, k: number, t: number, gap: Gap): number {
  const skipped = gap === "skip" ? undefined : gapBefore(zone, k);
  if (skipped === undefined) return Number.POSITIVE_INFINITY;
  const { from, to } = skipped;
  if (gap === "first") {
    const at = zone.at[k]!;
    return at > t && nextMatch(pattern, from, to) !== Number.POSITIVE_INFINITY ? at : Number.POSITIVE_INFINITY;
  }
  const before = zone.offsets[k - 1]!;
  return nextMatch(pattern, Math.max(from, t + 1 + before), to) - before;
}

/** The first matching time that segment `k` shows and that is the pass which `overlap` asks for. */
function shownIn(pattern: WallPattern, zone: Zone, k: number, t: number, until: number, overlap: Overlap): number {
  const offset = zone.offsets[k]!;
  const end = segmentEnd(zone, k);
  const to = Math.min(end, until) + offset;
  let from = Math.max(zone.at[k]!, t + 1) + offset;
  if (overlap === "first") from = Math.max(from, zone.highEnds[k]!);
  while (from < to) {
    const wall = nextMatch(pattern, from, to);
    const shownUntil = overlap === "last" ? shownAgainUntil(zone, k, wall) : undefined;
    if (shownUntil === undefined) return wall - offset;
    from = shownUntil;
  }
  return Number.POSITIVE_INFINITY;
}

/** If a segment after `k` shows `wall` again, the wall time up to which it does so. */
function shownAgainUntil(zone: Zone, k: number, wall: number): number | undefined {
  const end = segmentEnd(zone, k);
  if (wall === Number.POSITIVE_INFINITY || end === Number.POSITIVE_INFINITY) return undefined;
  for (let later = k + 1; zone.at[later]! < end + LONGEST_GAP; later += 1) {
    const offset = zone.offsets[later]!;
    const laterEnd = segmentEnd(zone, later) + offset;
    if (wall >= zone.at[later]! + offset && wall < laterEnd) return laterEnd;
    if (laterEnd === Number.POSITIVE_INFINITY) break;
  }
  return undefined;
}
