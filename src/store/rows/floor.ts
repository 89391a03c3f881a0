import type { Instant } from "../../kernel/clock.ts";
import { type Queryable, sql } from "../database.ts";

const READ = sql("floor_read", "select floor_at from history_floor");

/**
 * Instants before it have no runs any more, or none for long. Whoever opens a past run again reads it once its locks are
 * held: the keeper raises it first, and drops only when everybody who may have read the old one has ended.
 */
export async function readFloor(db: Queryable): Promise<Instant> {
  return (await db.query<{ floor_at: Instant }>(READ))[0]?.floor_at ?? 0;
}
