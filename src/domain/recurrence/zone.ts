/**
 * A zone is a row of *segments*: from `at[k]` until `at[k + 1]` (epoch seconds) its clocks read `offsets[k]` seconds ahead
 * of UTC. Segment 0 begins before all time. Everything else follows from two monotone primitives:
 *
 *   `highestWall(zone, t)`   H(t): the highest wall time shown up to t
 *   `firstReading(zone, w)`  F(w): the first instant whose wall time is w or later
 *
 * F covers a skipped time (it lands where the gap ends) and a repeated one (it lands on the first pass) in one definition,
 * and never needs to know how large a shift is.
 */
import { DAY_SECONDS, dateOf } from "./civil.ts";
import { type TzRule, transitionsOfYear } from "./posix-tz.ts";

export type Zone = {
  readonly name: string;
  readonly at: number[];
  readonly offsets: number[];
  /** `highEnds[k]`: the wall time that no segment before k reaches; what H is in a repeated hour. */
  readonly highEnds: number[];
  /** How the zone goes on beyond its table; the table grows by whole years as far as somebody asks. */
  readonly rule: TzRule;
  /** The last listed transition (epoch seconds); from there on the rule alone speaks. */
  readonly listedUntil: number;
  nextYear: number;
};

/** No instant beyond year 9999 can be written in RFC 3339, so no zone is followed further. */
const LAST_YEAR = 10_000;
const YEARS_AT_ONCE = 16;

/** Builds a zone from its listed transitions in order (epoch seconds) and the rule that takes over after the last. */
export function makeZone(
  name: string,
  firstOffset: number,
  transitions: readonly { readonly at: number; readonly offset: number }[],
  rule: TzRule,
): Zone {
  const last = transitions.at(-1)?.at;
  const zone: Zone = {
    name,
    at: [Number.NEGATIVE_INFINITY],
    offsets: [firstOffset],
    highEnds: [Number.NEGATIVE_INFINITY],
    rule,
    listedUntil: last ?? Number.NEGATIVE_INFINITY,
    nextYear: last === undefined ? 1900 : dateOf(Math.floor(last / DAY_SECONDS)).year,
  };
  for (const { at, offset } of transitions) append(zone, at, offset);
  return zone;
}

/** 400 years: after so many seconds calendar, weekdays and yearly rules all repeat. */
const CYCLE_SECONDS = 146_097 * DAY_SECONDS;

/** Where a search from `t` may stop: what has not happened by then never will. */
export function searchEnd(zone: Zone, t: number): number {
  return Math.max(t, zone.listedUntil) + CYCLE_SECONDS + 2 * DAY_SECONDS;
}

/**
 * Whole cycles (in seconds) by which `t` lies beyond the first one that the rule alone governs; 0 for nearly everything.
 * What is asked of an instant so far away is asked of the same instant of that first cycle, so that the table stays small
 * (up to the year 9999 it would have 16,000 segments, 10 ms to make).
 */
export function cyclesBeyond(zone: Zone, t: number): number {
  const governedFrom = Math.max(zone.listedUntil, 0) + CYCLE_SECONDS;
  return Math.max(0, Math.floor((t - governedFrom) / CYCLE_SECONDS)) * CYCLE_SECONDS;
}

/** Index of the segment that holds `t` (epoch seconds). */
export function segmentAt(zone: Zone, t: number): number {
  while (t >= zone.at[zone.at.length - 1]! && grow(zone)) {}
  let low = 0;
  let high = zone.at.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (zone.at[middle]! <= t) low = middle;
    else high = middle - 1;
  }
  return low;
}

/** The instant at which segment `k` ends, `Infinity` where it never does. */
export function segmentEnd(zone: Zone, k: number): number {
  while (k + 1 >= zone.at.length && grow(zone)) {}
  return zone.at[k + 1] ?? Number.POSITIVE_INFINITY;
}

/** What the clocks skip when segment `k` begins: wall seconds from (inclusive) and to (exclusive); undefined for nothing. */
export function gapBefore(zone: Zone, k: number): { readonly from: number; readonly to: number } | undefined {
  if (k === 0) return undefined;
  const from = zone.highEnds[k]!;
  const to = zone.at[k]! + zone.offsets[k]!;
  return from < to ? { from, to } : undefined;
}

/** Seconds east of UTC at `t` (epoch seconds). */
export function offsetAt(zone: Zone, t: number): number {
  return zone.offsets[segmentAt(zone, t - cyclesBeyond(zone, t))]!;
}

/** H(t): the highest wall second shown at any instant up to and including the whole second `t`. */
export function highestWall(zone: Zone, t: number): number {
  const k = segmentAt(zone, t);
  return Math.max(t + zone.offsets[k]!, zone.highEnds[k]! - 1);
}

/** F(w): the first instant (epoch seconds) at which the wall reads `w` or later. */
export function firstReading(zone: Zone, w: number): number {
  const beyond = cyclesBeyond(zone, w);
  if (beyond > 0) return firstReading(zone, w - beyond) + beyond;
  while (w >= zone.at[zone.at.length - 1]! - 2 * DAY_SECONDS && grow(zone)) {}
  // The segment wanted is the last one whose predecessors all end at or before w; highEnds never falls.
  let low = 0;
  let high = zone.at.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (zone.highEnds[middle]! <= w) low = middle;
    else high = middle - 1;
  }
  return Math.max(zone.at[low]!, w - zone.offsets[low]!);
}

function append(zone: Zone, at: number, offset: number): void {
  const last = zone.at.length - 1;
  if (at <= zone.at[last]!) return;
  zone.at.push(at);
  zone.offsets.push(offset);
  zone.highEnds.push(Math.max(zone.highEnds[last]!, at + zone.offsets[last]!));
}

/** Extends the table by some years; false when there is nothing more to come. */
function grow(zone: Zone): boolean {
  if (zone.rule.summer === undefined || zone.nextYear >= LAST_YEAR) return false;
  for (const until = Math.min(zone.nextYear + YEARS_AT_ONCE, LAST_YEAR); zone.nextYear < until; zone.nextYear += 1) {
    for (const { at, offset } of transitionsOfYear(zone.rule, zone.nextYear)) append(zone, at, offset);
  }
  return true;
}
