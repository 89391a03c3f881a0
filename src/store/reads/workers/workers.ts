import type { Instant } from "../../../kernel/clock.ts";
import type { Uuid } from "../../../kernel/ids.ts";
import { type Queryable, sql } from "../../database.ts";

/** A worker that is heard of: one of ours, or one of the tenant's own. */
export type WorkerView = {
  id: Uuid;
  name: string;
  isRemote: boolean;
  /** Of ours, per class. */
  slots: Readonly<Record<string, { slots: number }>>;
  /** Of a tenant's own. */
  jobs: readonly string[] | null;
  concurrency: number | null;
  version: string;
  startedAt: Instant;
  seenAt: Instant;
};

/** Who has not been heard of for so long is gone. An idle worker is heard of when it polls: every half a minute at least. */
const GONE_AFTER = "45 seconds";
const MOST = 1_000;

const LIST = sql(
  "read_workers",
  `select id, name, tenant_id is not null as "isRemote", slots, to_jsonb(jobs) as jobs, concurrency, version,
          started_at as "startedAt", seen_at as "seenAt"
     from worker
    where (tenant_id is null or tenant_id = $1) and not stopping and seen_at > clock_timestamp() - interval '${GONE_AFTER}'
    order by tenant_id is null, name, id limit ${MOST}`,
);

export function listWorkers(db: Queryable, tenantId: Uuid): Promise<WorkerView[]> {
  return db.query<WorkerView>(LIST, [tenantId]);
}
