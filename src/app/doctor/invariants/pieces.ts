import type { Instant } from "../../../kernel/clock.ts";
import { NIL_ID, type Uuid } from "../../../kernel/ids.ts";
import { type Queryable, sql } from "../../../store/database.ts";
import { isStatementTimeout } from "../../../store/sql-errors.ts";
import { instantText } from "../../../store/values.ts";

/**
 * Walks over large tables in pieces of so many rows: each piece is looked at in a transaction of its own, so that no
 * snapshot is old. A piece that still takes too long is asked again in smaller ones.
 */

/** Rows of `run` in one piece. */
const PIECE_ROWS = 5_000;
const LEAST_ROWS = 50;
const SCHEDULES_AT_ONCE = 100;

const LAST: Uuid = "ffffffff-ffff-ffff-ffff-ffffffffffff";
const FIRST_AT: Instant = 0;
const LAST_AT: Instant = Date.UTC(9999, 11, 31);

const END_OF_PIECE = sql(
  "doctor_end_of_piece",
  `select id, scheduled_at from run where scheduled_at >= $1 and (scheduled_at, id) >= ($1, $2::uuid)
    order by scheduled_at, id offset $3 limit 1`,
);
const PAGE_OF_SCHEDULES = sql(
  "doctor_schedules",
  `select schedule_id,
          ((select count(*) from (select from run r where r.schedule_id = c.schedule_id limit $3) runs)
         + (select count(*) from (select from skip_range s where s.schedule_id = c.schedule_id limit $3) ranges))::int as rows
     from schedule_cursor c where schedule_id > $1 order by schedule_id limit $2`,
);
const END_OF_STRETCH = sql(
  "doctor_end_of_stretch",
  `select scheduled_at from run where schedule_id = $1 and scheduled_at >= $2
    order by scheduled_at offset $3 limit 1`,
);

type Rows = readonly unknown[];

/** Runs by instants (inclusive) and ids, from (inclusive) to (exclusive). */
export type RunPiece = { fromAt: Instant; toAt: Instant; fromId: Uuid; toId: Uuid };

/** All runs, and all that hangs on the id of one. Ends with the first piece of which `look` answers something. */
export async function overRuns(
  db: Queryable,
  look: (piece: RunPiece) => Promise<Rows>,
  rows = PIECE_ROWS,
): Promise<Rows> {
  let [fromAt, fromId] = [FIRST_AT, NIL_ID];
  let size = rows;
  for (;;) {
    const [end] = await db.query<{ id: Uuid; scheduled_at: Instant }>(END_OF_PIECE, [
      instantText(fromAt),
      fromId,
      size,
    ]);
    const [toAt, toId] = end === undefined ? [LAST_AT, LAST] : [end.scheduled_at, end.id];
    const found = await inTime(size, () => look({ fromAt, toAt, fromId, toId }));
    if (found === "too-long") {
      size = Math.ceil(size / 4);
      continue;
    }
    if (found.length > 0 || end === undefined) return found;
    [fromAt, fromId] = [toAt, toId];
  }
}

/** Some schedules whole, or one that has too many rows for that from an instant (inclusive) to another (exclusive). */
export type SchedulePiece = { ids: readonly Uuid[]; stretch?: { fromAt: Instant; toAt: Instant } };

/** All schedules. Ends with the first piece of which `look` answers something. */
export async function overSchedules(
  db: Queryable,
  look: (piece: SchedulePiece) => Promise<Rows>,
  rows = PIECE_ROWS,
): Promise<Rows> {
  let after = NIL_ID;
  for (;;) {
    const values = [after, SCHEDULES_AT_ONCE, rows + 1];
    const page = await db.query<{ schedule_id: Uuid; rows: number }>(PAGE_OF_SCHEDULES, values);
    if (page.length === 0) return [];
    for (const ids of gather(page, rows)) {
      const isLong = ids.length === 1 && page.find((one) => one.schedule_id === ids[0])!.rows > rows;
      const found = isLong ? "too-long" : await inTime(Number.POSITIVE_INFINITY, () => look({ ids }));
      const broken = found === "too-long" ? await oneByOne(db, ids, look, rows) : found;
      if (broken.length > 0) return broken;
    }
    after = page.at(-1)!.schedule_id;
  }
}

/** Neighbours together, as many as have no more than `most` rows. */
function gather(page: readonly { schedule_id: Uuid; rows: number }[], most: number): Uuid[][] {
  const groups: Uuid[][] = [];
  let sum = Number.POSITIVE_INFINITY;
  for (const { schedule_id, rows } of page) {
    if (sum + rows > most) {
      groups.push([]);
      sum = 0;
    }
    groups.at(-1)!.push(schedule_id);
    sum += rows;
  }
  return groups;
}

async function oneByOne(
  db: Queryable,
  ids: readonly Uuid[],
  look: (piece: SchedulePiece) => Promise<Rows>,
  rows: number,
): Promise<Rows> {
  for (const id of ids) {
    const broken = await overStretches(db, id, look, rows);
    if (broken.length > 0) return broken;
  }
  return [];
}

async function overStretches(
  db: Queryable,
  id: Uuid,
  look: (piece: SchedulePiece) => Promise<Rows>,
  rows: number,
): Promise<Rows> {
  let fromAt = FIRST_AT;
  let size = rows;
  for (;;) {
    const [end] = await db.query<{ scheduled_at: Instant }>(END_OF_STRETCH, [id, instantText(fromAt), size]);
    // Whatever many runs one instant has, they are one piece.
    const toAt = end === undefined ? LAST_AT : Math.max(end.scheduled_at, fromAt + 1);
    const found = await inTime(size, () => look({ ids: [id], stretch: { fromAt, toAt } }));
    if (found === "too-long") {
      size = Math.ceil(size / 4);
      continue;
    }
    if (found.length > 0 || end === undefined) return found;
    fromAt = toAt;
  }
}

async function inTime(size: number, look: () => Promise<Rows>): Promise<Rows | "too-long"> {
  try {
    return await look();
  } catch (error) {
    if (isStatementTimeout(error) && size > LEAST_ROWS) return "too-long";
    throw error;
  }
}
