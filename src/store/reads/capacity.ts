import type { Definition, ResourceClass } from "../../domain/definition.ts";
import type { Instant } from "../../kernel/clock.ts";
import type { Uuid } from "../../kernel/ids.ts";
import { type Database, type Queryable, sql } from "../database.ts";
import { isStatementTimeout } from "../sql-errors.ts";
import { isStorable } from "../values.ts";

/** What a feasibility quote is made of: bounded reads, each by an index. */

const CAPACITY = sql(
  "read_capacity",
  `select coalesce(sum(case when $2 <> 'remote' then (w.slots -> $2 ->> 'slots')::int
                            when w.tenant_id = $1 then w.concurrency end), 0)::int as slots,
          max(case when $2 <> 'remote' then (w.slots -> $2 ->> 'p95Ms')::float8
                   when w.tenant_id = $1 then 0 end) as "workersP95Ms",
          case (select status from tenant where id = $1) when 'suspended' then 0
               else (select max_running from quota where tenant_id = $1 and class = $2) end as "maxRunning",
          (select start_rate_per_second from quota where tenant_id = $1 and class = $2) as "startRatePerSecond"
     from worker w
    where w.seen_at > clock_timestamp() - interval '15 seconds' and not w.stopping`,
);

export type Capacity = {
  /** Of the class, over all live workers; remote runs are for the tenant's own. */
  slots: number;
  /** The slowest worker's 95th percentile (ms); 0 where it has seen nothing, null where no worker is alive. */
  workersP95Ms: number | null;
  maxRunning: number | null;
  startRatePerSecond: number | null;
};

export async function readCapacity(db: Queryable, tenantId: Uuid, class_: ResourceClass): Promise<Capacity> {
  return (await db.query<Capacity>(CAPACITY, [tenantId, class_]))[0]!;
}

// The latest thousand runs of a week by run_of_tenant, whatever they are; the filter comes after the cut.
const DURATIONS = sql(
  "read_durations",
  `select (extract(epoch from finished_at - started_at) * 1000)::float8 as ms
     from (select class, state, attempts, started_at, finished_at from run
            where tenant_id = $1 and scheduled_at <= statement_timestamp()
              and scheduled_at > statement_timestamp() - interval '7 days'
            order by scheduled_at desc, id desc limit 1000) latest
    where class = $2 and state in ('succeeded', 'failed') and attempts = 1 and started_at is not null`,
);

/** Durations (ms) of the tenant's recent runs of a class that ended in their first attempt, at most 1,000. */
export async function readDurations(db: Queryable, tenantId: Uuid, class_: ResourceClass): Promise<number[]> {
  return (await db.query<{ ms: number }>(DURATIONS, [tenantId, class_])).map((row) => row.ms);
}

const ACTIVE = sql(
  "read_active_definitions",
  `select s.id, v.definition from (
     select id, revision from schedule
      where tenant_id = $1 and status = 'active' and id <> coalesce($2::uuid, '00000000-0000-0000-0000-000000000000')
      order by id desc limit $3) s
     join schedule_revision v on v.schedule_id = s.id and v.revision = s.revision`,
);

/** Definitions of a tenant's active schedules, at most `limit`; `exceptId` is left out. */
export async function readActiveDefinitions(
  db: Queryable,
  tenantId: Uuid,
  exceptId: Uuid | undefined,
  limit: number,
): Promise<{ id: Uuid; definition: Definition }[]> {
  return db.query(ACTIVE, [tenantId, exceptId ?? null, limit]);
}

const CURSORS_AT_MOST = 2000;
const COUNT_TIMEOUT_MS = 1000;

const DUE_IN_MINUTES = sql(
  "read_due_in_minutes",
  `select m.at, n.due
     from unnest($2::timestamptz[]) as m (at)
    cross join lateral (
      select count(*)::int as due
        from (select schedule_id, revision, tenant_id from schedule_cursor
               where next_due_at >= m.at and next_due_at < m.at + interval '1 minute'
               order by next_due_at limit $5) c
        join schedule_revision v on v.schedule_id = c.schedule_id and v.revision = c.revision
       where c.tenant_id = $1 and v.definition ->> 'class' = $3
         and c.schedule_id <> coalesce($4::uuid, '00000000-0000-0000-0000-000000000000')) n`,
);

/**
 * How many of a tenant's cursors of a class come due in each minute: a lower bound, because a cursor knows its next
 * instant only, and because at most 2,000 cursors of a minute are looked at. Nothing where that takes too long.
 */
export async function countDueInMinutes(
  db: Pick<Database, "queryWithin">,
  tenantId: Uuid,
  class_: ResourceClass,
  minutes: readonly Instant[],
  exceptId: Uuid | undefined,
): Promise<Map<Instant, number>> {
  const values = [tenantId, minutes.filter(isStorable), class_, exceptId ?? null, CURSORS_AT_MOST];
  try {
    const rows = await db.queryWithin<{ at: Instant; due: number }>(COUNT_TIMEOUT_MS, DUE_IN_MINUTES, values);
    return new Map(rows.map((row) => [row.at, row.due]));
  } catch (error) {
    if (!isStatementTimeout(error)) throw error;
    return new Map();
  }
}
