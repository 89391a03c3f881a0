import type { RunState, SkipReason } from "../../../domain/states.ts";
import type { Instant } from "../../../kernel/clock.ts";
import type { Uuid } from "../../../kernel/ids.ts";
import { type Queryable, sql } from "../../database.ts";
import { located } from "../../located.ts";
import { instantText } from "../../values.ts";

/** The past of one schedule, as a backfill reads and reopens it under the schedule's lock. */

const READ_RUNS = sql(
  "backfill_read_runs",
  `select r.id, coalesce(l.state, case r.state when 'open' then 'queued' else r.state end) as state, r.skip_reason
     from unnest($1::timestamptz[], $2::uuid[]) as k (scheduled_at, id)
     join run r on r.scheduled_at = k.scheduled_at and r.id = k.id
     left join live_run l on l.id = r.id`,
);
/** Ranges of a schedule are disjoint, so of those that begin before $2 only the last one can reach it. */
const READ_RANGES = sql(
  "backfill_read_ranges",
  `select g.from_at, g.to_at, g.revision, g.reason, v.content
     from skip_range g join schedule_revision v on v.schedule_id = g.schedule_id and v.revision = g.revision
    where g.schedule_id = $1 and g.from_at <= $3::timestamptz and g.to_at >= $2::timestamptz
      and g.from_at >= coalesce((select max(b.from_at) from skip_range b
                                where b.schedule_id = $1 and b.from_at <= $2::timestamptz), $2::timestamptz)
    order by g.from_at`,
);
const REOPEN = sql(
  "backfill_reopen_skips",
  `update run r
      set state = 'open', skip_reason = null, finished_at = null, cancel_requested_at = null, trigger = 'backfill',
          revision = $4, class = $5, due_at = s.due_at, admitted_at = $6
     from unnest($1::timestamptz[], $2::uuid[], $3::timestamptz[]) as s (scheduled_at, id, due_at)
    where r.scheduled_at = s.scheduled_at and r.id = s.id and r.state = 'skipped'
   returning r.id, r.attempts, r.started_at`,
);
/** Attempts are numbered on: a run that was tried before it was skipped keeps what it had. */
const CARRY_ATTEMPTS = sql(
  "backfill_carry_attempts",
  `update live_run l set attempt = a.attempts, started_at = a.started_at
     from ${located("live_run", "$1::uuid[], $2::int[], $3::timestamptz[]", "id, attempts, started_at")} a
    where l.ctid = a.place`,
);
const ADD_BACKFILLED = sql(
  "backfill_add_to_ranges",
  `update skip_range g set backfilled = g.backfilled + b.runs
     from unnest($2::timestamptz[], $3::bigint[]) as b (from_at, runs)
    where g.schedule_id = $1 and g.from_at = b.from_at`,
);
/** All counts stop at $2. */
const COUNT_OPEN = sql(
  "backfill_count_open",
  `select (select count(*)::int from (select 1 from live_run where schedule_id = $1 limit $2) o) as open,
          (select count(*)::int from (select 1 from live_run
            where schedule_id = $1 and state = 'blocked' and held_by <> 'pause' limit $2) b) as blocked,
          (select count(*)::int from (select 1 from live_run
            where schedule_id = $1 and state = 'blocked' and held_by = 'pause' limit $2) h) as held`,
);

export type PastRun = { id: Uuid; state: RunState; skip_reason: SkipReason | null };

/** The runs and skips that exist under these ids, whose instants are given beside them. */
export function readPastRuns(db: Queryable, instants: readonly Instant[], ids: readonly Uuid[]): Promise<PastRun[]> {
  return db.query<PastRun>(READ_RUNS, [instants, ids]);
}

/** `content` is the digest of its revision, as the cache of revisions asks for it. */
export type PastRange = {
  from_at: Instant;
  to_at: Instant;
  revision: number;
  content: Uuid | null;
  reason: SkipReason;
};

/** Ranges that touch [fromAt, toAt], in order. */
export function readPastRanges(db: Queryable, scheduleId: Uuid, fromAt: Instant, toAt: Instant): Promise<PastRange[]> {
  return db.query<PastRange>(READ_RANGES, [scheduleId, instantText(fromAt), instantText(toAt)]);
}

export type Reopened = { id: Uuid; attempts: number; started_at: Instant | null };

/** Opens skips again, of this revision from now on; answers those that were skips. */
export async function reopenSkips(
  tx: Queryable,
  skips: readonly { id: Uuid; at: Instant; dueAt: Instant }[],
  work: { revision: number; class: string },
  nowAt: Instant,
): Promise<Reopened[]> {
  if (skips.length === 0) return [];
  return tx.query<Reopened>(REOPEN, [
    skips.map((skip) => skip.at),
    skips.map((skip) => skip.id),
    skips.map((skip) => skip.dueAt),
    work.revision,
    work.class,
    instantText(nowAt),
  ]);
}

export async function carryAttempts(tx: Queryable, runs: readonly Reopened[]): Promise<void> {
  if (runs.length === 0) return;
  await tx.query(CARRY_ATTEMPTS, [
    runs.map((run) => run.id),
    runs.map((run) => run.attempts),
    runs.map((run) => run.started_at),
  ]);
}

/** Adds to each range (by its first instant) how many of its instants have become runs. */
export async function addBackfilled(
  tx: Queryable,
  scheduleId: Uuid,
  runsByRange: ReadonlyMap<Instant, number>,
): Promise<void> {
  if (runsByRange.size === 0) return;
  await tx.query(ADD_BACKFILLED, [scheduleId, [...runsByRange.keys()], [...runsByRange.values()]]);
}

/**
 * Open runs of a schedule, those of them that wait their turn, and those that a failure has held until the schedule is
 * resumed; counted up to `most`.
 */
export type OpenRuns = { open: number; blocked: number; held: number };

export async function countOpenRuns(tx: Queryable, scheduleId: Uuid, most: number): Promise<OpenRuns> {
  return (await tx.query<OpenRuns>(COUNT_OPEN, [scheduleId, most]))[0]!;
}
