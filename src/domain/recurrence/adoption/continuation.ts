/**
 * How a rule goes on when the tz database says something new about its zone. Runs have happened by the old data, so the
 * wall clock that people remember and the one the new data computes may disagree about the last of them. What counts is
 * the wall time that was served, not the instant:
 *
 *   clocks turn out to be behind   the new data shows served wall times again: they stay served
 *   clocks turn out to be ahead    wall times that nobody has served lie before the last run: they are *owed*
 *
 * Fixed-time rules and local dates make appointments, and each is kept once. What reads the wall without making
 * appointments (interval-like rules) or does not read it (intervals, instants) goes on by instants, as it does through
 * every other clock change.
 */
import type { CompiledCron, CompiledRule, CompiledSingle } from "../compiled.ts";
import { nextMatch } from "../cron/pattern.ts";
import { nextAfter } from "../next.ts";
import { LONGEST_GAP } from "../walk.ts";
import { firstReading, highestWall, offsetAt, type Zone } from "../zone.ts";

export type Stand = {
  /** The last nominal instant, or where the chain began: nothing may be due at it or before. Epoch ms, whole. */
  readonly at: number;
  /** The highest wall second that a clock in the zone had shown by then, by the data of the time; undefined: not known. */
  wallIn(zone: Zone): number | undefined;
};

/** The part of one rule that is left: its first instant after `from` is next; `owed` are instants that have gone by. */
type Rest = { readonly rule: CompiledRule; readonly from: number; readonly owed: readonly number[] };

/**
 * `nextAfter` for a rule that stands at `stand`. Appointments that are owed have no instant of their own any more, their
 * true one being taken or past: they get the milliseconds right after `stand.at`, so that the chain of instants goes on.
 */
export function continueFrom(rule: CompiledRule, stand: Stand): (afterAt: number) => number | null {
  const members = rule.kind === "anyOf" ? rule.rules : [rule];
  const rests = members.map((member) => restOf(member, stand));
  const regular = (at: number) => {
    const found = rests.flatMap((rest) => nextAfter(rest.rule, Math.max(at, rest.from)) ?? []);
    return found.length === 0 ? null : Math.min(...found);
  };
  const room = (regular(stand.at) ?? Number.POSITIVE_INFINITY) - stand.at - 1;
  const owed = Math.min(new Set(rests.flatMap((rest) => rest.owed)).size, room);
  return (at) => (at < stand.at + owed ? Math.floor(Math.max(at, stand.at)) + 1 : regular(at));
}

function restOf(rule: CompiledSingle, stand: Stand): Rest {
  if (rule.kind === "cron" && rule.timing === "fixed") return restOfFixed(rule, stand);
  if (rule.kind === "dates" && rule.local !== undefined) {
    const { zone, walls } = rule.local;
    const served = stand.wallIn(zone);
    if (served === undefined) return { rule, from: stand.at, owed: [] };
    const left = new Set(walls.filter((wall) => wall > served).map((wall) => firstReading(zone, wall)));
    const instants = rule.instants.filter((at) => left.has(Math.floor(at / 1000)));
    return {
      rule: { ...rule, instants },
      from: stand.at,
      owed: instants.filter((at) => at <= stand.at),
    };
  }
  return { rule, from: stand.at, owed: [] };
}

function restOfFixed(rule: CompiledCron, stand: Stand): Rest {
  const { pattern, zone } = rule;
  const t = Math.floor(stand.at / 1000);
  // In a repeated hour, first passes are behind; where a later pass is kept too, only what the wall reads now is.
  const reached = rule.overlap === "first" ? highestWall(zone, t) : t + offsetAt(zone, t);
  const remembered = stand.wallIn(zone);
  // What lies further apart than any clock ever moved was not remembered of this stand.
  const served = remembered === undefined || Math.abs(remembered - reached) > LONGEST_GAP ? reached : remembered;
  const owed: number[] = [];
  for (let wall = served; ; ) {
    wall = nextMatch(pattern, wall + 1, reached + 1);
    if (!(wall <= reached)) break;
    const at = firstReading(zone, wall);
    const isSkipped = rule.gap === "skip" && at + offsetAt(zone, at) !== wall;
    if (!isSkipped) owed.push(at * 1000);
  }
  return { rule, from: served > reached ? whereServedEnds(rule, served) : stand.at, owed };
}

/** The instant that shows the last served wall time; a moment before it where that instant also is an appointment's not served. */
function whereServedEnds({ pattern, zone, gap }: CompiledCron, served: number): number {
  const at = firstReading(zone, served);
  const hasUnserved =
    gap !== "skip" && nextMatch(pattern, served + 1, highestWall(zone, at) + 1) < Number.POSITIVE_INFINITY;
  return at * 1000 - (hasUnserved ? 1 : 0);
}
