import type { Misfire } from "../../domain/definition.ts";
import { bounded } from "../../domain/materialization.ts";
import { withoutPauseNote } from "../../domain/planning/pause-note.ts";
import { nextAfter } from "../../domain/recurrence/next.ts";
import type { Uuid } from "../../kernel/ids.ts";
import type { Transaction } from "../../store/database.ts";
import { findSchedule, type ScheduleView } from "../../store/reads/schedules.ts";
import { writeAudit } from "../../store/rows/audit.ts";
import { lockCursor } from "../../store/rows/cursors.ts";
import { updateCursor, updateSchedule } from "../../store/rows/schedules.ts";
import { releaseWaiting } from "../attempts/waiting.ts";
import type { Authority } from "../authority.ts";
import { lookAgain, refuse, transactOrRefuse } from "../refusal.ts";
import { leaveToRelay } from "../runs/bear.ts";
import { type Settled, settleLocked } from "../runs/materialize.ts";
import { dueAtOf } from "./next-instant.ts";
import { hearSchedule, lockTenantSchedule, unknownNext } from "./settled-schedule.ts";

export type ResumeOutcome =
  | { kind: "resumed"; schedule: ScheduleView; plan: ResumePlan }
  | { kind: "not-found" }
  | { kind: "not-paused"; schedule: ScheduleView };

/** What becomes of the instants that fell into the pause. */
export type ResumePlan = {
  /** Runs made, and those still to be caught up behind work that is on time (fewer where calendars exclude some). */
  runs: number;
  /** Instants recorded as skipped; null: too many to be counted at once. */
  skipped: number | null;
};

/**
 * Resumes a paused schedule. What fell into the pause is treated by the misfire policy (or the answer given here);
 * what does not run is a skip with reason `paused`. A long catch-up is only begun here; the scanner goes on with it.
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
    // What it was told before the resume is no reason to pause after it.
    const { schedule, cursor } = await hearSchedule(authority, tx, locked);
    const before = (await findSchedule(tx, tenantId, scheduleId))!;
    if (schedule.status !== "paused") refuse<ResumeOutcome>({ kind: "not-paused", schedule: before });
    const nowAt = await tx.authorityNow();
    // An edit during the pause may have left nothing to come.
    const status = cursor.next_run_at === null && cursor.fault === null && !cursor.awaits_end ? "finished" : "active";
    await updateSchedule(tx, { ...schedule, status, notes: note ?? withoutPauseNote(schedule.notes) }, nowAt);
    await updateCursor(tx, {
      scheduleId,
      revision: cursor.revision,
      nextRunAt: cursor.next_run_at,
      nextDueAt: dueAtOf(authority, scheduleId, before.definition, cursor.next_run_at),
      lastNominalAt: cursor.last_nominal_at,
      chain: undefined,
      tzVersion: cursor.tz_version,
      awaitsEnd: cursor.awaits_end,
      fault: unknownNext(cursor, nowAt),
    });
    await releaseWaiting(tx, scheduleId, before.definition.overlap, nowAt);
    const due = (await lockCursor(tx, scheduleId))!;
    const answer = { reason: "paused" as const, ...(misfire === undefined ? {} : { misfire: { policy: misfire } }) };
    const settled = await settleLocked(authority, tx, [due], leaveToRelay, answer);
    if (settled.undecided > 0) lookAgain();
    const view = (await findSchedule(tx, tenantId, scheduleId))!;
    const plan = await planOf(authority, tx, view, settled);
    await writeAudit(tx, {
      tenantId,
      actor,
      action: "schedule.resume",
      subject: scheduleId,
      after: { note, misfire, plan },
    });
    return { kind: "resumed", schedule: view, plan };
  });
  if (outcome.kind === "resumed") {
    authority.signals.scheduleMoved(outcome.schedule.nextDueAt);
    authority.signals.outboxGrew(0);
  }
  return outcome;
}

/** What was settled now, and what the catch-up that was begun is yet to bring. */
async function planOf(
  authority: Authority,
  tx: Transaction,
  { id, definition }: ScheduleView,
  settled: Settled,
): Promise<ResumePlan> {
  const plan = { runs: settled.runs, skipped: settled.skippedInstants };
  const cursor = (await lockCursor(tx, id))!;
  const compiled = authority.revisions.rule(definition);
  if (cursor.catch_up_until === null || !compiled.ok) return plan;
  const next = bounded((at) => nextAfter(compiled.rule, at), definition);
  const runsLeft = (definition.maxRuns ?? Number.POSITIVE_INFINITY) - Number(cursor.runs_made);
  const left = Math.min(definition.misfire.maxCatchUp - cursor.caught_up, runsLeft);
  let toRun = 0;
  let at = cursor.next_run_at;
  for (; at !== null && at < cursor.catch_up_until && toRun < left; at = next(at)) toRun++;
  const skipsMore = at !== null && at < cursor.catch_up_until && toRun < runsLeft;
  return { runs: plan.runs + toRun, skipped: skipsMore ? null : plan.skipped };
}
