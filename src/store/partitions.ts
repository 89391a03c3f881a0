import type { Instant } from "../kernel/clock.ts";
import { bug } from "../kernel/errors.ts";
import { type Database, sql } from "./database.ts";
import { coveredUntil, DAY_MS, type PartitionWidth, planPartitions, type Range } from "./partition-plan.ts";
import { isLockTimeout } from "./sql-errors.ts";

/** The tables partitioned by scheduled_at, with the storage settings of their partitions. */
const PARTITIONED = {
  // The update at a run's end doubles its row (a result) or adds a sixth. HOT updates and WAL for each, with results, measured
  // in random order: 51 % and 578 bytes at 80, 100 % and 363 bytes at 40, and the full page is no bigger in the end.
  run: "fillfactor = 40, autovacuum_analyze_scale_factor = 0.05",
  attempt: "fillfactor = 90, autovacuum_analyze_scale_factor = 0.05",
} as const;
export type Partitioned = keyof typeof PARTITIONED;
const TABLES = Object.keys(PARTITIONED) as Partitioned[];

export type Partition = Range & { parent: Partitioned; name: string };
type Door = Pick<Database, "query" | "run">;

const READ_NOW = sql("partitions_now", `select (extract(epoch from clock_timestamp()) * 1000)::float8 as now_at`);

const READ_FLOOR = sql(
  "partitions_floor",
  `select (extract(epoch from floor_at) * 1000)::float8 as floor_at from history_floor`,
);

// Bounds are printed in the session's time zone and read back in it.
const READ_PARTITIONS = sql(
  "partitions_read",
  `select parent.relname::text as parent, child.relname::text as name,
          (extract(epoch from bounds[1]::timestamptz) * 1000)::float8 as from_at,
          (extract(epoch from bounds[2]::timestamptz) * 1000)::float8 as to_at
   from pg_inherits
   join pg_class parent on parent.oid = inhparent
   join pg_class child on child.oid = inhrelid
   cross join regexp_match(pg_get_expr(child.relpartbound, child.oid), 'FROM \\(''(.+)''\\) TO \\(''(.+)''\\)') bounds
   where inhparent in (to_regclass('run'), to_regclass('attempt')) and not inhdetachpending and bounds is not null
   order by parent, from_at`,
);

// Pages, not the collector's row counts: those lag, and a crash loses them. A vacuum sets reltuples too, but no statistics.
const READ_STALE = sql(
  "partitions_stale",
  `select c.relname::text as name
   from pg_class c
   where c.oid in (select to_regclass(name) from unnest($1::text[]) name)
     and pg_relation_size(c.oid) > 0
     and (
       c.reltuples <= 0
       or pg_relation_size(c.oid) >= 4 * c.relpages::bigint * current_setting('block_size')::bigint
       or not exists (select from pg_stats where schemaname = c.relnamespace::regnamespace::text and tablename = c.relname)
     )
   order by name`,
);

/**
 * Makes run and attempt accept every instant from the history floor to `aheadDays` after `nowAt`, whatever the width of older
 * partitions. Returns the names created, and those `postponed` because a lock was not free within a second: the next call
 * makes them. Safe to run several times at once.
 */
export async function ensurePartitions(
  db: Door,
  options: { nowAt: Instant; aheadDays: number; width: PartitionWidth },
): Promise<{ created: string[]; postponed: string[] }> {
  const wanted: Range = { fromAt: await readFloor(db), toAt: options.nowAt + options.aheadDays * DAY_MS };
  const existing = await readPartitions(db);
  const created: string[] = [];
  const postponed: string[] = [];
  for (const parent of TABLES) {
    for (const range of planPartitions(wanted, existing.get(parent) ?? [], options.width)) {
      const partition = { parent, name: nameOf(parent, range), ...range };
      const made = await createPartition(db, partition);
      (made ? created : postponed).push(partition.name);
    }
  }
  return { created, postponed };
}

/** Days after `nowAt` for which both run and attempt have partitions without a gap; 0 when not even now is covered. */
export async function coverage(db: Door, options: { nowAt: Instant }): Promise<number> {
  const existing = await readPartitions(db);
  const untils = TABLES.map((parent) => coveredUntil(options.nowAt, existing.get(parent) ?? []));
  return (Math.min(...untils) - options.nowAt) / DAY_MS;
}

/**
 * Analyses the partitions that hold `nowAt` when they have rows the planner does not know of: never analysed, analysed while
 * empty, or grown fourfold since. Autovacuum comes later, and until then plans are made for an empty table. Returns the names.
 */
export async function analyzeOpeningPartitions(db: Door, options: { nowAt: Instant }): Promise<string[]> {
  const { nowAt } = options;
  const existing = [...(await readPartitions(db)).values()].flat();
  const opening = existing.filter((one) => one.fromAt <= nowAt && nowAt < one.toAt).map((one) => one.name);
  const stale = (await db.query<{ name: string }>(READ_STALE, [opening])).map((row) => row.name);
  for (const name of stale) await db.run(`analyze ${name}`);
  return stale;
}

/** The upkeep of one database's partitions, as the partition keeper wants it. */
export function createPartitionUpkeep(db: Door, width: PartitionWidth) {
  return {
    databaseNow: async (): Promise<Instant> => (await db.query<{ now_at: number }>(READ_NOW))[0]!.now_at,
    ensure: (options: { nowAt: Instant; aheadDays: number }) => ensurePartitions(db, { ...options, width }),
    analyzeOpening: (options: { nowAt: Instant }) => analyzeOpeningPartitions(db, options),
    coverageDays: (options: { nowAt: Instant }) => coverage(db, options),
  };
}

async function readFloor(db: Door): Promise<Instant> {
  const [row] = await db.query<{ floor_at: number }>(READ_FLOOR);
  if (!row) throw bug("history_floor has no row; migrateToLatest writes it.");
  return row.floor_at;
}

/** In the order of their instants; not those that are being detached. */
export async function readPartitions(db: Pick<Door, "query">): Promise<Map<Partitioned, Partition[]>> {
  const rows = await db.query<{ parent: Partitioned; name: string; from_at: number; to_at: number }>(READ_PARTITIONS);
  const partitions = rows.map(({ parent, name, from_at, to_at }) => ({ parent, name, fromAt: from_at, toAt: to_at }));
  return Map.groupBy(partitions, (one) => one.parent);
}

/** False when a lock was not free. A plain table, then ATTACH: the parent's readers and writers go on. */
async function createPartition(db: Door, { parent, name, fromAt, toAt }: Partition): Promise<boolean> {
  try {
    await db.run(`
      do $$ begin
        perform set_config('lock_timeout', '1s', true);
        perform pg_advisory_xact_lock(8104684);
        if exists (select from pg_inherits where inhrelid = to_regclass('${name}') and inhparent = '${parent}'::regclass) then
          return;
        end if;
        create table ${name} (like ${parent} including all) with (${PARTITIONED[parent]});
        alter table ${parent} attach partition ${name} for values from ('${boundOf(fromAt)}') to ('${boundOf(toAt)}');
      end $$`);
    return true;
  } catch (error) {
    if (isLockTimeout(error)) return false;
    throw error;
  }
}

/** run_20261123: the first day it holds. */
function nameOf(parent: Partitioned, range: Range): string {
  return `${parent}_${new Date(range.fromAt).toISOString().slice(0, 10).replaceAll("-", "")}`;
}

function boundOf(at: Instant): string {
  return `${new Date(at).toISOString().slice(0, 19).replace("T", " ")}+00`;
}
