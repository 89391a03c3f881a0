import type { Uuid } from "../../kernel/ids.ts";
import { findSchedule } from "../../store/reads/schedules.ts";
import { writeAudit } from "../../store/rows/audit.ts";
import { lockEveryRunOf } from "../../store/rows/runs/live-runs.ts";
import { updateCursor, updateSchedule } from "../../store/rows/schedules.ts";
import { announce } from "../announce.ts";
import { type Departure, depart } from "../attempts/depart.ts";
import type { Authority } from "../authority.ts";
import { keepCalendarUses } from "../calendars/use-calendars.ts";
import { lookAgain, refuse, transactOrRefuse } from "../refusal.ts";
import { audited } from "./audited.ts";
import { settleForGood } from "./settle-for-good.ts";
import { hearSchedule, lockTenantSchedule } from "./settled-schedule.ts";

export type DeleteOutcome = { kind: "deleted"; canceled: number } | { kind: "not-found" };

/**
 * Deletes a schedule: its runs that wait are canceled, those that run go on; history stays. What fell into a pause is skipped.
 * Locks   schedule_cursor, schedule; what settling locks; every open run of the schedule (two rounds).
 * Writes  what settling writes; run, live_run, schedule, schedule_cursor, audit_event.
 * Replay  `not-found`.
 */
export async function deleteSchedule(
  authority: Authority,
  request: { tenantId: Uuid; actor: string; scheduleId: Uuid },
): Promise<DeleteOutcome> {
  const { tenantId, actor, scheduleId } = request;
  const done = await transactOrRefuse(authority, "delete-schedule", async (tx) => {
    const found = await lockTenantSchedule(tx, tenantId, scheduleId);
    if (found === undefined) refuse(undefined);
    // A failure that it has not heard of yet may have paused it.
    const { schedule, cursor } = await settleForGood(authority, tx, await hearSchedule(authority, tx, found));
    const open = await lockEveryRunOf(tx, scheduleId);
    if (open === undefined) lookAgain();
    await authority.faults.reach("delete:locked");
    const nowAt = await tx.authorityNow();
    const waiting = open.filter((run) => run.state !== "running");
    const departures = waiting.map(
      (run): Departure => ({
        kind: "end",
        run: { ...run, cancel_requested_at: run.cancel_requested_at ?? nowAt },
        state: "canceled",
      }),
    );
    const intents = await depart(tx, departures, nowAt);
    await updateSchedule(tx, { ...schedule, status: "deleted" }, nowAt);
    const view = (await findSchedule(tx, tenantId, scheduleId))!;
    await keepCalendarUses(tx, { tenantId, scheduleId }, view.definition, undefined);
    await updateCursor(tx, {
      scheduleId,
      revision: cursor.revision,
      nextRunAt: null,
      nextDueAt: null,
      lastNominalAt: cursor.last_nominal_at,
      chain: undefined,
      tzVersion: authority.tzVersion,
    });
    const before = audited({ ...view, status: schedule.status });
    const after = { canceledRuns: departures.length };
    await writeAudit(tx, { tenantId, actor, action: "schedule.delete", subject: scheduleId, before, after });
    return { departures, intents, nowAt };
  });
  if (done === undefined) return { kind: "not-found" };
  announce(authority, done);
  return { kind: "deleted", canceled: done.departures.length };
}
