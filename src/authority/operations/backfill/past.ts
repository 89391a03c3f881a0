import { type BackfillPolicy, judgeInstant, type Recorded, type Verdict, walkRange } from "../../../domain/backfill.ts";
import type { Definition } from "../../../domain/definition.ts";
import { bounded } from "../../../domain/materialization.ts";
import type { NextAfter } from "../../../domain/misfire.ts";
import type { Tally } from "../../../domain/operation.ts";
import { atNominal, type Place } from "../../../domain/placement.ts";
import { nextAfter } from "../../../domain/recurrence/next.ts";
import type { Instant } from "../../../kernel/clock.ts";
import { callerError } from "../../../kernel/errors.ts";
import { deriveRunId, type Uuid } from "../../../kernel/ids.ts";
import type { Queryable } from "../../../store/database.ts";
import { type PastRange, readPastRanges, readPastRuns } from "../../../store/rows/backfill.ts";
import type { Authority } from "../../authority.ts";

/** A schedule's rule and calendars, as they name and place its instants. */
export type Walk = {
  scheduleId: Uuid;
  revision: number;
  definition: Definition;
  next: NextAfter;
  place: Place;
  policy: BackfillPolicy;
};

/** Throws when the rule cannot be computed at present. */
export async function walkOf(
  authority: Authority,
  db: Queryable,
  schedule: { schedule_id: Uuid; revision: number },
  policy: BackfillPolicy,
): Promise<Walk> {
  const { schedule_id: scheduleId, revision } = schedule;
  await authority.revisions.load(db, [{ scheduleId, revision, content: null }]);
  const { definition } = authority.revisions.get({ scheduleId, revision, content: null });
  return { scheduleId, revision, definition, next: nextOf(authority, scheduleId, revision), place: atNominal, policy };
}

/** How a loaded revision's rule names instants. */
function nextOf(authority: Authority, scheduleId: Uuid, revision: number): NextAfter {
  const { definition } = authority.revisions.get({ scheduleId, revision, content: null });
  const compiled = authority.revisions.rule(definition);
  if (!compiled.ok) {
    throw callerError("invalid-rule", `The schedule's rule cannot be computed at present: ${compiled.fault.message}`);
  }
  return bounded((at) => nextAfter(compiled.rule, at), definition);
}

/** What is to become of the next instants in [fromAt, toAt), at most `limit` of them, and where to go on (null: nowhere). */
export async function judgePast(
  authority: Authority,
  db: Queryable,
  walk: Walk,
  fromAt: Instant,
  toAt: Instant,
  limit: number,
): Promise<{ verdicts: Verdict[]; restAt: Instant | null }> {
  const { instants, restAt } = walkRange(walk.next, fromAt, toAt, limit);
  const recorded = await readRecorded(authority, db, walk, instants);
  return { verdicts: instants.map((at) => judgeInstant(at, recorded.get(at), walk.policy, walk.place)), restAt };
}

async function readRecorded(
  authority: Authority,
  db: Queryable,
  walk: Walk,
  instants: readonly Instant[],
): Promise<Map<Instant, Recorded>> {
  const recorded = new Map<Instant, Recorded>();
  if (instants.length === 0) return recorded;
  const { scheduleId } = walk;
  const ranges = await readPastRanges(db, scheduleId, instants[0]!, instants.at(-1)!);
  const names = await membership(authority, db, walk, ranges);
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
  for (const row of await readPastRuns(db, instants, ids)) {
    const { state, skip_reason: reason } = row;
    recorded.set(instantOfId.get(row.id)!, reason === null ? { kind: "run", state } : { kind: "skip", reason });
  }
  return recorded;
}

/** An instant of today's rule lies in an older range only if the rule of that time named it, too. */
async function membership(
  authority: Authority,
  db: Queryable,
  walk: Walk,
  ranges: readonly PastRange[],
): Promise<(range: PastRange, at: Instant) => boolean> {
  const { scheduleId } = walk;
  const revisions = [...new Set(ranges.map((range) => range.revision))].filter((one) => one !== walk.revision);
  await authority.revisions.load(
    db,
    revisions.map((revision) => ({ scheduleId, revision, content: null })),
  );
  const rules = new Map(revisions.map((revision) => [revision, nextOf(authority, scheduleId, revision)]));
  return (range, at) => {
    const next = rules.get(range.revision);
    return next === undefined || next(at - 1) === at;
  };
}

/** Counts verdicts by what stood there, or why nothing is done. */
export function tallyOf(verdicts: readonly Verdict[]): Tally {
  const tally: Record<string, number> = {};
  for (const verdict of verdicts) {
    const name = nameOf(verdict);
    tally[name] = (tally[name] ?? 0) + 1;
  }
  return tally;
}

const SOURCES = { skip: "skipped", range: "skipped-range" } as const;

function nameOf(verdict: Verdict): string {
  if (verdict.kind === "existing") return `existing:${verdict.state}`;
  if (verdict.kind === "excluded") return `excluded:${verdict.reason}`;
  return verdict.was === undefined ? "unrecorded" : SOURCES[verdict.was.kind];
}
