import type { Instant } from "../../kernel/clock.ts";
import type { CompiledCron, CompiledRule, CompiledSingle } from "../recurrence/compiled.ts";
import { nextAfter } from "../recurrence/next.ts";
import { cyclesBeyond, segmentAt, type Zone } from "../recurrence/zone.ts";

/**
 * How close together a rule's instants come. Days differ (clock changes, months, several rules in one), so it walks: a
 * stretch from now on, the days around every clock change of the year after, and of several rules each by itself and where
 * it begins: one may wait for years behind another that fills the stretch.
 */

/** Instants looked at from now on, around each clock change, and from where a rule of several begins. At some 2 µs each and rule. */
const MOST_AHEAD = 10_000;
const MOST_AROUND = 3_000;
const MOST_BEGINNING = 500;
const YEAR_MS = 366 * 86_400_000;
/** No zone has skipped or repeated more than a day. */
const AROUND_MS = 36 * 3_600_000;

/**
 * The least time between two instants of the rule in [fromAt, toAt), as far as it is looked at; null where there are no
 * two. Stops at the first gap below `enough`.
 */
export function leastGap(rule: CompiledRule, fromAt: Instant, toAt: Instant, enough = 0): number | null {
  // Its instants follow from ends of runs, each so long after one.
  if (rule.kind === "afterCompletion") return rule.delayMs;
  let least = walk(rule, fromAt, toAt, MOST_AHEAD, enough);
  if (rule.kind === "interval") return least;
  for (const single of singlesOf(rule)) {
    if (rule.kind !== "anyOf" || (least !== null && least < enough)) break;
    const first = nextAfter(single, fromAt - 1);
    if (first === null || first >= toAt) continue;
    least = smaller(least, walk(single, fromAt, toAt, MOST_AROUND, enough));
    // With what the others do just before it.
    const beginsAt = Math.max(fromAt, first - enough);
    least = smaller(least, walk(rule, beginsAt, toAt, MOST_BEGINNING, enough));
  }
  for (const at of clockChanges(rule, fromAt, Math.min(toAt, fromAt + YEAR_MS))) {
    if (least !== null && least < enough) break;
    const around = walk(rule, Math.max(fromAt, at - AROUND_MS), Math.min(toAt, at + AROUND_MS), MOST_AROUND, enough);
    least = smaller(least, around);
  }
  return least;
}

function walk(rule: CompiledRule, fromAt: Instant, toAt: Instant, most: number, enough: number): number | null {
  // Every gap of these is the first one.
  const wanted = rule.kind === "interval" ? 2 : most;
  let least: number | null = null;
  let before = nextAfter(rule, fromAt - 1);
  for (let n = 1; n < wanted && before !== null; n++) {
    const at = nextAfter(rule, before);
    if (at === null || at >= toAt) break;
    least = smaller(least, at - before);
    if (least !== null && least < enough) break;
    before = at;
  }
  return least;
}

function smaller(a: number | null, b: number | null): number | null {
  if (a === null || b === null) return a ?? b;
  return Math.min(a, b);
}

function singlesOf(rule: CompiledRule): readonly CompiledSingle[] {
  return rule.kind === "anyOf" ? rule.rules : [rule];
}

/** When the clocks of the rule's zones change (epoch ms), each once. */
function clockChanges(rule: CompiledRule, fromAt: Instant, toAt: Instant): Instant[] {
  const zones = new Set(
    singlesOf(rule)
      .filter((one): one is CompiledCron => one.kind === "cron")
      .map((one) => one.zone),
  );
  return [...new Set([...zones].flatMap((zone) => changesOf(zone, fromAt / 1000, toAt / 1000)))].sort((a, b) => a - b);
}

function changesOf(zone: Zone, from: number, to: number): Instant[] {
  // So far away years repeat those that were looked at, and a table up to there would be a long one.
  if (cyclesBeyond(zone, to) > 0) return [];
  const last = segmentAt(zone, to);
  return zone.at.slice(segmentAt(zone, from) + 1, last + 1).map((second) => second * 1000);
}
