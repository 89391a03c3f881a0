import type { Instant } from "../../kernel/clock.ts";
import { sql } from "../../store/database.ts";
import { readBacklog } from "../../store/reads/status.ts";
import type { Authority } from "../authority.ts";

const QUEUED = sql(
  "backlog_queued",
  `select class, min(greatest(not_before, admitted_at)) as since
     from live_run
    where state in ('queued', 'retrying') and not_before <= statement_timestamp()
      and tenant_id <> all (array(select id from tenant where status = 'suspended'))
    group by class`,
);
/** Paused schedules are not tried again, and miss nothing. */
const FAULTS = sql(
  "backlog_faults",
  "select count(*)::int as faults from schedule_cursor where fault is not null and fault_retry_at is not null",
);

export type BacklogAges = {
  scanLagMs: number;
  outboxAgeMs: number;
  /** Per class: how long the oldest run that may start has waited. */
  queuedAgeMs: ReadonlyMap<string, number>;
  faults: number;
};

/** How far behind the system is, for gauges: plain reads, the live table walked once (it is small). */
export async function readBacklogAges(authority: Authority): Promise<BacklogAges> {
  const { db } = authority;
  const backlog = await readBacklog(db);
  const queued = await db.query<{ class: string; since: Instant }>(QUEUED);
  const [{ faults } = { faults: 0 }] = await db.query<{ faults: number }>(FAULTS);
  const age = (at: Instant | null) => (at === null ? 0 : Math.max(0, backlog.now - at));
  return {
    scanLagMs: age(backlog.oldestDueAt),
    outboxAgeMs: age(backlog.oldestUnpublishedAt),
    queuedAgeMs: new Map(queued.map((row) => [row.class, age(row.since)])),
    faults,
  };
}
