import type { OperationState, Tally } from "../../domain/operation.ts";
import type { Instant } from "../../kernel/clock.ts";
import type { Uuid } from "../../kernel/ids.ts";
import { type Queryable, sql } from "../database.ts";
import { type Called, calledOf } from "./called.ts";

/** A long piece of work as people see it. Instants are epoch ms; `arguments` are the kind's own. */
export type OperationView = {
  id: Uuid;
  kind: string;
  scheduleId: Uuid | null;
  schedule: Called;
  state: OperationState;
  arguments: Record<string, unknown>;
  done: number;
  failed: number;
  /** Items to be done in all; null: they were too many to count. */
  total: number | null;
  tally: Tally;
  pacePerSecond: number | null;
  /** What it waits for, or why it ended as it did. */
  message: string | null;
  actor: string;
  reason: string | null;
  createdAt: Instant;
  updatedAt: Instant;
  nextStepAt: Instant | null;
  finishedAt: Instant | null;
};

const COLUMNS = `id, kind, schedule_id as "scheduleId",
  ${calledOf("operation")} as schedule, state, arguments, done::float8 as done, failed::float8 as failed,
  total::float8 as total, tally, pace_per_second as "pacePerSecond", message, actor, reason, created_at as "createdAt",
  updated_at as "updatedAt", case when finished_at is null then next_step_at end as "nextStepAt",
  finished_at as "finishedAt"`;

const FIND = sql("read_operation", `select ${COLUMNS} from operation where id = $2 and tenant_id = $1`);
const LIST = sql(
  "read_operations",
  `select ${COLUMNS} from operation
    where tenant_id = $1 and id < coalesce($2::uuid, 'ffffffff-ffff-ffff-ffff-ffffffffffff')
      and ($4::text is null or state = $4) and ($5::uuid is null or schedule_id = $5)
    order by id desc limit $3`,
);

const OF_REQUEST = sql(
  "read_operations_of_request",
  `select ${COLUMNS} from operation where tenant_id = $1 and id in (
     select subject from request_key where scope = $2 and key = any($3::text[]))
    order by id desc`,
);

/** Those begun by requests with these keys: one key may have begun one of each kind. */
export function findOperationsOfRequest(
  db: Queryable,
  tenantId: Uuid,
  scope: Uuid,
  keys: readonly string[],
): Promise<OperationView[]> {
  return db.query<OperationView>(OF_REQUEST, [tenantId, scope, keys]);
}

export async function findOperation(db: Queryable, tenantId: Uuid, id: Uuid): Promise<OperationView | undefined> {
  return (await db.query<OperationView>(FIND, [tenantId, id]))[0];
}

/** Newest first; `afterId` is the last id of the page before. */
export function listOperations(
  db: Queryable,
  tenantId: Uuid,
  page: { afterId?: Uuid; limit: number; state?: OperationState; scheduleId?: Uuid },
): Promise<OperationView[]> {
  const { afterId = null, limit, state = null, scheduleId = null } = page;
  return db.query<OperationView>(LIST, [tenantId, afterId, limit, state, scheduleId]);
}
