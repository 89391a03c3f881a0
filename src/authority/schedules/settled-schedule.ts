import type { Instant } from "../../kernel/clock.ts";
import type { Uuid } from "../../kernel/ids.ts";
import type { Transaction } from "../../store/database.ts";
import { type CursorRow, isNextUnknown, lockCursor } from "../../store/rows/cursors.ts";
import { lockSchedule, type ScheduleRow } from "../../store/rows/schedules.ts";
import type { Authority } from "../authority.ts";
import { lookAgain } from "../refusal.ts";
import { leaveToRelay } from "../runs/bear.ts";
import { hearEnds } from "../runs/hear-ends.ts";
import { type Settled, settleLocked } from "../runs/materialize.ts";
import type { MissedAnswer } from "../runs/plan-cursor.ts";

/** A schedule under its lock, with every nominal instant up to now turned into a run or a skip. */
export type SettledSchedule = {
  schedule: ScheduleRow;
  cursor: CursorRow;
  settled: Settled;
  nowAt: Instant;
};

type Locked = { schedule: ScheduleRow; cursor: CursorRow };

/** A schedule under its lock that has heard of its runs' ends; what is told from here on waits for its next look. */
export type HeardSchedule = Locked & { readonly heard: number };

/** Locks a tenant's schedule: first its cursor (the schedule's lock), then its row. Undefined: no such schedule. */
export async function lockTenantSchedule(
  tx: Transaction,
  tenantId: Uuid,
  scheduleId: Uuid,
): Promise<Locked | undefined> {
  const locked = await lockScheduleOrDeleted(tx, tenantId, scheduleId);
  return locked?.schedule.status === "deleted" ? undefined : locked;
}

/** The same for who must tell a deleted schedule from one that never was. */
export async function lockScheduleOrDeleted(
  tx: Transaction,
  tenantId: Uuid,
  scheduleId: Uuid,
): Promise<Locked | undefined> {
  const cursor = await lockCursor(tx, scheduleId);
  if (cursor === undefined || cursor.tenant_id !== tenantId) return undefined;
  const schedule = await lockSchedule(tx, scheduleId);
  return schedule === undefined ? undefined : { schedule, cursor };
}

/** The schedule as it stands once it has heard of its runs' ends: a failure may have paused it. Once in a transaction. */
export async function hearSchedule(authority: Authority, tx: Transaction, locked: Locked): Promise<HeardSchedule> {
  const { cursors, heard } = await hearEnds(authority, tx, [locked.cursor]);
  if (heard === 0) return { ...locked, heard };
  return { schedule: (await lockSchedule(tx, locked.schedule.id))!, cursor: cursors[0]!, heard };
}

/**
 * Edits, pauses and deletes come after what is already due: first everything due up to now is settled under the
 * revision that was in force then, so that a change never rewrites or swallows an instant of the past.
 */
export async function settleSchedule(
  authority: Authority,
  tx: Transaction,
  locked: HeardSchedule,
  answer: MissedAnswer = {},
): Promise<SettledSchedule> {
  const { schedule } = locked;
  const settled = await settleWhole(authority, tx, locked.cursor, answer);
  // Read again: settling has moved the cursor and may have finished the schedule.
  const cursor = (await lockCursor(tx, schedule.id))!;
  return { schedule: (await lockSchedule(tx, schedule.id))!, cursor, settled, nowAt: settled.nowAt };
}

/** What updateCursor keeps of a fault: all, where the next instant is unknown, else nothing. */
export function unknownNext(
  cursor: CursorRow,
  retryAt: Instant | null,
): { message: string; retryAt: Instant | null } | undefined {
  return isNextUnknown(cursor) ? { message: cursor.fault!, retryAt } : undefined;
}

/** Settles a locked cursor up to now, however many bounded plans that takes. */
async function settleWhole(
  authority: Authority,
  tx: Transaction,
  cursor: CursorRow,
  answer: MissedAnswer,
): Promise<Settled> {
  const whole = await settleLocked(authority, tx, [cursor], leaveToRelay, answer);
  if (whole.undecided > 0) lookAgain();
  for (;;) {
    const now = (await lockCursor(tx, cursor.schedule_id))!;
    if (now.next_due_at === null || now.next_run_at === null || now.next_run_at > whole.nowAt) return whole;
    const more = await settleLocked(authority, tx, [now], leaveToRelay, answer);
    if (more.runs + more.skips === 0) return whole;
    whole.runs += more.runs;
    whole.skips += more.skips;
    whole.intents.push(...more.intents);
  }
}
