import type { Instant } from "../../kernel/clock.ts";
import { NIL_ID, type Uuid } from "../../kernel/ids.ts";
import { type Queryable, sql } from "../database.ts";
import { instantText } from "../values.ts";

/** Cursors that were planned by another version of the tz database. */

/** What a cursor is planned anew to; `local` is what to remember of where its chain stands (null: as it is). */
export type Replanned = {
  scheduleId: Uuid;
  nextRunAt: Instant | null;
  nextDueAt: Instant | null;
  local: string | null;
};

const REPLAN = sql(
  "cursors_replan",
  `update schedule_cursor c
      set next_run_at = a.next_run_at, next_due_at = a.next_due_at, tz_version = $5,
          last_nominal_local = coalesce(a.local, c.last_nominal_local), fault = null, fault_retry_at = null
     from unnest($1::uuid[], $2::timestamptz[], $3::timestamptz[], $4::text[])
       as a (schedule_id, next_run_at, next_due_at, local)
    where c.schedule_id = a.schedule_id`,
);
const FLAG = sql(
  "cursors_flag",
  `update schedule_cursor c
      set fault = f.fault, next_due_at = null,
          fault_retry_at = least(c.next_run_at, clock_timestamp() + $3::int * interval '1 ms')
     from unnest($1::uuid[], $2::text[]) as f (schedule_id, fault) where c.schedule_id = f.schedule_id`,
);
/**
 * One window of the due index, in order, of which those rows are told that are stale and name a zone that has changed.
 * There is no index on the version: it would cost every run a write, for a walk that happens some times a year.
 */
const FIND_WINDOW = sql(
  "cursors_stale_window",
  `with due_window as materialized (
     select schedule_id, revision, next_due_at, tz_version from schedule_cursor
      where next_due_at >= $1 and (next_due_at, schedule_id) > ($1, $2)
      order by next_due_at, schedule_id limit $3)
   select (select count(*)::int from due_window) as seen, last.next_due_at as last_due_at, last.schedule_id as last_id,
          (select array_agg(w.schedule_id order by w.next_due_at)
             from due_window w join schedule_revision r using (schedule_id, revision)
            where w.tz_version <> $4 and r.definition::text like any ($5::text[])) as stale
     from (select next_due_at, schedule_id from due_window order by next_due_at desc, schedule_id desc limit 1) last`,
);

const HAS_CURSORS = sql("cursors_any", "select exists (select from schedule_cursor) as found");

export async function hasCursors(db: Queryable): Promise<boolean> {
  return (await db.query<{ found: boolean }>(HAS_CURSORS))[0]!.found;
}

export async function replanCursors(tx: Queryable, rows: readonly Replanned[], tzVersion: string): Promise<void> {
  if (rows.length === 0) return;
  await tx.query(REPLAN, [
    rows.map((one) => one.scheduleId),
    rows.map((one) => one.nextRunAt),
    rows.map((one) => one.nextDueAt),
    rows.map((one) => one.local),
    tzVersion,
  ]);
}

/** Sets schedules aside before they are due; they are looked at again when they are, and `retryMs` from now at the latest. */
export async function flagCursors(
  tx: Queryable,
  rows: readonly { scheduleId: Uuid; fault: string }[],
  retryMs: number,
): Promise<void> {
  if (rows.length === 0) return;
  await tx.query(FLAG, [rows.map((one) => one.scheduleId), rows.map((one) => one.fault), retryMs]);
}

export type WalkPosition = { dueAt: Instant; id: Uuid };

/** Undefined: nothing is due after `after`. Otherwise where the window ends, how many it holds, and the stale of them. */
export async function findStaleWindow(
  db: Queryable,
  after: WalkPosition | undefined,
  limit: number,
  stale: { otherThan: string; names: readonly string[] },
): Promise<{ seen: number; end: WalkPosition; stale: Uuid[] } | undefined> {
  const values = [
    after === undefined ? "-infinity" : instantText(after.dueAt),
    after?.id ?? NIL_ID,
    limit,
    stale.otherThan,
    // As they stand in the text of a definition. A payload that says the same costs a look, and no more.
    stale.names.map((name) => `%"${name.replaceAll(/[\\%_]/g, "\\$&")}"%`),
  ];
  const [row] = await db.query<{ seen: number; last_due_at: Instant; last_id: Uuid; stale: Uuid[] | null }>(
    FIND_WINDOW,
    values,
  );
  if (row === undefined) return undefined;
  return { seen: row.seen, end: { dueAt: row.last_due_at, id: row.last_id }, stale: row.stale ?? [] };
}
