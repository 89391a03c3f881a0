import { type BackfillPolicy, judgeInstant, type Recorded, type Verdict, walkRange } from "../../../domain/backfill.ts";
import type { Definition } from "../../../domain/definition.ts";
import { bounded, offsetOf } from "../../../domain/materialization.ts";
import { countNames, type Tally } from "../../../domain/operation.ts";
import { atNominal, type Place, withOffset } from "../../../domain/placement.ts";
import type { NextAfter } from "../../../domain/planning/look-back.ts";
import type { CompiledRule } from "../../../domain/recurrence/compile.ts";
import { nextAfter } from "../../../domain/recurrence/next.ts";
import type { ScheduleStatus } from "../../../domain/states.ts";
import type { Instant } from "../../../kernel/clock.ts";
import { callerError } from "../../../kernel/errors.ts";
import { deriveRunId, type Uuid } from "../../../kernel/ids.ts";
import type { Transaction } from "../../../store/database.ts";
import { type CursorRow, isNextUnknown } from "../../../store/rows/cursors.ts";
import { type PastRange, readPastRanges, readPastRuns } from "../../../store/rows/operations/backfill.ts";
import type { Authority } from "../../authority.ts";
import { loadPlacings, MissingCalendar, type Placings } from "../../calendars/placings.ts";
import { revisionOf } from "../../revisions.ts";

/** A schedule's rule, calendars and window, as they name and place its instants. */
export type Walk = {
  scheduleId: Uuid;
  revision: number;
  definition: Definition;
  next: NextAfter;
  place: Place;
  /** Looks up what `place` did not know; true: what was placed must be placed anew. */
  learn(): Promise<boolean>;
  policy: BackfillPolicy;
};

/**
 * From where on a schedule's instants are decided later, although they are past (null: none are): in a pause by its end,
 * after a rule that could not be computed by its recovery.
 */
export function undecidedFrom(status: ScheduleStatus, cursor: CursorRow): Instant | null {
  if (isNextUnknown(cursor)) return (cursor.last_nominal_at ?? Math.floor(cursor.chain_started_at)) + 1;
  return status === "paused" ? cursor.next_run_at : null;
}

/** Throws `invalid-rule` when the rule cannot be computed, or a calendar is not there, at present. */
export async function walkOf(
  authority: Authority,
  tx: Transaction,
  schedule: CursorRow,
  policy: BackfillPolicy,
): Promise<Walk> {
  const { schedule_id: scheduleId, revision } = schedule;
  await authority.revisions.load(tx, [revisionOf(schedule)]);
  const { definition } = authority.revisions.get(revisionOf(schedule));
  const rule = ruleOf(authority, definition);
  const ruleNext: NextAfter = (at) => nextAfter(rule, at);
  const placings = await loadPlacings(authority, tx, [schedule]);
  const placeByCalendars = placingOf(placings, schedule, definition, rule) ?? atNominal;
  return {
    scheduleId,
    revision,
    definition,
    next: bounded(ruleNext, definition),
    place: withOffset(placeByCalendars, offsetOf(scheduleId, definition, ruleNext)),
    learn: () => placings.learn(tx),
    policy,
  };
}

function placingOf(placings: Placings, schedule: CursorRow, definition: Definition, rule: CompiledRule) {
  try {
    return placings.of(schedule, definition, rule);
  } catch (error) {
    if (error instanceof MissingCalendar) throw callerError("invalid-rule", error.message);
    throw error;
  }
}

function ruleOf(authority: Authority, definition: Definition): CompiledRule {
  const compiled = authority.revisions.rule(definition);
  if (compiled.ok) return compiled.rule;
  throw callerError("invalid-rule", `The schedule's rule cannot be computed at present: ${compiled.fault.message}`);
}

/** What is to become of the next instants in [fromAt, toAt), at most `limit` of them, and where to go on (null: nowhere). */
export async function judgePast(
  authority: Authority,
  tx: Transaction,
  walk: Walk,
  fromAt: Instant,
  toAt: Instant,
  limit: number,
): Promise<{ verdicts: Verdict[]; restAt: Instant | null }> {
  const { instants, restAt } = walkRange(walk.next, fromAt, toAt, limit);
  const recorded = await readRecorded(authority, tx, walk, instants);
  const judge = () => instants.map((at) => judgeInstant(at, recorded.get(at), walk.policy, walk.place));
  let verdicts = judge();
  while (await walk.learn()) verdicts = judge();
  return { verdicts, restAt };
}

async function readRecorded(
  authority: Authority,
  tx: Transaction,
  walk: Walk,
  instants: readonly Instant[],
): Promise<Map<Instant, Recorded>> {
  const recorded = new Map<Instant, Recorded>();
  if (instants.length === 0) return recorded;
  const { scheduleId } = walk;
  const ranges = await readPastRanges(tx, scheduleId, instants[0]!, instants.at(-1)!);
  const names = await membership(authority, tx, walk, ranges);
  let k = 0;
  for (const at of instants) {
    while (k < ranges.length && ranges[k]!.to_at < at) k++;
    const range = ranges[k];
    if (range === undefined || at < range.from_at || !names(range, at)) continue;
    recorded.set(at, { kind: "range", reason: range.reason, fromAt: range.from_at });
  }
  const ids = instants.map((at) => deriveRunId(scheduleId, "schedule", at));
  const instantOfId = new Map(ids.map((id, i) => [id, instants[i]!]));
  // A row wins over the range around it.
  for (const row of await readPastRuns(tx, instants, ids)) {
    const { state, skip_reason: reason } = row;
    recorded.set(instantOfId.get(row.id)!, reason === null ? { kind: "run", state } : { kind: "skip", reason });
  }
  return recorded;
}

/** An instant of today's rule lies in an older range only if the rule of that time named it, too. */
async function membership(
  authority: Authority,
  tx: Transaction,
  walk: Walk,
  ranges: readonly PastRange[],
): Promise<(range: PastRange, at: Instant) => boolean> {
  const { scheduleId } = walk;
  const older = ranges.filter((range) => range.revision !== walk.revision);
  const keys = older.map(({ revision, content }) => ({ scheduleId, revision, content }));
  await authority.revisions.load(tx, keys);
  const rules = new Map<number, NextAfter>();
  for (const key of keys) {
    const { definition } = authority.revisions.get(key);
    const compiled = authority.revisions.rule(definition);
    // One that cannot be computed any more is taken to have named whatever lies in its range.
    if (compiled.ok)
      rules.set(
        key.revision,
        bounded((at) => nextAfter(compiled.rule, at), definition),
      );
  }
  return (range, at) => {
    const next = rules.get(range.revision);
    return next === undefined || next(at - 1) === at;
  };
}

/** Counts verdicts by what stood there, or why nothing is done. */
export function tallyOf(verdicts: readonly Verdict[]): Tally {
  return countNames(verdicts.map(nameOf));
}

const SOURCES = { skip: "skipped", range: "skipped-range" } as const;

function nameOf(verdict: Verdict): string {
  if (verdict.kind === "existing") return `existing:${verdict.state}`;
  if (verdict.kind === "excluded") return `excluded:${verdict.reason}`;
  return verdict.was === undefined ? "unrecorded" : SOURCES[verdict.was.kind];
}
