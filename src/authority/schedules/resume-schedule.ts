import type { Misfire } from "../../domain/definition.ts";
import type { Uuid } from "../../kernel/ids.ts";
import { findSchedule, type ScheduleView } from "../../store/reads/schedules.ts";
import { writeAudit } from "../../store/rows/audit.ts";
import { lockCursor } from "../../store/rows/cursors.ts";
import { updateCursor, updateSchedule } from "../../store/rows/schedules.ts";
import type { Authority } from "../authority.ts";
import { refuse, transactOrRefuse } from "../refusal.ts";
import { lockTenantSchedule, settleWhole, unknownNext } from "./settled-schedule.ts";

export type ResumeOutcome =
  | { kind: "resumed"; schedule: ScheduleView; plan: { runs: number; skipped: number } }
  | { kind: "not-found" }
  | { kind: "not-paused"; schedule: ScheduleView };

/**
 * Resumes a paused schedule. What fell into the pause is treated by the misfire policy (or the answer given here);
 * what does not run is a skip with reason `paused`.
 * Locks, writes as materialize, plus schedule and audit_event. Replay: `not-paused`.
 */
export async function resumeSchedule(
  authority: Authority,
  request: { tenantId: Uuid; actor: string; scheduleId: Uuid; note?: string; misfire?: Misfire["policy"] },
): Promise<ResumeOutcome> {
  const { tenantId, actor, scheduleId, note, misfire } = request;
  const outcome = await transactOrRefuse<ResumeOutcome>(authority, "resume-schedule", async (tx) => {
    const locked = await lockTenantSchedule(tx, tenantId, scheduleId);
    if (locked === undefined) refuse<ResumeOutcome>({ kind: "not-found" });
    const { schedule, cursor } = locked;
    if (schedule.status !== "paused") {
      refuse<ResumeOutcome>({ kind: "not-paused", schedule: (await findSchedule(tx, tenantId, scheduleId))! });
    }
    const nowAt = await tx.authorityNow();
    // An edit during the pause may have left nothing to come.
    const status = cursor.next_run_at === null && cursor.fault === null ? "finished" : "active";
    await updateSchedule(tx, { ...schedule, status, notes: note ?? schedule.notes }, nowAt);
    await updateCursor(tx, {
      scheduleId,
      revision: cursor.revision,
      nextRunAt: cursor.next_run_at,
      nextDueAt: cursor.next_run_at,
      lastNominalAt: cursor.last_nominal_at,
      chain: undefined,
      tzVersion: authority.tzVersion,
      fault: unknownNext(cursor, nowAt),
    });
    const due = (await lockCursor(tx, scheduleId))!;
    const answer = { reason: "paused" as const, ...(misfire === undefined ? {} : { misfire: { policy: misfire } }) };
    const settled = await settleWhole(authority, tx, due, answer);
    await writeAudit(tx, { tenantId, actor, action: "schedule.resume", subject: scheduleId, after: { note, misfire } });
    const view = (await findSchedule(tx, tenantId, scheduleId))!;
    return { kind: "resumed", schedule: view, plan: { runs: settled.runs, skipped: settled.skips } };
  });
  if (outcome.kind === "resumed") {
    authority.signals.scheduleMoved(outcome.schedule.nextDueAt);
    authority.signals.outboxGrew(0);
  }
  return outcome;
}
