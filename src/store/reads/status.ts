import type { Instant } from "../../kernel/clock.ts";
import { type Queryable, sql, sqlOfNoTenant } from "../database.ts";

/** Between a verb's time and now, at least: what a clock that is set back may take away. */
const MARGIN_MS = 5000;

/**
 * What a verb writes carries the time it read, and is seen only after its commit, however long that takes. So history
 * is complete up to just before the oldest transaction began that has written and is still open: whoever reads time in
 * a transaction has an id first (`authorityNow`), began before, and keeps both until others see its rows. Whoever began
 * after we looked reads a later time. The clock is read first, and pages are read in later statements. Whose transactions
 * others cannot see would be overlooked: it is asked as ourselves, always.
 */
const WATERMARK = sqlOfNoTenant(
  "read_watermark",
  `select least(n.now - ${MARGIN_MS} * interval '1 ms',
                (select min(a.xact_start) - interval '1 us' from pg_stat_get_activity(null) a
                  where a.datid = (select oid from pg_database where datname = current_database())
                    and a.backend_type = 'client backend' and a.backend_xid is not null)) as watermark
     from (select clock_timestamp() as now offset 0) n`,
);

/** Up to where history is complete (database time): the watermark, and the bound of a list's first page. */
export async function readWatermark(db: Queryable): Promise<Instant> {
  return (await db.query<{ watermark: Instant }>(WATERMARK))[0]!.watermark;
}

export type Backlog = {
  now: Instant;
  /** Due instant of the cursor that is furthest behind; null when none is due. */
  oldestDueAt: Instant | null;
  /** When the oldest row that waits to be published became available, of tenants that are not suspended; null when none waits. Rows of class remote wait for workers that are not ours. */
  oldestUnpublishedAt: Instant | null;
};

// statement_timestamp() and not clock_timestamp(): only a stable function may bound an index walk (measured with 50,000
// cursors: 1,769 ms with the volatile one).
const BACKLOG = sql(
  "read_backlog",
  `select clock_timestamp() as now,
          (select next_due_at from schedule_cursor
            where next_due_at <= statement_timestamp() order by next_due_at limit 1) as "oldestDueAt",
          (select min(available_at) from outbox
            where published_at is null and kind = 'run' and class <> 'remote' and available_at <= statement_timestamp()
              and tenant_id <> all (array(select id from tenant where status = 'suspended'))) as "oldestUnpublishedAt"`,
);

export async function readBacklog(db: Queryable): Promise<Backlog> {
  return (await db.query<Backlog>(BACKLOG))[0]!;
}
