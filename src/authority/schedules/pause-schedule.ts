import type { Uuid } from "../../kernel/ids.ts";
import { findSchedule, type ScheduleView } from "../../store/reads/schedules.ts";
import { writeAudit } from "../../store/rows/audit.ts";
import { updateCursor, updateSchedule } from "../../store/rows/schedules.ts";
import type { Authority } from "../authority.ts";
import { refuse, transactOrRefuse } from "../refusal.ts";
import { hearSchedule, lockTenantSchedule, settleSchedule, unknownNext } from "./settled-schedule.ts";

export type PauseOutcome =
  | { kind: "paused"; schedule: ScheduleView; settled: number }
  | { kind: "not-found" }
  | { kind: "not-active"; schedule: ScheduleView };

/**
 * Pauses a schedule: nothing more becomes due; what was born before still runs.
 * Locks   schedule_cursor, schedule; what settling locks.
 * Writes  what settling writes; schedule, schedule_cursor (next_due_at goes, the nominal instant stays), audit_event.
 * Replay  `not-active`.
 */
export async function pauseSchedule(
  authority: Authority,
  request: { tenantId: Uuid; actor: string; scheduleId: Uuid; note?: string },
): Promise<PauseOutcome> {
  const { tenantId, actor, scheduleId, note } = request;
  const done = await transactOrRefuse<{ outcome: PauseOutcome }>(authority, "pause-schedule", async (tx) => {
    const found = await lockTenantSchedule(tx, tenantId, scheduleId);
    if (found === undefined) refuse({ outcome: { kind: "not-found" } });
    const locked = await hearSchedule(authority, tx, found);
    const { schedule, cursor, settled, nowAt } = await settleSchedule(authority, tx, locked);
    if (schedule.status !== "active") {
      // What was settled stays settled: this is an answer, not a refusal.
      return { outcome: { kind: "not-active", schedule: (await findSchedule(tx, tenantId, scheduleId))! } };
    }
    await updateSchedule(tx, { ...schedule, status: "paused", notes: note ?? schedule.notes }, nowAt);
    await updateCursor(tx, {
      scheduleId,
      revision: cursor.revision,
      nextRunAt: cursor.next_run_at,
      nextDueAt: null,
      lastNominalAt: cursor.last_nominal_at,
      chain: undefined,
      tzVersion: cursor.tz_version,
      awaitsEnd: cursor.awaits_end,
      fault: unknownNext(cursor, null),
    });
    await writeAudit(tx, { tenantId, actor, action: "schedule.pause", subject: scheduleId, after: { note } });
    const view = (await findSchedule(tx, tenantId, scheduleId))!;
    return { outcome: { kind: "paused", schedule: view, settled: settled.runs + settled.skips } };
  });
  authority.signals.outboxGrew(0);
  return done.outcome;
}
