import type { Definition, Payload } from "../../domain/definition.ts";
import type { ScheduleStatus } from "../../domain/states.ts";
import type { Instant } from "../../kernel/clock.ts";
import type { Uuid } from "../../kernel/ids.ts";
import { type Queryable, sql } from "../database.ts";

/** A schedule as it stands, with its current revision's definition and payload. Instants are epoch ms. */
export type ScheduleView = {
  id: Uuid;
  tenantId: Uuid;
  key: string | null;
  name: string;
  labels: Record<string, string>;
  managedBy: string | null;
  notes: string | null;
  status: ScheduleStatus;
  revision: number;
  definition: Definition;
  payload: Payload;
  nextRunAt: Instant | null;
  nextDueAt: Instant | null;
  /**
   * Why the rule cannot be computed at the moment, and when it is tried again (null: while paused, not at all); null is
   * the ordinary case.
   */
  fault: { message: string; retryAt: Instant | null } | null;
  createdAt: Instant;
  updatedAt: Instant;
};

const COLUMNS = `s.id, s.tenant_id as "tenantId", s.key, s.name, s.labels, s.managed_by as "managedBy", s.notes, s.status,
  s.revision, v.definition, v.payload, c.next_run_at as "nextRunAt", c.next_due_at as "nextDueAt",
  c.fault as "faultMessage", c.fault_retry_at as "faultRetryAt",
  s.created_at as "createdAt", s.updated_at as "updatedAt"`;
const FROM = `schedule s
  join schedule_cursor c on c.schedule_id = s.id
  join schedule_revision v on v.schedule_id = s.id and v.revision = s.revision`;

const FIND = sql("read_schedule", `select ${COLUMNS} from ${FROM} where s.id = $2 and s.tenant_id = $1`);
const FIND_BY_KEY = sql(
  "read_schedule_by_key",
  `select ${COLUMNS} from ${FROM} where s.tenant_id = $1 and s.key = $2 and s.status <> 'deleted'`,
);
const LIST = sql(
  "read_schedules",
  `select ${COLUMNS} from ${FROM}
    where s.tenant_id = $1 and s.id < coalesce($2::uuid, 'ffffffff-ffff-ffff-ffff-ffffffffffff')
      and case when $4::text is null then s.status <> 'deleted' else s.status = $4 end
      and ($5::jsonb is null or s.labels @> $5)
      and ($6::boolean is null or (c.fault is not null) = $6)
    order by s.id desc limit $3`,
);

const FIND_IDS = sql(
  "read_schedule_ids",
  `select id, null as key from schedule where tenant_id = $1 and id = any($2::uuid[])
    union all
   select id, key from schedule
    where tenant_id = $1 and key = any($3::text[]) and key is not null and status <> 'deleted'`,
);

type Row = Omit<ScheduleView, "fault"> & { faultMessage: string | null; faultRetryAt: Instant | null };

function toView({ faultMessage, faultRetryAt, ...row }: Row): ScheduleView {
  return { ...row, fault: faultMessage === null ? null : { message: faultMessage, retryAt: faultRetryAt } };
}

/** Also finds deleted schedules: their history stays readable. */
export async function findSchedule(db: Queryable, tenantId: Uuid, scheduleId: Uuid): Promise<ScheduleView | undefined> {
  return (await db.query<Row>(FIND, [tenantId, scheduleId])).map(toView)[0];
}

export async function findScheduleByKey(db: Queryable, tenantId: Uuid, key: string): Promise<ScheduleView | undefined> {
  return (await db.query<Row>(FIND_BY_KEY, [tenantId, key])).map(toView)[0];
}

/** Which of these are there: deleted ones by id alone, and none of another tenant. */
export async function findScheduleIds(
  db: Queryable,
  tenantId: Uuid,
  { ids, keys }: { ids: readonly Uuid[]; keys: readonly string[] },
): Promise<{ ids: ReadonlySet<Uuid>; byKey: ReadonlyMap<string, Uuid> }> {
  const rows = await db.query<{ id: Uuid; key: string | null }>(FIND_IDS, [tenantId, ids, keys]);
  return {
    ids: new Set(rows.flatMap((row) => (row.key === null ? [row.id] : []))),
    byKey: new Map(rows.flatMap((row) => (row.key === null ? [] : [[row.key, row.id] as const]))),
  };
}

/** Newest first; `afterId` is the last id of the page before. Deleted ones only when asked for by status. */
export async function listSchedules(
  db: Queryable,
  tenantId: Uuid,
  page: {
    afterId?: Uuid;
    limit: number;
    status?: ScheduleStatus;
    label?: { name: string; value: string };
    fault?: boolean;
  },
): Promise<ScheduleView[]> {
  const label = page.label === undefined ? null : JSON.stringify({ [page.label.name]: page.label.value });
  const values = [tenantId, page.afterId ?? null, page.limit, page.status ?? null, label, page.fault ?? null];
  return (await db.query<Row>(LIST, values)).map(toView);
}

export type RevisionView = {
  revision: number;
  actor: string;
  createdAt: Instant;
  definition: Definition;
  payload: Payload;
};

const LIST_REVISIONS = sql(
  "read_schedule_revisions",
  `select v.revision, v.actor, v.created_at as "createdAt", v.definition, v.payload
     from schedule_revision v join schedule s on s.id = v.schedule_id
    where s.tenant_id = $1 and v.schedule_id = $2 and v.revision < coalesce($3::int, 2147483647)
    order by v.revision desc limit $4`,
);

/** Newest first; `beforeRevision` is the last one of the page before. */
export function listRevisions(
  db: Queryable,
  tenantId: Uuid,
  scheduleId: Uuid,
  page: { beforeRevision?: number; limit: number },
): Promise<RevisionView[]> {
  return db.query<RevisionView>(LIST_REVISIONS, [tenantId, scheduleId, page.beforeRevision ?? null, page.limit]);
}

const FIND_REQUEST_KEY = sql("read_request_key", "select subject from request_key where scope = $1 and key = $2");

/** What was accepted under a request key in this scope (a tenant, or a schedule for run-now). */
export async function findSubjectOfRequest(db: Queryable, scope: Uuid, key: string): Promise<Uuid | undefined> {
  return (await db.query<{ subject: Uuid }>(FIND_REQUEST_KEY, [scope, key]))[0]?.subject;
}
