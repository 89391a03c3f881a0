import { showInstant } from "../../../api/present/instant.ts";
import { isTouched } from "../../../domain/recurrence/adoption/changed-zones.ts";
import { type Difference, differenceOf, shadowOf } from "../../../domain/recurrence/adoption/shadow.ts";
import type { Rule } from "../../../domain/recurrence/rule.ts";
import { plural } from "../../../domain/recurrence/words.ts";
import type { ZoneSource } from "../../../domain/recurrence/zone-source.ts";
import { localInstant } from "../../../domain/rule-zone.ts";
import { showId } from "../../../kernel/ids.ts";
import { readDistinctRules } from "../../../store/reads/distinct-rules.ts";
import { readWatermark } from "../../../store/reads/status.ts";
import type { Core } from "../../core.ts";
import { printLine, visible } from "../print.ts";

/** "The next month": what people can check by hand, and what a yearly rule is not yet seen in. */
const MONTH_MS = 31 * 86_400_000;

/** A rule that would do something else, with the instants in both readings. */
export type Moved = { rule: Rule; schedules: number; example: string; difference: Difference };

export type Reading = { readonly before: ZoneSource; readonly after: ZoneSource };

export async function readRules(core: Core): Promise<Omit<Moved, "difference">[]> {
  return (await readDistinctRules(core.db)).map(({ rule, schedules, example }) => ({
    rule: JSON.parse(rule) as Rule,
    schedules,
    example: showId("sch", example),
  }));
}

/** From now, by the database's clock. */
export async function nextMonth(core: Core): Promise<{ from: number; until: number }> {
  const from = Math.floor(await readWatermark(core.db));
  return { from, until: from + MONTH_MS };
}

/** What goes otherwise under other zones: rules whose zones have not changed cannot. */
export async function movedByZones(core: Core, { before, after }: Reading): Promise<Moved[]> {
  const { from, until } = await nextMonth(core);
  return (await readRules(core)).flatMap(({ rule, schedules, example }) => {
    if (!isTouched(rule, before, after)) return [];
    const difference = differenceOf(shadowOf(rule, before, from, until), shadowOf(rule, after, from, until));
    return difference === undefined ? [] : [{ rule, schedules, example, difference }];
  });
}

const SHOWN_RULES = 50;
const SHOWN_INSTANTS = 3;

/** For people: each rule with its first instants, most schedules first. */
export function printMoved(moved: readonly Moved[], reading: Reading): void {
  const byCount = moved.toSorted((a, b) => b.schedules - a.schedules);
  for (const { rule, schedules, example, difference } of byCount.slice(0, SHOWN_RULES)) {
    printLine(visible(`${plural(schedules, "schedule")} such as ${example}: ${JSON.stringify(rule)}`));
    if (difference.fault !== undefined) {
      printLine(visible(`  before: ${difference.fault.before ?? "computed"}`));
      printLine(visible(`  after:  ${difference.fault.after ?? "computed"}`));
    }
    for (const { before, after } of difference.moves.slice(0, SHOWN_INSTANTS)) {
      printLine(`  ${show(before, rule, reading.before)} → ${show(after, rule, reading.after)}`);
    }
    const more = difference.moves.length - SHOWN_INSTANTS;
    if (more > 0) printLine(`  and ${more} more`);
  }
  if (moved.length > SHOWN_RULES) printLine(`… and ${moved.length - SHOWN_RULES} more rules (--json has them all)`);
}

function show(at: number | null, rule: Rule, zones: ZoneSource): string {
  return at === null ? "none" : `${showInstant(at)} (${localInstant(at, rule, zones)})`;
}

/** The same for programs. */
export function documentOf(moved: readonly Moved[], reading: Reading): unknown[] {
  const both = (at: number | null, rule: Rule, zones: ZoneSource) =>
    at === null ? null : { at: showInstant(at), local: localInstant(at, rule, zones) };
  return moved.map(({ rule, schedules, example, difference: { moves, fault } }) => ({
    rule,
    schedules,
    example,
    ...(fault === undefined ? {} : { fault }),
    moves: moves.map(({ before, after }) => ({
      before: both(before, rule, reading.before),
      after: both(after, rule, reading.after),
    })),
  }));
}

export function summaryOf(moved: readonly Moved[]): string {
  if (moved.length === 0) return "Nothing moves in the next month.";
  const schedules = moved.reduce((sum, one) => sum + one.schedules, 0);
  const instants = moved.reduce((sum, one) => sum + one.difference.moves.length * one.schedules, 0);
  return `In the next month ${plural(instants, "run")} of ${plural(schedules, "schedule")} move (${plural(moved.length, "rule")}).`;
}
