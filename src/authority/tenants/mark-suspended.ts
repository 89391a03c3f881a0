import type { Instant } from "../../kernel/clock.ts";
import type { Uuid } from "../../kernel/ids.ts";
import { sql } from "../../store/database.ts";
import { instantText } from "../../store/values.ts";
import type { Authority } from "../authority.ts";

const BATCH = 1_000;

/**
 * In the order of its index, from where the batch before ended: each of them from the beginning again would pass by all
 * that is marked already (measured: 56 s for 300,000 runs).
 */
const MARK = sql(
  "mark_suspended",
  `with waiting as materialized (
     select l.id, l.class, l.scheduled_at from live_run l
      where l.tenant_id = $1 and (l.class, l.scheduled_at) >= ($4::text, $5::timestamptz)
        and l.held_by = 'none' and l.state in ('queued', 'retrying') and l.not_before <= $2::timestamptz
        and (select status from tenant where id = $1) = 'suspended'
      order by l.class, l.scheduled_at
      limit $3 for update of l skip locked),
   marked as (update live_run set held_by = 'suspended' where id = any(array(select id from waiting)))
   select class, scheduled_at as "scheduledAt", count(*) over ()::int as marked
     from waiting order by class desc, scheduled_at desc limit 1`,
);

type Place = { class: string; scheduledAt: Instant };
type Marked = Place & { marked: number };

/**
 * Says of the runs that have waited for the tenant's resume what has held them, so that their lateness does not count
 * as ours. Runs that somebody else is changing are left out: it is a label, nothing is decided by it.
 * Locks   live runs, those that nobody holds; a transaction for each thousand.
 * Time    authority time, before the first: what becomes due later is none of it.
 * Writes  live_run.
 * Replay  what is marked is passed by.
 */
export async function markSuspended(authority: Authority, tenantId: Uuid): Promise<void> {
  const untilAt = await authority.transact("mark-suspended", (tx) => tx.authorityNow());
  let from: Place | undefined = { class: "", scheduledAt: 0 };
  while (from !== undefined) {
    const values: unknown[] = [tenantId, instantText(untilAt), BATCH, from.class, instantText(from.scheduledAt)];
    const [last] = await authority.transact("mark-suspended", (tx) => tx.query<Marked>(MARK, values));
    from = last?.marked === BATCH ? last : undefined;
  }
}
