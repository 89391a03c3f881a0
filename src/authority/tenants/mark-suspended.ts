import type { Uuid } from "../../kernel/ids.ts";
import { sql } from "../../store/database.ts";
import { instantText } from "../../store/values.ts";
import type { Authority } from "../authority.ts";

const BATCH = 1_000;

const MARK = sql(
  "mark_suspended",
  `with waiting as materialized (
     select l.id from live_run l
      where l.tenant_id = $1 and l.held_by = 'none' and l.state in ('queued', 'retrying') and l.not_before <= $2::timestamptz
        and (select status from tenant where id = $1) = 'suspended'
      limit $3 for update of l skip locked)
   update live_run l set held_by = 'suspended' from waiting w where l.id = w.id returning l.id`,
);

/**
 * Says of the runs that have waited for the tenant's resume what has held them, so that their lateness does not count
 * as ours. Runs that somebody else is changing are left out: it is a label, nothing is decided by it.
 * Locks   live runs, those that nobody holds; a transaction for each thousand.
 * Writes  live_run.
 * Replay  nothing.
 */
export async function markSuspended(authority: Authority, tenantId: Uuid): Promise<void> {
  const untilAt = await authority.transact("mark-suspended", (tx) => tx.authorityNow());
  for (let marked = BATCH; marked === BATCH; ) {
    marked = await authority.transact(
      "mark-suspended",
      async (tx) => (await tx.query(MARK, [tenantId, instantText(untilAt), BATCH])).length,
    );
  }
}
