/** The wall times of a pattern that a clock change skips. */
import { nextMatch, type WallPattern } from "../cron/pattern.ts";
import { gapBefore, type Zone } from "../zone.ts";

/** How many skipped times are named; a whole day can hold 86,400. */
const NAMED_AT_MOST = 3;

/** Wall seconds, in order; `hasMore` where others of the same gap are not named. */
export type SkippedTimes = { readonly walls: readonly number[]; readonly hasMore: boolean };

/** The times of the pattern that are skipped when segment `k` begins; undefined for none. */
export function skippedTimes(pattern: WallPattern, zone: Zone, k: number): SkippedTimes | undefined {
  const gap = gapBefore(zone, k);
  if (gap === undefined) return undefined;
  const walls: number[] = [];
  let wall = nextMatch(pattern, gap.from, gap.to);
  while (wall !== Number.POSITIVE_INFINITY && walls.length <= NAMED_AT_MOST) {
    walls.push(wall);
    wall = nextMatch(pattern, wall + 1, gap.to);
  }
  return namedTimes(walls);
}

/** The first few of `walls`; undefined for none. */
export function namedTimes(walls: readonly number[]): SkippedTimes | undefined {
  if (walls.length === 0) return undefined;
  return { walls: walls.slice(0, NAMED_AT_MOST), hasMore: walls.length > NAMED_AT_MOST };
}
