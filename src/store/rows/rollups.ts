import { LATENESS_BOUNDS_MS, LATENESS_BUCKETS } from "../../domain/rollup.ts";
import { type Queryable, sql } from "../database.ts";

/**
 * Counts are taken where runs change, by the statement that changes them: these are parts of such statements. `at` is the
 * parameter with the authority's time. A row for each tenant and class of the batch is all it costs.
 */

/** Of rows (tenant_id, class, state) of runs that have ended. */
export const countEnds = (rows: string, at: string) => `
  insert into rollup_delta (at, tenant_id, class, succeeded, failed, canceled, skipped)
  select ${at}::timestamptz, tenant_id, class, count(*) filter (where state = 'succeeded'),
         count(*) filter (where state = 'failed'), count(*) filter (where state = 'canceled'),
         count(*) filter (where state = 'skipped')
    from ${rows} group by tenant_id, class`;

/** Of rows (tenant_id, class, held_by, started_at, due_at, admitted_at) of live runs: those that start for the first time. */
export const countStarts = (rows: string, at: string) => `
  insert into rollup_delta (at, tenant_id, class, started, lateness)
  select ${at}::timestamptz, tenant_id, class, count(*),
         coalesce(array_agg(width_bucket(extract(epoch from started_at - greatest(due_at, admitted_at))::float8 * 1000,
                                         '{${LATENESS_BOUNDS_MS.join()}}'::float8[])::smallint)
                    filter (where held_by = 'none'), '{}')
    from ${rows} where started_at = ${at}::timestamptz group by tenant_id, class`;

/** Of rows (tenant_id, class) of runs that go on after an attempt of theirs ended. */
export const countRetries = (rows: string, at: string) => `
  insert into rollup_delta (at, tenant_id, class, retried)
  select ${at}::timestamptz, tenant_id, class, count(*) from ${rows} group by tenant_id, class`;

const buckets = (one: (bucket: number) => string) => Array.from({ length: LATENESS_BUCKETS }, (_, i) => one(i)).join();
const COUNTS = ["started", "succeeded", "failed", "canceled", "skipped", "retried"];
const begin = (minutes: string) => `date_bin(${minutes} * interval '1 minute', at, 'epoch')`;

/** The oldest rows that nobody else is at. What is deleted is added, in one statement and one order of rows. */
const FOLD = sql(
  "rollups_fold",
  `with taken as (
     delete from rollup_delta
      where ctid = any(array(select ctid from rollup_delta order by at limit $1 for update skip locked))
     returning *),
   counted as (
     select tenant_id, minutes, class, ${begin("minutes")} as at, ${COUNTS.map((one) => `sum(${one})::int as ${one}`).join()}
       from taken cross join (values (1::smallint), (60::smallint)) w (minutes)
      group by 1, 2, 3, 4),
   late as (
     select tenant_id, minutes, class, ${begin("minutes")} as at,
            array[${buckets((i) => `count(*) filter (where bucket = ${i})`)}]::int[] as lateness
       from taken cross join (values (1::smallint), (60::smallint)) w (minutes)
      cross join lateral unnest(lateness) bucket
      group by 1, 2, 3, 4),
   added as (
     insert into rollup as r (tenant_id, minutes, class, at, ${COUNTS.join()}, lateness)
     select tenant_id, minutes, class, at, ${COUNTS.join()}, coalesce(lateness, array_fill(0, array[${LATENESS_BUCKETS}]))
       from counted left join late using (tenant_id, minutes, class, at)
      order by tenant_id, minutes, class, at
     on conflict (tenant_id, minutes, class, at) do update
        set ${COUNTS.map((one) => `${one} = r.${one} + excluded.${one}`).join()},
            lateness = array[${buckets((i) => `r.lateness[${i + 1}] + excluded.lateness[${i + 1}]`)}])
   select count(*)::int as rows from taken`,
);

const FORGET = sql(
  "rollups_forget",
  `with gone as (
     delete from rollup
      where ctid = any(array(select ctid from rollup
                              where minutes = $1 and at < clock_timestamp() - $2 * interval '1 day'
                              order by at limit $3 for update skip locked))
     returning 1)
   select count(*)::int as rows from gone`,
);

/** Answers how many rows were folded: fewer than `limit` when nothing is left that nobody else is at. */
export async function foldDeltas(tx: Queryable, limit: number): Promise<number> {
  return (await tx.query<{ rows: number }>(FOLD, [limit]))[0]!.rows;
}

/** Takes away the oldest rollups of a width that are older than so many days. */
export async function forgetRollups(tx: Queryable, minutes: 1 | 60, days: number, limit: number): Promise<number> {
  return (await tx.query<{ rows: number }>(FORGET, [minutes, days, limit]))[0]!.rows;
}
