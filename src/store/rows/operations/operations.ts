import type { OperationState, Tally } from "../../../domain/operation.ts";
import type { Instant } from "../../../kernel/clock.ts";
import type { Uuid } from "../../../kernel/ids.ts";
import { type Queryable, sql } from "../../database.ts";
import { instantText } from "../../values.ts";

/** A long piece of work, as its steps need it. `arguments` and `cursor` are the kind's own. */
export type OperationRow = {
  id: Uuid;
  tenant_id: Uuid;
  schedule_id: Uuid | null;
  kind: string;
  state: OperationState;
  arguments: unknown;
  cursor: unknown;
  done: number;
  failed: number;
  total: number | null;
  pace_per_second: number | null;
  actor: string;
  reason: string | null;
  tries: number;
  tally: Tally;
  message: string | null;
};

const COLUMNS = `id, tenant_id, schedule_id, kind, state, arguments, cursor, done::float8 as done, failed::float8 as failed,
  total::float8 as total, pace_per_second, actor, reason, tries, tally, message`;
const OPEN = "state in ('pending', 'working')";

const INSERT = sql(
  "operations_insert",
  `insert into operation (id, tenant_id, schedule_id, kind, arguments, total, pace_per_second, actor, reason, created_at,
                          updated_at, next_step_at)
   values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $10, $10)`,
);
/** One of each tenant, the one that waits longest, so that no tenant's many keep others from their turn. */
const FIND_DUE = sql(
  "operations_find_due",
  `select id from (
     select distinct on (tenant_id) id, next_step_at from operation
      where ${OPEN} and kind = any($1::text[]) and next_step_at <= statement_timestamp()
      order by tenant_id, next_step_at) first_of_tenant
    order by next_step_at limit $2`,
);
const READ_OPEN = sql(
  "operations_read_open",
  `select clock_timestamp() as now, count(*)::int as open, min(next_step_at) as next_step_at
     from operation where ${OPEN}`,
);
const LOCK_DUE = sql(
  "operations_lock_due",
  `select ${COLUMNS} from operation where id = $1 and ${OPEN} and next_step_at <= clock_timestamp()
      for update skip locked`,
);
const LOCK = sql("operations_lock", `select ${COLUMNS} from operation where id = $1 for update`);
const UPDATE = sql(
  "operations_update",
  `update operation
      set state = $2, cursor = $3, done = $4, failed = $5, tally = $6, tries = $7, message = $8, next_step_at = $9,
          updated_at = $10, finished_at = case when $2 in ('pending', 'working') then null else $10::timestamptz end
    where id = $1`,
);
const COUNT_OPEN = sql(
  "operations_count_open",
  `select count(*)::int as open from operation where tenant_id = $1 and ${OPEN}`,
);

export type NewOperation = {
  id: Uuid;
  tenantId: Uuid;
  scheduleId: Uuid | null;
  kind: string;
  arguments: unknown;
  /** Items to be done; null where counting them would take too long. */
  total: number | null;
  pacePerSecond: number | null;
  actor: string;
  reason: string | null;
};

export async function insertOperation(tx: Queryable, operation: NewOperation, nowAt: Instant): Promise<void> {
  const { id, tenantId, scheduleId, kind, total, pacePerSecond, actor, reason } = operation;
  const values = [id, tenantId, scheduleId, kind, JSON.stringify(operation.arguments), total, pacePerSecond, actor];
  await tx.query(INSERT, [...values, reason, instantText(nowAt)]);
}

/** Operations of these kinds whose next step may be taken now, at most one of each tenant. */
export async function findDueOperations(db: Queryable, kinds: readonly string[], limit: number): Promise<Uuid[]> {
  return (await db.query<{ id: Uuid }>(FIND_DUE, [kinds, limit])).map((row) => row.id);
}

export type OpenOperations = { now: Instant; open: number; next_step_at: Instant | null };

export async function readOpenOperations(db: Queryable): Promise<OpenOperations> {
  return (await db.query<OpenOperations>(READ_OPEN))[0]!;
}

/** Undefined: somebody else is at it, it has ended, or it is not its time. */
export async function lockDueOperation(tx: Queryable, id: Uuid): Promise<OperationRow | undefined> {
  return (await tx.query<OperationRow>(LOCK_DUE, [id]))[0];
}

/** Waits for a step that is being taken. */
export async function lockOperation(tx: Queryable, id: Uuid): Promise<OperationRow | undefined> {
  return (await tx.query<OperationRow>(LOCK, [id]))[0];
}

/** Of a locked operation; `nextStepAt` is when its next step may be taken. */
export async function updateOperation(
  tx: Queryable,
  row: Pick<OperationRow, "id" | "state" | "cursor" | "done" | "failed" | "tally" | "tries" | "message"> & {
    nextStepAt: Instant;
  },
  nowAt: Instant,
): Promise<void> {
  await tx.query(UPDATE, [
    row.id,
    row.state,
    row.cursor === null ? null : JSON.stringify(row.cursor),
    row.done,
    row.failed,
    JSON.stringify(row.tally),
    row.tries,
    row.message?.slice(0, 4_000) ?? null,
    instantText(row.nextStepAt),
    instantText(nowAt),
  ]);
}

export async function countOpenOperations(tx: Queryable, tenantId: Uuid): Promise<number> {
  return (await tx.query<{ open: number }>(COUNT_OPEN, [tenantId]))[0]!.open;
}
