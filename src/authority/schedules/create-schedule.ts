import type { Definition, Payload } from "../../domain/definition.ts";
import type { RuleFault } from "../../domain/recurrence/compile.ts";
import { bucketFor, mintId, randomBucket, type Uuid } from "../../kernel/ids.ts";
import { findSchedule, findScheduleByKey, type ScheduleView } from "../../store/reads/schedules.ts";
import { writeAudit } from "../../store/rows/audit.ts";
import { type RequestKey, takeRequestKey } from "../../store/rows/request-keys.ts";
import { insertCursor, insertRevision, insertSchedule } from "../../store/rows/schedules.ts";
import type { Authority } from "../authority.ts";
import { findUnknownCalendar, keepCalendarUses } from "../calendars/use-calendars.ts";
import { refuse, transactOrRefuse } from "../refusal.ts";
import { type QuotaRefusal, refusalOfSchedule } from "../tenants/admit.ts";
import { audited } from "./audited.ts";
import { dueAtOf, firstInstant } from "./next-instant.ts";

export type NewSchedule = {
  tenantId: Uuid;
  actor: string;
  requestKey?: RequestKey;
  key?: string;
  name: string;
  labels: Record<string, string>;
  managedBy?: string;
  notes?: string;
  definition: Definition;
  payload: Payload;
  /** Its runs could not start in time, and the tenant's policy is to refuse what is so. */
  isInfeasible?: boolean;
};

export type CreateOutcome =
  | { kind: "created" | "repeated"; schedule: ScheduleView }
  | { kind: "key-reused" }
  | QuotaRefusal
  | { kind: "infeasible" }
  | { kind: "key-taken"; scheduleId: Uuid }
  | { kind: "invalid"; fault: RuleFault }
  | { kind: "unknown-calendar"; name: string };

/**
 * Creates a schedule in the bucket of its creation key, for ever.
 * Locks   request_key (scope: the tenant), by inserting it; tenant_quota, where it limits schedules; the calendars it names, for key share.
 * Time    authority time, after the wait for the quota; the first instant is strictly later. The id's is from before.
 * Writes  request_key, schedule, schedule_revision, schedule_cursor, calendar_use, audit_event.
 * Replay  the same key and body: the same schedule; another body: `key-reused`.
 */
export async function createSchedule(authority: Authority, request: NewSchedule): Promise<CreateOutcome> {
  const { tenantId, actor, requestKey, definition, payload } = request;
  const outcome = await transactOrRefuse<CreateOutcome>(authority, "create-schedule", async (tx) => {
    const creationKey = request.key ?? requestKey?.key;
    const bucket = creationKey === undefined ? randomBucket() : bucketFor(tenantId, creationKey);
    const id = mintId(await tx.authorityNow(), bucket);
    if (requestKey !== undefined) {
      const taken = await takeRequestKey(tx, tenantId, requestKey, id);
      if (taken.kind === "reused") refuse({ kind: "key-reused" });
      if (taken.kind === "repeated") {
        return { kind: "repeated", schedule: (await findSchedule(tx, tenantId, taken.subject))! };
      }
    }
    if (request.isInfeasible === true) refuse({ kind: "infeasible" });
    const refused = await refusalOfSchedule(authority, tx, tenantId, { definition, payload });
    if (refused !== undefined) refuse(refused);
    const nowAt = await tx.authorityNow();
    const first = await firstInstant(authority, tx, definition, nowAt);
    if (!first.ok) refuse({ kind: "invalid", fault: first.fault });
    const unknown = await findUnknownCalendar(tx, tenantId, definition);
    if (unknown !== undefined) refuse({ kind: "unknown-calendar", name: unknown });
    const row = {
      id,
      tenant_id: tenantId,
      key: request.key ?? null,
      name: request.name,
      labels: request.labels,
      managed_by: request.managedBy ?? null,
      notes: request.notes ?? null,
      status: first.nextRunAt === null ? ("finished" as const) : ("active" as const),
    };
    if (!(await insertSchedule(tx, row, nowAt))) {
      refuse({ kind: "key-taken", scheduleId: (await findScheduleByKey(tx, tenantId, request.key!))!.id });
    }
    await insertRevision(tx, { scheduleId: id, revision: 1, actor, definition, payload }, nowAt);
    await insertCursor(
      tx,
      {
        scheduleId: id,
        tenantId,
        nextRunAt: first.nextRunAt,
        nextDueAt: dueAtOf(authority, id, definition, first.nextRunAt),
        tzVersion: authority.tzVersion,
      },
      nowAt,
    );
    await keepCalendarUses(tx, { tenantId, scheduleId: id }, undefined, definition);
    const schedule = (await findSchedule(tx, tenantId, id))!;
    await writeAudit(tx, { tenantId, actor, action: "schedule.create", subject: id, after: audited(schedule) });
    return { kind: "created", schedule };
  });
  await authority.faults.reach("create-schedule:committed");
  if (outcome.kind === "created") authority.signals.scheduleMoved(outcome.schedule.nextDueAt);
  return outcome;
}
