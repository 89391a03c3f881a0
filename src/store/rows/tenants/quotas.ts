import { QUOTA_NAMES, type TenantQuotas } from "../../../domain/quotas/tenant.ts";
import type { Uuid } from "../../../kernel/ids.ts";
import { type Queryable, sql } from "../../database.ts";
import { type KeptQuotas, QUOTA_COLUMNS } from "../../reads/tenants/quotas.ts";

const LOCK = sql("tenant_quota_lock", `select ${QUOTA_COLUMNS} from tenant_quota where tenant_id = $1 for update`);
const LOCK_SCHEDULES = sql(
  "tenant_quota_lock_schedules",
  `select ${QUOTA_COLUMNS} from tenant_quota where tenant_id = $1 and schedules is not null for update`,
);
const LOCK_RUNS = sql(
  "tenant_quota_lock_runs",
  `select ${QUOTA_COLUMNS} from tenant_quota
    where tenant_id = $1 and (queued_runs is not null or requested_runs_per_day is not null) for update`,
);
const WRITE = sql(
  "tenant_quota_write",
  `insert into tenant_quota (tenant_id, schedules, min_interval_ms, payload_bytes, queued_runs, requested_runs_per_day,
                             api_rate_per_second, api_burst)
   values ($1, $2, $3, $4, $5, $6, $7, $8)
   on conflict (tenant_id) do update
     set schedules = excluded.schedules, min_interval_ms = excluded.min_interval_ms,
         payload_bytes = excluded.payload_bytes, queued_runs = excluded.queued_runs,
         requested_runs_per_day = excluded.requested_runs_per_day,
         api_rate_per_second = excluded.api_rate_per_second, api_burst = excluded.api_burst,
         version = tenant_quota.version + 1
   returning version`,
);

/**
 * Locks the tenant's quotas; undefined where there is no row, or none that limits what is meant: then nobody waits, and
 * nothing is counted.
 */
export async function lockTenantQuotas(
  tx: Queryable,
  tenantId: Uuid,
  which: "all" | "schedules" | "runs",
): Promise<KeptQuotas | undefined> {
  const statement = { all: LOCK, schedules: LOCK_SCHEDULES, runs: LOCK_RUNS }[which];
  return (await tx.query<KeptQuotas>(statement, [tenantId]))[0];
}

/** The version from now on. */
export async function writeTenantQuotas(tx: Queryable, tenantId: Uuid, quotas: TenantQuotas): Promise<number> {
  const values = QUOTA_NAMES.map((name) => quotas[name]);
  return (await tx.query<{ version: number }>(WRITE, [tenantId, ...values]))[0]!.version;
}

const COUNT_SCHEDULES = sql(
  "tenant_count_schedules",
  "select count(*)::int as n from (select from schedule where tenant_id = $1 and status <> 'deleted' limit $2) s",
);
const COUNT_QUEUED = sql(
  "tenant_count_queued",
  `select count(*)::int as n from (select from live_run
    where tenant_id = $1 and state in ('queued', 'blocked') limit $2) r`,
);

/** Schedules that are not deleted, counted up to `most`. */
export async function countSchedules(tx: Queryable, tenantId: Uuid, most: number): Promise<number> {
  return (await tx.query<{ n: number }>(COUNT_SCHEDULES, [tenantId, most]))[0]!.n;
}

/** Runs that wait to be started, or for their turn, counted up to `most`. */
export async function countQueuedRuns(tx: Queryable, tenantId: Uuid, most: number): Promise<number> {
  return (await tx.query<{ n: number }>(COUNT_QUEUED, [tenantId, most]))[0]!.n;
}

const READ_DAY = sql(
  "tenant_day_read",
  "select requested_runs as runs from tenant_day where tenant_id = $1 and day >= $2::date",
);
// A clock that was set back past midnight goes on counting the day it had reached.
const ADD_TO_DAY = sql(
  "tenant_day_add",
  `insert into tenant_day (tenant_id, day, requested_runs) values ($1, $2::date, $3)
   on conflict (tenant_id) do update
     set requested_runs = excluded.requested_runs
           + case when tenant_day.day >= excluded.day then tenant_day.requested_runs else 0 end,
         day = greatest(tenant_day.day, excluded.day)`,
);

/** Runs asked for on that UTC day. */
export async function readRequestedRuns(tx: Queryable, tenantId: Uuid, day: string): Promise<number> {
  return (await tx.query<{ runs: number }>(READ_DAY, [tenantId, day]))[0]?.runs ?? 0;
}

/** The caller holds the tenant's quotas. */
export async function addRequestedRuns(tx: Queryable, tenantId: Uuid, day: string, runs: number): Promise<void> {
  if (runs > 0) await tx.query(ADD_TO_DAY, [tenantId, day, runs]);
}
