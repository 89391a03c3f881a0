import type { CatchUp } from "../../domain/planning/misfire.ts";
import type { ScheduleStatus, SkipReason } from "../../domain/states.ts";
import type { Instant } from "../../kernel/clock.ts";
import type { Uuid } from "../../kernel/ids.ts";
import { type Queryable, sql } from "../database.ts";
import { instantText } from "../values.ts";

/** The moving row of a schedule; locking it is locking the schedule. */
export type CursorRow = {
  schedule_id: Uuid;
  tenant_id: Uuid;
  revision: number;
  content: Uuid | null;
  next_run_at: Instant | null;
  next_due_at: Instant | null;
  chain_started_at: Instant;
  last_nominal_at: Instant | null;
  /** The highest local time served up to the last nominal instant, by the tz data of the time (RFC 9557). */
  last_nominal_local: string | null;
  /** The tz data that computed next_run_at. */
  tz_version: string;
  runs_made: bigint;
  catch_up_until: Instant | null;
  caught_up: number;
  catch_up_reason: SkipReason | null;
  /** The next instant follows from the end of a run that is open. */
  awaits_end: boolean;
  fault: string | null;
  fault_retry_at: Instant | null;
};

/** Its last known instant is settled, and the rule could not be computed then: the next one is not null but unknown. */
export function isNextUnknown(cursor: Pick<CursorRow, "next_run_at" | "fault">): boolean {
  return cursor.next_run_at === null && cursor.fault !== null;
}

const COLUMNS = `schedule_id, tenant_id, revision, content, next_run_at, next_due_at, chain_started_at, last_nominal_at,
  last_nominal_local, tz_version, runs_made, catch_up_until, caught_up, catch_up_reason, awaits_end, fault, fault_retry_at`;

const LOCK_SKIPPING = sql(
  "cursors_lock_skipping",
  `select ${COLUMNS} from schedule_cursor where schedule_id = any($1::uuid[]) order by schedule_id
      for update skip locked`,
);
const LOCK_MANY = sql(
  "cursors_lock_many",
  `select ${COLUMNS} from schedule_cursor where schedule_id = any($1::uuid[]) order by schedule_id for update`,
);
const READ = sql("cursors_read", `select ${COLUMNS} from schedule_cursor where schedule_id = $1`);
const LOCK = sql("cursors_lock", `select ${COLUMNS} from schedule_cursor where schedule_id = $1 for update`);

/**
 * Due walks stop at their batch: in due order, own buckets filtered by a mask that cannot become an index condition. What is
 * left out takes no place in the batch; "is not true" has its ids hashed.
 */
export const leftOut = (ids: string) => `(schedule_id in (select unnest(${ids}::uuid[]))) is not true`;
const FIND_ON_TIME = sql(
  "cursors_find_on_time",
  `select schedule_id, tenant_id from schedule_cursor
    where next_due_at > $1 and next_due_at <= (select clock_timestamp())
      and get_bit($2::bit(1024), bucket) = 1 and ${leftOut("$4")}
    order by next_due_at limit $3`,
);
const FIND_OVERDUE = sql(
  "cursors_find_overdue",
  `select schedule_id, tenant_id from schedule_cursor
    where next_due_at <= least($1, (select clock_timestamp()))
      and (get_bit($2::bit(1024), bucket) = 1 or next_due_at < (select clock_timestamp()) - interval '2 seconds')
      and ${leftOut("$4")}
    order by next_due_at limit $3`,
);
/** The first instant after $2 that anything is due at, and the database's clock beside it. */
const FIND_NEXT = sql(
  "cursors_find_next",
  `select clock_timestamp() as now,
          (select next_due_at from schedule_cursor
            where next_due_at > $2 and get_bit($1::bit(1024), bucket) = 1
            order by next_due_at limit 1) as next_due_at`,
);
const FIND_FAULTY = sql(
  "cursors_find_faulty",
  `select schedule_id from schedule_cursor
    where fault is not null and fault_retry_at <= (select clock_timestamp()) and ${leftOut("$2")}
    order by fault_retry_at limit $1`,
);
const ADVANCE = sql(
  "cursors_advance",
  `update schedule_cursor c
      set next_run_at = a.next_run_at, next_due_at = a.next_due_at, last_nominal_at = a.last_nominal_at,
          last_nominal_local = a.last_nominal_local, runs_made = a.runs_made, catch_up_until = a.catch_up_until,
          caught_up = a.caught_up, catch_up_reason = a.catch_up_reason, awaits_end = a.awaits_end,
          tz_version = $11, fault = null, fault_retry_at = null
     from unnest($1::uuid[], $2::timestamptz[], $3::timestamptz[], $4::timestamptz[], $5::text[], $6::bigint[],
                 $7::timestamptz[], $8::int[], $9::text[], $10::boolean[])
       as a (schedule_id, next_run_at, next_due_at, last_nominal_at, last_nominal_local, runs_made, catch_up_until,
             caught_up, catch_up_reason, awaits_end)
    where c.schedule_id = a.schedule_id`,
);
const SET_FAULTS = sql(
  "cursors_set_faults",
  `update schedule_cursor c set fault = f.fault, fault_retry_at = $3, next_due_at = null
     from unnest($1::uuid[], $2::text[]) as f (schedule_id, fault) where c.schedule_id = f.schedule_id`,
);
const SET_STATUS = sql(
  "cursors_finish_schedules",
  "update schedule set status = $2, updated_at = $3 where id = any($1::uuid[]) and status = 'active'",
);

