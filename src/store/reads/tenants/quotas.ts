import type { ResourceClass } from "../../../domain/definition.ts";
import type { AdmissionPolicy } from "../../../domain/quotas/admission.ts";
import type { TenantQuotas } from "../../../domain/quotas/tenant.ts";
import type { Uuid } from "../../../kernel/ids.ts";
import { type Database, type Queryable, sql } from "../../database.ts";
import { readBounded } from "../bounded.ts";

/** A tenant's quotas and what it uses of them. Nothing here decides: what refuses counts under a lock of its own. */

export const QUOTA_COLUMNS = `schedules, min_interval_ms::float8 as "minIntervalMs", payload_bytes as "payloadBytes",
  queued_runs as "queuedRuns", requested_runs_per_day as "requestedRunsPerDay",
  api_rate_per_second as "apiRatePerSecond", api_burst as "apiBurst", version`;

export type KeptQuotas = TenantQuotas & { version: number };

const FIND = sql("tenant_quota_find", `select ${QUOTA_COLUMNS} from tenant_quota where tenant_id = $1`);

/** Undefined: nobody has set any. */
export async function findTenantQuotas(db: Queryable, tenantId: Uuid): Promise<KeptQuotas | undefined> {
  return (await db.query<KeptQuotas>(FIND, [tenantId]))[0];
}

export type ClassQuota = {
  class: ResourceClass;
  maxRunning: number | null;
  startRatePerSecond: number | null;
  weight: number;
  onInfeasible: AdmissionPolicy;
  version: number;
};

const CLASSES = sql(
  "class_quotas_find",
  `select class, max_running as "maxRunning", start_rate_per_second as "startRatePerSecond", weight,
          on_infeasible as "onInfeasible", version::int as version
     from quota where tenant_id = $1`,
);

/** Of classes for which somebody has set one. */
export async function findClassQuotas(db: Queryable, tenantId: Uuid): Promise<ClassQuota[]> {
  return db.query<ClassQuota>(CLASSES, [tenantId]);
}

const USED = sql(
  "tenant_used",
  `select (select count(*) from (select from schedule
            where tenant_id = $1 and status <> 'deleted' limit $2) s)::int as schedules,
          (select count(*) from (select from live_run
            where tenant_id = $1 and state in ('queued', 'blocked') limit $2) r)::int as "queuedRuns",
          coalesce((select requested_runs from tenant_day
            where tenant_id = $1 and day = (clock_timestamp() at time zone 'UTC')::date), 0) as "requestedRunsPerDay"`,
);

export type Used = { schedules: number; queuedRuns: number; requestedRunsPerDay: number };
const ASKING = { what: "figures", askFor: "them again later" };

/** Counted up to `most`. */
export async function readUsed(db: Pick<Database, "queryWithin">, tenantId: Uuid, most: number): Promise<Used> {
  return (await readBounded<Used>(db, USED, [tenantId, most], ASKING))[0]!;
}

const LANES = sql(
  "tenant_lanes",
  `select c.class, coalesce(u.running, 0) as running,
          (select count(*) from (select from live_run l
            where l.tenant_id = $1 and l.class = c.class and l.state in ('queued', 'blocked', 'retrying')
            limit $3) w)::int as waiting
     from unnest($2::text[]) as c (class)
     left join usage u on u.tenant_id = $1 and u.class = c.class`,
);

export type LaneUse = { class: ResourceClass; running: number; waiting: number };

/** Waiting runs of each class are counted up to `most`. */
export async function readLaneUse(
  db: Pick<Database, "queryWithin">,
  tenantId: Uuid,
  classes: readonly ResourceClass[],
  most: number,
): Promise<LaneUse[]> {
  return readBounded<LaneUse>(db, LANES, [tenantId, classes, most], ASKING);
}
