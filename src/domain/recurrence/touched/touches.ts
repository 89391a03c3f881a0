/**
 * What a clock change did to one instant of a rule. Asks the same primitives as the walk (which wall times a segment skips,
 * at which instants a wall time is shown), so that nothing here knows how large a change is.
 */
import type { CompiledCron, CompiledRule } from "../compiled.ts";
import { matches } from "../cron/pattern.ts";
import { isInstantOf } from "../next.ts";
import { LONGEST_GAP } from "../walk.ts";
import { firstReading, gapBefore, segmentAt, segmentEnd, type Zone } from "../zone.ts";
import { namedTimes, type SkippedTimes, skippedTimes } from "./gaps.ts";

export type Touch =
  /** Stands in for wall times that do not exist: where the gap ends (`first`), or as much later as the clocks moved. */
  | { readonly kind: "gap"; readonly policy: "first" | "shift"; readonly skipped: SkippedTimes; readonly wall: number }
  /** Its wall time is shown more than once; `pass` counts from 1. */
  | {
      readonly kind: "overlap";
      readonly policy: "first" | "last" | "each";
      readonly pass: number;
      readonly passes: number;
      readonly wall: number;
    };

/** The clock changes that touched `at` (epoch ms), an instant of the rule; none for an instant that is not one of it. */
export function touchesOf(rule: CompiledRule, at: number): readonly Touch[] {
  if (rule.kind === "anyOf") {
    const all = rule.rules.flatMap((one) => touchesOf(one, at));
    return [...new Map(all.map((touch) => [JSON.stringify(touch), touch])).values()];
  }
  if (!isInstantOf(rule, at)) return [];
  if (rule.kind === "cron") return touchesOfCron(rule, at / 1000);
  return rule.kind === "dates" && rule.local !== undefined ? touchesOfMoments(rule.local, Math.floor(at / 1000)) : [];
}

type LocalMoments = { readonly zone: Zone; readonly walls: readonly number[] };

function touchesOfCron(rule: CompiledCron, t: number): readonly Touch[] {
  const { pattern, zone, gap, overlap } = rule;
  const k = segmentAt(zone, t);
  const wall = t + zone.offsets[k]!;
  const touches: Touch[] = [];
  if (rule.timing === "fixed") {
    const skipped = gap === "first" && zone.at[k] === t ? skippedTimes(pattern, zone, k) : undefined;
    if (skipped !== undefined) touches.push({ kind: "gap", policy: "first", skipped, wall });
    const shifted = gap === "shift" ? shiftedTo(rule, t, k) : undefined;
    if (shifted !== undefined) touches.push({ kind: "gap", policy: "shift", skipped: shifted, wall });
  }
  if (matches(pattern, wall)) {
    const policy = rule.timing === "shown" || overlap === "both" ? "each" : overlap;
    touches.push(...repetition(zone, wall, t, policy));
  }
  return touches;
}

/** The skipped time that became `t` by keeping the offset of before the change. */
function shiftedTo({ pattern, zone }: CompiledCron, t: number, k: number): SkippedTimes | undefined {
  for (let j = k; zone.at[j]! > t - LONGEST_GAP; j -= 1) {
    const gap = gapBefore(zone, j);
    if (gap === undefined) continue;
    const wall = t + zone.offsets[j - 1]!;
    if (wall >= gap.from && wall < gap.to && matches(pattern, wall)) return { walls: [wall], hasMore: false };
  }
  return undefined;
}

/** Local times that were written out: each means the first instant that shows it, or where its gap ends. */
function touchesOfMoments({ zone, walls }: LocalMoments, t: number): readonly Touch[] {
  const meant = walls.filter((wall) => firstReading(zone, wall) === t);
  const wall = t + zone.offsets[segmentAt(zone, t)]!;
  const touches: Touch[] = meant.includes(wall) ? repetition(zone, wall, t, "first") : [];
  const skipped = namedTimes(meant.filter((one) => one !== wall));
  if (skipped !== undefined) touches.unshift({ kind: "gap", policy: "first", skipped, wall });
  return touches;
}

/** A touch where the zone shows `wall` more than once and the policy runs the pass at `t`. */
function repetition(zone: Zone, wall: number, t: number, policy: "first" | "last" | "each"): Touch[] {
  const passes = passesOf(zone, wall);
  const pass = passes.indexOf(t) + 1;
  const isTheOne = policy === "each" || pass === (policy === "first" ? 1 : passes.length);
  return passes.length > 1 && isTheOne ? [{ kind: "overlap", policy, pass, passes: passes.length, wall }] : [];
}

/** The instants (epoch seconds) at which the zone shows `wall`, in order; of one that it does show. */
function passesOf(zone: Zone, wall: number): readonly number[] {
  const first = firstReading(zone, wall);
  const passes = [first];
  for (let k = segmentAt(zone, first) + 1; segmentEnd(zone, k - 1) < first + LONGEST_GAP; k += 1) {
    const t = wall - zone.offsets[k]!;
    if (t >= zone.at[k]! && t < segmentEnd(zone, k)) passes.push(t);
  }
  return passes;
}
