import { type Database, type Queryable, sql } from "../database.ts";

const ISOLATE = sql("snapshot_isolate", "set transaction isolation level repeatable read, read only");
// Verbs forbid the planner what a look at much needs. Local, for a pooler may stand between.
const PLAN_FREELY = sql(
  "snapshot_plan_freely",
  `select set_config('statement_timeout', $1, true), set_config('plan_cache_mode', 'force_custom_plan', true),
          set_config('enable_seqscan', 'on', true), set_config('enable_hashjoin', 'on', true),
          set_config('enable_mergejoin', 'on', true)`,
);

/** An old snapshot keeps the whole database from cleaning up: none may live longer. */
const SNAPSHOT_MS = 5_000;
/** One statement of it; whatever else is read beside a long one is short. */
const STATEMENT_MS = 4_000;

/**
 * Several reads that see one state of the database. A statement that takes too long ends with SQLSTATE 57014
 * (`isStatementTimeout`); then ask for less.
 */
export function inSnapshot<T>(db: Pick<Database, "transact">, read: (at: Queryable) => Promise<T>): Promise<T> {
  return db.transact({ deadlineMs: 2 * SNAPSHOT_MS, lockTimeoutMs: 0 }, async (tx) => {
    await tx.query(ISOLATE);
    await tx.query(PLAN_FREELY, [String(STATEMENT_MS)]);
    return read(tx);
  });
}