export function lockCursorsSkipping(tx: Queryable, scheduleIds: readonly Uuid[]): Promise<CursorRow[]> {
  return tx.query<CursorRow>(LOCK_SKIPPING, [scheduleIds]);
}

/** By id, waiting. */
export function lockCursors(tx: Queryable, scheduleIds: readonly Uuid[]): Promise<CursorRow[]> {
  return tx.query<CursorRow>(LOCK_MANY, [scheduleIds]);
}

/** For who only looks: what it says may have changed by the time it is used. */
export async function readCursor(tx: Queryable, scheduleId: Uuid): Promise<CursorRow | undefined> {
  return (await tx.query<CursorRow>(READ, [scheduleId]))[0];
}

export async function lockCursor(tx: Queryable, scheduleId: Uuid): Promise<CursorRow | undefined> {
  return (await tx.query<CursorRow>(LOCK, [scheduleId]))[0];
}

export type DueCursor = { schedule_id: Uuid; tenant_id: Uuid };

/** Which cursors are looked for, at most how many, and which are left out. */
export type DueLook = { mask: string; limit: number; except: readonly Uuid[] };

/** Cursors due after `afterAt` (recent, so that index entries of what is long done are not walked again). */
export function findOnTime(db: Queryable, afterAt: Instant, { mask, limit, except }: DueLook): Promise<DueCursor[]> {
  return db.query<DueCursor>(FIND_ON_TIME, [instantText(afterAt), mask, limit, except]);
}

/** Cursors due up to `untilAt`: own buckets, and anybody's that are more than two seconds overdue. */
export function findOverdue(db: Queryable, untilAt: Instant, { mask, limit, except }: DueLook): Promise<DueCursor[]> {
  return db.query<DueCursor>(FIND_OVERDUE, [instantText(untilAt), mask, limit, except]);
}

export async function findNextDue(
  db: Queryable,
  bucketMask: string,
  afterAt: Instant,
): Promise<{ now: Instant; next_due_at: Instant | null }> {
  const values = [bucketMask, instantText(afterAt)];
  return (await db.query<{ now: Instant; next_due_at: Instant | null }>(FIND_NEXT, values))[0]!;
}

export async function findFaulty(db: Queryable, { limit, except }: Omit<DueLook, "mask">): Promise<Uuid[]> {
  return (await db.query<{ schedule_id: Uuid }>(FIND_FAULTY, [limit, except])).map((row) => row.schedule_id);
}

export type Advance = {
  scheduleId: Uuid;
  nextRunAt: Instant | null;
  nextDueAt: Instant | null;
  lastNominalAt: Instant | null;
  lastNominalLocal: string | null;
  runsMade: number;
  catchUp: CatchUp | undefined;
  awaitsEnd: boolean;
};

export async function advanceCursors(tx: Queryable, advances: readonly Advance[], tzVersion: string): Promise<void> {
  if (advances.length === 0) return;
  await tx.query(ADVANCE, [
    advances.map((one) => one.scheduleId),
    advances.map((one) => one.nextRunAt),
    advances.map((one) => one.nextDueAt),
    advances.map((one) => one.lastNominalAt),
    advances.map((one) => one.lastNominalLocal),
    advances.map((one) => one.runsMade),
    advances.map((one) => one.catchUp?.untilAt ?? null),
    advances.map((one) => one.catchUp?.done ?? 0),
    advances.map((one) => one.catchUp?.reason ?? null),
    advances.map((one) => one.awaitsEnd),
    tzVersion,
  ]);
}

export async function setFaults(
  tx: Queryable,
  faults: readonly { scheduleId: Uuid; fault: string }[],
  retryAt: Instant,
): Promise<void> {
  if (faults.length === 0) return;
  await tx.query(SET_FAULTS, [
    faults.map((one) => one.scheduleId),
    faults.map((one) => one.fault),
    instantText(retryAt),
  ]);
}

export async function setScheduleStatus(
  tx: Queryable,
  ids: readonly Uuid[],
  status: ScheduleStatus,
  nowAt: Instant,
): Promise<void> {
  if (ids.length > 0) await tx.query(SET_STATUS, [ids, status, instantText(nowAt)]);
}
