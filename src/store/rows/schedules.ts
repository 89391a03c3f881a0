import type { Definition, Payload } from "../../domain/definition.ts";
import type { ScheduleStatus } from "../../domain/states.ts";
import type { Instant } from "../../kernel/clock.ts";
import { digestOf, type Uuid } from "../../kernel/ids.ts";
import { type Queryable, sql } from "../database.ts";
import { instantText } from "../values.ts";

/** The part of a schedule that people edit. */
export type ScheduleRow = {
  id: Uuid;
  tenant_id: Uuid;
  key: string | null;
  name: string;
  labels: Record<string, string>;
  managed_by: string | null;
  status: ScheduleStatus;
  revision: number;
  notes: string | null;
};

const LOCK = sql(
  "schedules_lock",
  `select id, tenant_id, key, name, labels, managed_by, status, revision, notes from schedule
    where id = any($1::uuid[]) order by id for update`,
);
const INSERT = sql(
  "schedules_insert",
  `insert into schedule (id, tenant_id, key, name, labels, managed_by, notes, status, created_at, updated_at)
   values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $9)
   on conflict (tenant_id, key) where key is not null and status <> 'deleted' do nothing
   returning id`,
);
const INSERT_REVISION = sql(
  "schedules_insert_revision",
  `insert into schedule_revision (schedule_id, revision, actor, created_at, definition, payload, content)
   values ($1, $2, $3, $4, $5, $6, $7)`,
);
const INSERT_CURSOR = sql(
  "schedules_insert_cursor",
  `insert into schedule_cursor (schedule_id, tenant_id, revision, next_run_at, next_due_at, chain_started_at, tz_version,
                                parser_version, content)
   select $1, $2, 1, $3, $4, $5, $6, 1, content from schedule_revision where schedule_id = $1 and revision = 1`,
);
const UPDATE = sql(
  "schedules_update",
  `update schedule set name = $2, labels = $3, managed_by = $4, notes = $5, status = $6, revision = $7, updated_at = $8
    where id = $1`,
);
const UPDATE_CURSOR = sql(
  "schedules_update_cursor",
  `update schedule_cursor
      set revision = $2, next_run_at = $3, next_due_at = $4, last_nominal_at = $5, chain_started_at = coalesce($6, chain_started_at),
          chain_reason = coalesce($7, chain_reason), tz_version = $8, fault = $9, fault_retry_at = $10,
          awaits_end = $11, last_nominal_local = case when $6 is null then last_nominal_local end,
          catch_up_until = null, caught_up = 0, catch_up_reason = null,
          content = (select content from schedule_revision where schedule_id = $1 and revision = $2)
    where schedule_id = $1`,
);

export async function lockSchedule(tx: Queryable, id: Uuid): Promise<ScheduleRow | undefined> {
  return (await lockSchedules(tx, [id]))[0];
}

/** By id. */
export function lockSchedules(tx: Queryable, ids: readonly Uuid[]): Promise<ScheduleRow[]> {
  return tx.query<ScheduleRow>(LOCK, [ids]);
}

/** False where the tenant has another schedule of that key. */
export async function insertSchedule(
  tx: Queryable,
  row: Omit<ScheduleRow, "revision">,
  nowAt: Instant,
): Promise<boolean> {
  const { id, tenant_id, key, name, labels, managed_by, notes, status } = row;
  const values = [id, tenant_id, key, name, JSON.stringify(labels), managed_by, notes, status, instantText(nowAt)];
  return (await tx.query(INSERT, values)).length === 1;
}

export async function insertRevision(
  tx: Queryable,
  row: { scheduleId: Uuid; revision: number; actor: string; definition: Definition; payload: Payload },
  nowAt: Instant,
): Promise<void> {
  const { scheduleId, revision, actor, definition, payload } = row;
  const texts = [JSON.stringify(definition), JSON.stringify(payload)];
  await tx.query(INSERT_REVISION, [
    scheduleId,
    revision,
    actor,
    instantText(nowAt),
    ...texts,
    digestOf(texts.join("\n")),
  ]);
}

export async function insertCursor(
  tx: Queryable,
  row: { scheduleId: Uuid; tenantId: Uuid; nextRunAt: Instant | null; nextDueAt: Instant | null; tzVersion: string },
  nowAt: Instant,
): Promise<void> {
  const text = (at: Instant | null) => (at === null ? null : instantText(at));
  const { scheduleId, tenantId, nextRunAt, nextDueAt, tzVersion } = row;
  await tx.query(INSERT_CURSOR, [
    scheduleId,
    tenantId,
    text(nextRunAt),
    text(nextDueAt),
    instantText(nowAt),
    tzVersion,
  ]);
}

export async function updateSchedule(tx: Queryable, row: ScheduleRow, nowAt: Instant): Promise<void> {
  const { id, name, labels, managed_by, notes, status, revision } = row;
  await tx.query(UPDATE, [id, name, JSON.stringify(labels), managed_by, notes, status, revision, instantText(nowAt)]);
}

export async function updateCursor(
  tx: Queryable,
  row: {
    scheduleId: Uuid;
    revision: number;
    nextRunAt: Instant | null;
    nextDueAt: Instant | null;
    lastNominalAt: Instant | null;
    chain: { startedAt: Instant; reason: "revised" | "resumed" | "adopted" } | undefined;
    tzVersion: string;
    /** Kept where the next instant is unknown; without a retry while nothing is due anyway. */
    fault?: { message: string; retryAt: Instant | null } | undefined;
    awaitsEnd?: boolean;
  },
): Promise<void> {
  const text = (at: Instant | null | undefined) => (at === null || at === undefined ? null : instantText(at));
  await tx.query(UPDATE_CURSOR, [
    row.scheduleId,
    row.revision,
    text(row.nextRunAt),
    text(row.nextDueAt),
    text(row.lastNominalAt),
    text(row.chain?.startedAt),
    row.chain?.reason ?? null,
    row.tzVersion,
    row.fault?.message ?? null,
    text(row.fault?.retryAt),
    row.awaitsEnd ?? false,
  ]);
}
