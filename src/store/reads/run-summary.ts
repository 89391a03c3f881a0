import type { RunState, SkipReason, Trigger } from "../../domain/states.ts";
import type { Instant } from "../../kernel/clock.ts";
import { NIL_ID, type Uuid } from "../../kernel/ids.ts";
import { type Database, sql } from "../database.ts";
import { instantText } from "../values.ts";

/**
 * A tenant's runs of a period as they stand now, oldest first: history, and for open runs what live_run says.
 * Keyset pages: (scheduled_at, id) is the primary key's order, and the last row seen is the whole cursor. Walks
 * run_of_tenant; only the partitions of the period are opened. The page is cut before anything is joined, and `limit 1`
 * keeps the joins one index look-up a row: planned as joins while live_run was small, they would scan it for every run.
 *
 * $1 tenant, $2 from (inclusive), $3 to (exclusive), $4 id of the last row seen at $2, $5 rows a page
 */
const RUN_SUMMARY_PAGE = sql(
  "run_summary_page",
  `select r.id, r.schedule_id as "scheduleId", s.name as "scheduleName", r.class, r.trigger,
          case when r.state = 'open' then coalesce(l.state, 'queued') else r.state end as state,
          r.skip_reason as "skipReason", coalesce(l.attempt, r.attempts) as attempts,
          r.scheduled_at as "scheduledAt", r.due_at as "dueAt",
          coalesce(r.started_at, l.started_at) as "startedAt", r.finished_at as "finishedAt",
          r.result_size::float8 as "resultSize", r.error_code as "errorCode", r.error_message as "errorMessage"
     from (select * from run
            where tenant_id = $1::uuid
              and scheduled_at >= $2::timestamptz and scheduled_at < $3::timestamptz
              and (scheduled_at, id) > ($2::timestamptz, $4::uuid)
            order by scheduled_at, id
            limit $5) r
     left join lateral (select state, attempt, started_at from live_run
                         where id = r.id and r.state = 'open' limit 1) l on true
     left join lateral (select name from schedule
                         where tenant_id = r.tenant_id and id = r.schedule_id limit 1) s on true
    order by r.scheduled_at, r.id`,
);

const PAGE_ROWS = 1000;
/** A transaction a page: it brings the planner's settings, and a long report holds no snapshot. */
const PAGE = { deadlineMs: 30_000, lockTimeoutMs: 1000 };

export type RunSummary = {
  id: Uuid;
  scheduleId: Uuid | null;
  scheduleName: string | null;
  class: string;
  trigger: Trigger;
  state: RunState;
  skipReason: SkipReason | null;
  attempts: number;
  scheduledAt: Instant;
  dueAt: Instant;
  startedAt: Instant | null;
  finishedAt: Instant | null;
  resultSize: number | null;
  errorCode: string | null;
  errorMessage: string | null;
};

/** Runs whose nominal instant lies in [fromAt, toAt), oldest first, in pages of at most `pageRows`. */
export async function* runsBetween(
  db: Pick<Database, "transact">,
  tenantId: Uuid,
  fromAt: Instant,
  toAt: Instant,
  pageRows: number = PAGE_ROWS,
): AsyncGenerator<readonly RunSummary[]> {
  let at = fromAt;
  let after = NIL_ID;
  for (;;) {
    const values = [tenantId, instantText(at), instantText(toAt), after, pageRows];
    const rows = await db.transact(PAGE, (tx) => tx.query<RunSummary>(RUN_SUMMARY_PAGE, values));
    const last = rows.at(-1);
    if (last === undefined) return;
    yield rows;
    if (rows.length < pageRows) return;
    at = last.scheduledAt;
    after = last.id;
  }
}
