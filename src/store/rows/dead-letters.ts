import type { LetterFilter, LetterState, Resolution } from "../../domain/dead-letters.ts";
import type { RunState, Trigger } from "../../domain/states.ts";
import type { Instant } from "../../kernel/clock.ts";
import type { Uuid } from "../../kernel/ids.ts";
import { type Queryable, sql } from "../database.ts";
import { instantText } from "../values.ts";

/** Dead letters and their runs, as replays and dismissals lock and write them. */

/** What never changes of a dead letter: enough to know what to lock. */
export type LetterKey = { run_id: Uuid; scheduled_at: Instant; schedule_id: Uuid | null };

const READ_KEYS = sql(
  "letters_read_keys",
  "select run_id, scheduled_at, schedule_id from dead_letter where tenant_id = $1 and run_id = any($2::uuid[])",
);
const LOCK = sql(
  "letters_lock",
  `select run_id, coalesce(resolution, 'open') as state, created_at from dead_letter
    where tenant_id = $1 and run_id = any($2::uuid[]) order by run_id for update`,
);
/** A run that is ending has a letter to come: who ends it may be waiting for what the caller holds, so nobody waits here. */
const LOCK_RUNS = sql(
  "letters_lock_runs",
  `select r.id, r.scheduled_at, r.schedule_id, r.tenant_id, r.class, r.revision, r.trigger, r.state, r.attempts,
          r.started_at, r.due_at, r.job is not null or r.payload is not null as own_work,
          coalesce(jsonb_array_length(r.job -> 'effects'), 0) > 0 as own_effects, v.content
     from unnest($1::timestamptz[], $2::uuid[]) as k (scheduled_at, id)
     join run r on r.scheduled_at = k.scheduled_at and r.id = k.id
     left join schedule_revision v on v.schedule_id = r.schedule_id and v.revision = r.revision
    order by r.scheduled_at, r.id for update of r skip locked`,
);
const REOPEN = sql(
  "letters_reopen_runs",
  `with opened as (
   update run r
      set state = 'open', finished_at = null, error_code = null, error_message = null, cancel_requested_at = null
     from unnest($1::timestamptz[], $2::uuid[]) as k (scheduled_at, id)
    where r.scheduled_at = k.scheduled_at and r.id = k.id and r.state = 'failed'
   returning 1)
   select count(*)::int as count from opened`,
);
const RESOLVE = sql(
  "letters_resolve",
  `update dead_letter set resolved_at = $2, resolution = $3, resolved_by = $4 where run_id = any($1::uuid[])`,
);
const RECORD = sql(
  "letters_record",
  `insert into dead_letter_resolution (run_id, n, failed_at, failure, fingerprint, attempts, error_code, error_message,
                                       resolution, resolved_at, resolved_by, reason, operation_id)
   select run_id, 1 + (select coalesce(max(n), 0) from dead_letter_resolution o where o.run_id = d.run_id), created_at, d.reason,
          fingerprint, attempts, error_code, error_message, $3, $2, $4, $5, $6
     from dead_letter d where run_id = any($1::uuid[])`,
);

export async function readLetterKeys(tx: Queryable, tenantId: Uuid, runIds: readonly Uuid[]): Promise<LetterKey[]> {
  return tx.query<LetterKey>(READ_KEYS, [tenantId, runIds]);
}

/** A letter under its lock; `created_at` tells which failure of its run it is of. */
export type LockedLetter = { run_id: Uuid; state: LetterState; created_at: Instant };

/** Locks the letters, by run, waiting; those that are not there (any more) are missing. */
export async function lockLetters(
  tx: Queryable,
  tenantId: Uuid,
  runIds: readonly Uuid[],
): Promise<Map<Uuid, LockedLetter>> {
  const rows = await tx.query<LockedLetter>(LOCK, [tenantId, runIds]);
  return new Map(rows.map((row) => [row.run_id, row]));
}

/** As much of a failed run as its live row is made from. */
export type GivenUpRun = {
  id: Uuid;
  scheduled_at: Instant;
  schedule_id: Uuid | null;
  tenant_id: Uuid;
  class: string;
  revision: number | null;
  content: Uuid | null;
  trigger: Trigger;
  state: RunState | "open";
  attempts: number;
  started_at: Instant | null;
  due_at: Instant;
  own_work: boolean;
  /** Its own job, which only an ad hoc run has, declares effects. */
  own_effects: boolean;
};

