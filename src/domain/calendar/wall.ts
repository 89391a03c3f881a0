import { DAY_SECONDS } from "../recurrence/civil.ts";
import type { CompiledRule, CompiledSingle } from "../recurrence/compiled.ts";
import { matches, nextMatch } from "../recurrence/cron/pattern.ts";
import { nextAfter } from "../recurrence/next.ts";
import { firstReading, gapBefore, offsetAt, segmentAt, type Zone } from "../recurrence/zone.ts";

/** A rule, or one of those an `anyOf` joins, with the zone whose clock it reads; undefined: elapsed time, or instants. */
export type Member = { readonly rule: CompiledSingle; readonly zone: Zone | undefined };

export function membersOf(rule: CompiledRule): Member[] {
  const singles = rule.kind === "anyOf" ? rule.rules : [rule];
  return singles.map((one) => ({ rule: one, zone: zoneRead(one) }));
}

function zoneRead(rule: CompiledSingle): Zone | undefined {
  if (rule.kind === "cron") return rule.zone;
  return rule.kind === "dates" ? rule.local?.zone : undefined;
}

/**
 * The wall time (seconds) that an instant of the member stands for: what the wall shows or, of a fixed time that fell
 * into a gap, the time that was skipped.
 */
export function wallOf({ rule }: Member, zone: Zone, at: number): number {
  const t = Math.floor(at / 1000);
  const shown = t + offsetAt(zone, t);
  if (rule.kind !== "cron" || rule.zone !== zone || rule.timing !== "fixed") return shown;
  if (matches(rule.pattern, shown)) return shown;
  const k = segmentAt(zone, t);
  const skipped = gapBefore(zone, k);
  if (skipped === undefined) return shown;
  // gap: shift
  const unmoved = t + zone.offsets[k - 1]!;
  if (unmoved >= skipped.from && unmoved < skipped.to && matches(rule.pattern, unmoved)) return unmoved;
  // gap: first
  const first = t === zone.at[k] ? nextMatch(rule.pattern, skipped.from, skipped.to) : Number.POSITIVE_INFINITY;
  return first === Number.POSITIVE_INFINITY ? shown : first;
}

/** Further from a change than it can move the clocks: a zone left out a whole day. */
const FAR_SECONDS = 2 * DAY_SECONDS;

/** The instants (epoch ms) that may stand for a wall time: each pass of it, and where a gap leaves or moves it to. */
export function instantsOfWall(zone: Zone, wall: number, ms: number): number[] {
  const first = firstReading(zone, wall);
  const k = segmentAt(zone, first);
  // Far from every change of the clocks, it is read once.
  if (first - zone.at[k]! > FAR_SECONDS && zone.at[k + 1]! - first > FAR_SECONDS) return [first * 1000 + ms];
  const offsets = [k - 1, k, k + 1].flatMap((one) => zone.offsets[one] ?? []);
  return [...new Set([first, ...offsets.map((offset) => wall - offset)])].map((t) => t * 1000 + ms);
}

/** The first instant (epoch ms) at which the wall reads `wall` or later; the fraction counts where it reads just that. */
export function instantOfWall(zone: Zone, wall: number, ms: number): number {
  const t = firstReading(zone, wall);
  return t * 1000 + (firstReading(zone, wall + 1) > t ? ms : 0);
}

/** A stretch of wall time (seconds), its end exclusive. */
type Stretch = { readonly from: number; readonly to: number };

/** The wall times that the gap skipped that ends at just this instant (epoch ms); undefined: none does. */
export function skippedUpTo(zone: Zone, at: number): Stretch | undefined {
  const k = segmentAt(zone, at / 1000);
  return zone.at[k] === at / 1000 ? gapBefore(zone, k) : undefined;
}

/** More instants are not looked at, in a stretch of some hours: a rule of every second. */
const MOST_WITHIN = 1000;

/** The rule's instants (epoch ms) in the stretch, so many days before it. */
export function instantsWithin(rule: CompiledSingle, zone: Zone, stretch: Stretch, days: number): number[] {
  const untilAt = firstReading(zone, stretch.to - days * DAY_SECONDS) * 1000;
  const found: number[] = [];
  let at = nextAfter(rule, firstReading(zone, stretch.from - days * DAY_SECONDS) * 1000 - 1);
  for (; at !== null && at < untilAt && found.length < MOST_WITHIN; at = nextAfter(rule, at)) found.push(at);
  return found;
}
