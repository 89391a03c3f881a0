import type { Instant } from "../../kernel/clock.ts";
import { type Database, type Queryable, sql } from "../database.ts";
import type { Partition } from "../partitions.ts";
import { isLockTimeout, sqlStateOf } from "../sql-errors.ts";
import { instantText } from "../values.ts";

type Door = Pick<Database, "query" | "run">;

const LOCK_FLOOR = sql("retired_lock_floor", "select floor_at from history_floor for update");
const RAISE = sql("retired_raise_floor", "update history_floor set floor_at = $1::timestamptz");

// Transactions that hold locks have a number. The floor is read once locks are held, so whoever has read an old one is
// numbered below what was next when the new one had been committed.
const READ_HORIZON = sql(
  "retired_horizon",
  `select clock_timestamp() as "nowAt", pg_snapshot_xmin(pg_current_snapshot())::text::bigint as oldest,
          pg_snapshot_xmax(pg_current_snapshot())::text::bigint as next`,
);

// A reader has no number. DETACH would wait for it, and let nobody attach a partition meanwhile.
const FIND_LONG_USER = sql(
  "retired_find_long_user",
  `select a.pid, a.application_name as name
     from pg_locks l join pg_stat_activity a on a.pid = l.pid
    where l.database = (select oid from pg_database where datname = current_database())
      and l.relation in (to_regclass('run'), to_regclass('attempt')) and a.pid <> pg_backend_pid()
      and a.xact_start < clock_timestamp() - $1::int * interval '1 ms'
    limit 1`,
);
const NOTE = sql(
  "retired_note",
  `insert into retired_partition (name, from_at, to_at) values ($1, $2::timestamptz, $3::timestamptz)
   on conflict (name) do nothing`,
);
const READ = sql(
  "retired_read",
  `select r.name, c.oid is not null as exists, coalesce(i.inhrelid is not null, false) as attached,
          coalesce(i.inhdetachpending, false) as pending, p.relname::text as parent
     from retired_partition r
     left join pg_class c on c.oid = to_regclass(r.name)
     left join pg_inherits i on i.inhrelid = c.oid
     left join pg_class p on p.oid = i.inhparent
    order by r.from_at, r.name desc`,
);
const FORGET = sql("retired_forget", "delete from retired_partition where name = $1 and to_regclass(name) is null");

/** Whatever is below is gone, or soon will be; never lowered. Answers whether this raised it. */
export async function raiseFloor(tx: Queryable, toAt: Instant): Promise<boolean> {
  const [row] = await tx.query<{ floor_at: Instant }>(LOCK_FLOOR);
  if (row === undefined || row.floor_at >= toAt) return false;
  await tx.query(RAISE, [instantText(toAt)]);
  return true;
}

export type Horizon = { nowAt: Instant; oldest: bigint; next: bigint };

/** The oldest transaction under way, and the number the next one will have. */
export async function readHorizon(db: Queryable): Promise<Horizon> {
  return (await db.query<Horizon>(READ_HORIZON))[0]!;
}

/** Somebody whose transaction has used the tables for that long already. */
export async function findLongUser(db: Queryable, ageMs: number): Promise<{ pid: number; name: string } | undefined> {
  return (await db.query<{ pid: number; name: string }>(FIND_LONG_USER, [ageMs]))[0];
}

export async function noteRetired(db: Queryable, { name, fromAt, toAt }: Partition): Promise<void> {
  await db.query(NOTE, [name, instantText(fromAt), instantText(toAt)]);
}

/** It is pending already, or no partition any more: somebody else was quicker. */
const OUTRUN = new Set(["55000", "42P01"]);

/**
 * Waits for those who use the partition now; what begins later does not see it any more, and nobody is blocked. False:
 * somebody else is at it.
 */
export async function detach(db: Door, { parent, name }: { parent: string; name: string }): Promise<boolean> {
  try {
    await db.run(`alter table ${parent} detach partition ${name} concurrently`);
    return true;
  } catch (error) {
    if (OUTRUN.has(sqlStateOf(error) ?? "")) return false;
    throw error;
  }
}

export type Retired = {
  name: string;
  /** Null once it is a table of its own. */
  parent: string | null;
  exists: boolean;
  attached: boolean;
  /** Whoever was detaching it died, or still waits. */
  pending: boolean;
};

export function readRetired(db: Queryable): Promise<Retired[]> {
  return db.query<Retired>(READ);
}

/** Ends a detachment that was broken off. False: not now, somebody is in the way. */
export function finishDetaching(db: Door, { parent, name }: { parent: string; name: string }): Promise<boolean> {
  return unlessLocked(db, `alter table ${parent} detach partition ${name} finalize`);
}

/** False: not now, somebody reads it. */
export async function dropRetired(db: Door, name: string): Promise<boolean> {
  return unlessLocked(db, `drop table if exists ${name}`);
}

export async function forgetRetired(db: Queryable, name: string): Promise<void> {
  await db.query(FORGET, [name]);
}

async function unlessLocked(db: Door, statement: string): Promise<boolean> {
  try {
    await db.run(`do $$ begin perform set_config('lock_timeout', '1s', true); ${statement}; end $$`);
    return true;
  } catch (error) {
    if (isLockTimeout(error) || OUTRUN.has(sqlStateOf(error) ?? "")) return false;
    throw error;
  }
}