/** Locks runs that nobody else holds. What is missing is locked or gone: `readRecordedStates` tells which. */
export async function lockGivenUpRuns(tx: Queryable, keys: readonly LetterKey[]): Promise<Map<Uuid, GivenUpRun>> {
  if (keys.length === 0) return new Map();
  const rows = await tx.query<GivenUpRun>(LOCK_RUNS, [
    keys.map((key) => key.scheduled_at),
    keys.map((key) => key.run_id),
  ]);
  return new Map(rows.map((row) => [row.id, row]));
}

/** Opens locked, failed runs again; answers how many it found so. */
export async function reopenGivenUp(tx: Queryable, runs: readonly GivenUpRun[]): Promise<number> {
  const keys = [runs.map((run) => run.scheduled_at), runs.map((run) => run.id)];
  return (await tx.query<{ count: number }>(REOPEN, keys))[0]!.count;
}

/** What was decided, by whom and why; `operationId` where it was decided about many at once. */
export type Decision = { actor: string; reason: string | null; operationId: Uuid | null };

/** Resolves locked letters, and keeps what was decided about which failure. */
export async function resolveLetters(
  tx: Queryable,
  runIds: readonly Uuid[],
  resolution: Resolution,
  { actor, reason, operationId }: Decision,
  nowAt: Instant,
): Promise<void> {
  if (runIds.length === 0) return;
  const decided = [runIds, instantText(nowAt), resolution, actor];
  await tx.query(RECORD, [...decided, reason, operationId]);
  await tx.query(RESOLVE, decided);
}

const FITS = `($5::text is null or class = $5) and ($6::text is null or reason = $6)
  and ($7::text is null or fingerprint = $7) and (schedule_id = any($9::uuid[])) is not true`;
const walkOf = (scope: string) => `select run_id, created_at, ${FITS} as fits
    from dead_letter
   where ${scope} and resolved_at is null and created_at < $4::timestamptz
     and (created_at, run_id) > ($2::timestamptz, $3::uuid)
   order by created_at, run_id limit $8`;
const WALK = sql("letters_walk", walkOf("tenant_id = $1"));
const WALK_OF_SCHEDULE = sql("letters_walk_of_schedule", walkOf("tenant_id = $1 and schedule_id = $10"));

/** A place in the order of failures: the walk goes on after it. */
export type LetterPlace = { at: Instant; id: Uuid };
export type WalkedLetter = { run_id: Uuid; created_at: Instant; fits: boolean };

/** Which letters a walk means; none of the schedules `without`. */
export type WalkFilter = LetterFilter & { toAt: Instant; without?: readonly Uuid[] };

/** The next open letters in the order of failures, at most `most` of them, and whether each is meant. */
export function walkOpenLetters(
  db: Queryable,
  tenantId: Uuid,
  filter: WalkFilter,
  after: LetterPlace,
  most: number,
): Promise<WalkedLetter[]> {
  const values = [
    tenantId,
    instantText(after.at),
    after.id,
    instantText(filter.toAt),
    filter.class ?? null,
    filter.reason ?? null,
    filter.fingerprint ?? null,
    most,
    filter.without ?? [],
  ];
  if (filter.scheduleId === undefined) return db.query<WalkedLetter>(WALK, values);
  return db.query<WalkedLetter>(WALK_OF_SCHEDULE, [...values, filter.scheduleId]);
}

const FORGET = sql(
  "letters_forget",
  `with old as (select run_id from dead_letter
                 where resolved_at < clock_timestamp() - $1 * interval '1 day' order by resolved_at limit $2
                   for update skip locked),
        known as (delete from dead_letter_resolution r using old where r.run_id = old.run_id),
        gone as (delete from dead_letter d using old where d.run_id = old.run_id returning 1)
   select count(*)::int as count from gone`,
);
const READ_OPEN = sql(
  "letters_read_open",
  `select (select count(*)::int from (select 1 from dead_letter where resolved_at is null limit $1) o) as open,
          clock_timestamp() as now, (select min(created_at) from dead_letter where resolved_at is null) as since`,
);

/** Forgets letters that were resolved so many days ago, with what was decided about them; answers how many. */
export async function forgetResolved(tx: Queryable, days: number, most: number): Promise<number> {
  return (await tx.query<{ count: number }>(FORGET, [days, most]))[0]!.count;
}

/** How many letters are open, counted up to `most`, and since when the oldest of them is. */
export async function readOpenLetters(
  db: Queryable,
  most: number,
): Promise<{ open: number; now: Instant; since: Instant | null }> {
  return (await db.query<{ open: number; now: Instant; since: Instant | null }>(READ_OPEN, [most]))[0]!;
}
