import type { Instant } from "../../kernel/clock.ts";
import type { Uuid } from "../../kernel/ids.ts";
import { type Queryable, sql } from "../database.ts";

/** Chains are recorded by the database itself, when a cursor begins one (migration 0005). */

const FIND_LAST_SETTLED = sql(
  "chains_find_last_settled",
  "select max(prev_last_at) as at from chain where schedule_id = $1",
);

/** The newest instant that the chains before the current one have settled; null: there is none. */
export async function findLastSettledBefore(tx: Queryable, scheduleId: Uuid): Promise<Instant | null> {
  return (await tx.query<{ at: Instant | null }>(FIND_LAST_SETTLED, [scheduleId]))[0]!.at;
}
