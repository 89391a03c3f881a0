import type { Definition, Payload } from "../../domain/definition.ts";
import { freeGuards, slotGuard, slotsOf } from "../../domain/guard.ts";
import { followingAt, hearsMore, tellingOf } from "../../domain/planning/told-ends.ts";
import type { RuleFault } from "../../domain/recurrence/compile.ts";
import type { Instant } from "../../kernel/clock.ts";
import type { Uuid } from "../../kernel/ids.ts";
import type { Transaction } from "../../store/database.ts";
import { findSchedule, type ScheduleView } from "../../store/reads/schedules.ts";
import { writeAudit } from "../../store/rows/audit.ts";
import { findLastSettledBefore } from "../../store/rows/chains.ts";
import { setGuards, tellMore } from "../../store/rows/runs/live-marks.ts";
import { findWithOpenRuns, type LiveRun, lockEveryRunOf } from "../../store/rows/runs/live-runs.ts";
import { insertRevision, updateCursor, updateSchedule } from "../../store/rows/schedules.ts";
import { handOn, letGo } from "../attempts/hand-on.ts";
import type { Authority } from "../authority.ts";
import { findUnknownCalendar, keepCalendarUses } from "../calendars/use-calendars.ts";
import { lookAgain, refuse, transactOrRefuse } from "../refusal.ts";
import { type QuotaRefusal, refusalOfChange } from "../tenants/admit.ts";
import { auditedChange } from "./audited.ts";
import { dueAtOf, firstInstant } from "./next-instant.ts";
import { settleForGood } from "./settle-for-good.ts";
import {
  hearSchedule,
  lockTenantSchedule,
  type SettledSchedule,
  settleSchedule,
  unknownNext,
} from "./settled-schedule.ts";

export type ScheduleChange = {
  name?: string;
  labels?: Record<string, string>;
  notes?: string | null;
  managedBy?: string | null;
  definition?: Definition;
  payload?: Payload;
};

export type ReviseOutcome =
  | { kind: "revised"; schedule: ScheduleView; settled: number }
  | { kind: "conflict"; schedule: ScheduleView }
  | { kind: "not-found" }
  | QuotaRefusal
  | { kind: "infeasible" }
  | { kind: "invalid"; fault: RuleFault }
  | { kind: "unknown-calendar"; name: string };

/**
 * Makes the next revision, for instants that are not settled yet: what is due up to now keeps the old one.
 * Locks   schedule_cursor, schedule; what settling locks; every open run if the number of slots changes, or if the
 *         schedule is to hear of more ends.
 * Time    authority time, after the locks; the next instant is after it and after the last settled one.
 * Writes  what settling writes; schedule, schedule_revision, schedule_cursor, audit_event; guards if slots change, and which
 *         ends open runs tell of.
 * Replay  `conflict`: the revision that was expected is not the current one any more.
 */
export async function reviseSchedule(
  authority: Authority,
  request: {
    tenantId: Uuid;
    actor: string;
    scheduleId: Uuid;
    expectedRevision: number;
    change: ScheduleChange;
    isInfeasible?: boolean;
  },
): Promise<ReviseOutcome> {
  const { tenantId, actor, scheduleId, expectedRevision, change } = request;
  const outcome = await transactOrRefuse<ReviseOutcome>(authority, "revise-schedule", async (tx) => {
    const found = await lockTenantSchedule(tx, tenantId, scheduleId);
    if (found === undefined) refuse<ReviseOutcome>({ kind: "not-found" });
    const before = (await findSchedule(tx, tenantId, scheduleId))!;
    const locked = await hearSchedule(authority, tx, found);
    if (locked.schedule.revision !== expectedRevision) refuse<ReviseOutcome>({ kind: "conflict", schedule: before });

    const definition = change.definition ?? before.definition;
    if (request.isInfeasible === true) refuse<ReviseOutcome>({ kind: "infeasible" });
    const content = { definition, payload: change.payload ?? before.payload };
    const refused = await refusalOfChange(authority, tx, tenantId, content, before);
    if (refused !== undefined) refuse<ReviseOutcome>(refused);
    const now = await (instantsOf(before.definition) === instantsOf(definition)
      ? settleSchedule(authority, tx, locked)
      : settleForGood(authority, tx, locked));
    const { schedule, nowAt } = now;
    await askToBeTold(tx, scheduleId, before.definition, definition);
    const next = await planNext(authority, tx, now, before.definition, definition);
    if (!next.ok) refuse<ReviseOutcome>({ kind: "invalid", fault: next.fault });
    const unknown = await findUnknownCalendar(tx, tenantId, definition);
    if (unknown !== undefined) refuse<ReviseOutcome>({ kind: "unknown-calendar", name: unknown });

    const revision = schedule.revision + 1;
    const payload = change.payload ?? before.payload;
    await insertRevision(tx, { scheduleId, revision, actor, definition, payload }, nowAt);
    await keepCalendarUses(tx, { tenantId, scheduleId }, before.definition, definition);
    const fault = next.newChain ? undefined : unknownNext(now.cursor, now.cursor.fault_retry_at);
    const awaitsEnd = next.newChain ? next.awaitsEnd : now.cursor.awaits_end;
    const ended = next.nextRunAt === null && fault === undefined && !awaitsEnd;
    const status = schedule.status === "paused" ? "paused" : ended ? "finished" : "active";
    await updateSchedule(
      tx,
      {
        ...schedule,
        name: change.name ?? schedule.name,
        labels: change.labels ?? schedule.labels,
        notes: change.notes === undefined ? schedule.notes : change.notes,
        managed_by: change.managedBy === undefined ? schedule.managed_by : change.managedBy,
        status,
        revision,
      },
      nowAt,
    );
    await updateCursor(tx, {
      scheduleId,
      revision,
      nextRunAt: next.nextRunAt,
      nextDueAt: status === "active" ? dueAtOf(authority, scheduleId, definition, next.nextRunAt) : null,
      lastNominalAt: next.newChain ? null : now.cursor.last_nominal_at,
      chain: next.newChain ? { startedAt: nowAt, reason: "revised" } : undefined,
      tzVersion: next.newChain ? authority.tzVersion : now.cursor.tz_version,
      fault,
      awaitsEnd,
    });
    await fitGuards(tx, scheduleId, before.definition, definition, nowAt);
    const view = (await findSchedule(tx, tenantId, scheduleId))!;
    const sides = auditedChange(before, view);
    await writeAudit(tx, { tenantId, actor, action: "schedule.revise", subject: scheduleId, ...sides });
    return { kind: "revised", schedule: view, settled: now.settled.runs + now.settled.skips };
  });
  if (outcome.kind === "revised") {
    authority.signals.scheduleMoved(outcome.schedule.nextDueAt);
    authority.signals.outboxGrew(0);
  }
  return outcome;
}

/** What nominal instants are made of. */
function instantsOf(definition: Definition): string {
  return JSON.stringify([definition.rule, definition.startAt, definition.endAt, definition.maxRuns]);
}

/** An edit that does not touch what instants are made of leaves the cursor alone. */
async function planNext(
  authority: Authority,
  tx: Transaction,
  now: SettledSchedule,
  before: Definition,
  after: Definition,
): Promise<
  { ok: true; nextRunAt: Instant | null; newChain: boolean; awaitsEnd: boolean } | { ok: false; fault: RuleFault }
> {
  const { next_run_at: pendingAt, awaits_end } = now.cursor;
  if (instantsOf(before) === instantsOf(after)) {
    return { ok: true, nextRunAt: pendingAt, newChain: false, awaitsEnd: awaits_end };
  }
  // A chain without an instant yet comes after all that the one before has settled, though the clock was set back since.
  const lastNominalAt = now.cursor.last_nominal_at ?? (await findLastSettledBefore(tx, now.cursor.schedule_id));
  const fromAt = Math.max(now.nowAt, lastNominalAt ?? 0);
  const first = await firstInstant(authority, tx, after, fromAt);
  if (!first.ok) return first;
  const exhausted = after.maxRuns !== undefined && Number(now.cursor.runs_made) >= after.maxRuns;
  if (exhausted) return { ok: true, nextRunAt: null, newChain: true, awaitsEnd: false };
  if (after.rule.kind !== "afterCompletion") {
    return { ok: true, nextRunAt: first.nextRunAt, newChain: true, awaitsEnd: false };
  }
  // A run that ends right now shows as open, and then its end is still to be told of.
  if ((await findWithOpenRuns(tx, [now.cursor.schedule_id])).size > 0) {
    return { ok: true, nextRunAt: null, newChain: true, awaitsEnd: true };
  }
  // Another delay counts from the same end as the one before; a run that was waited for may have ended just now.
  const endedAt =
    before.rule.kind === "afterCompletion" && pendingAt !== null
      ? pendingAt - before.rule.delayMs
      : Math.max(fromAt, await tx.authorityNow());
  const following = followingAt(after, Math.max(endedAt, fromAt - after.rule.delayMs), lastNominalAt);
  const nextRunAt = following.kind === "at" ? Math.max(following.nextRunAt, Math.floor(fromAt) + 1) : null;
  return { ok: true, nextRunAt, newChain: true, awaitsEnd: false };
}

/** Open runs were born by the revision before: of what the schedule wants to hear from now on, they tell as well. */
async function askToBeTold(tx: Transaction, scheduleId: Uuid, before: Definition, after: Definition): Promise<void> {
  if (!hearsMore(before, after)) return;
  // Who ends a run reads under its lock what to tell.
  if ((await lockEveryRunOf(tx, scheduleId)) === undefined) lookAgain();
  await tellMore(tx, scheduleId, tellingOf(after));
}

type Seat = { id: Uuid; guard: Uuid };

/**
 * Fewer slots: surplus holders keep running under their own id and hand nothing on. More slots: the oldest blocked
 * runs get them.
 */
async function fitGuards(
  tx: Transaction,
  scheduleId: Uuid,
  before: Definition,
  after: Definition,
  nowAt: Instant,
): Promise<void> {
  const slots = slotsOf(after.overlap);
  if (slots === slotsOf(before.overlap)) return;
  const open = await lockEveryRunOf(tx, scheduleId);
  if (open === undefined) lookAgain();
  const holders = open.filter((run) => run.guard !== null);
  // What a failure holds waits for the resume, however many slots there are.
  const blocked = open.filter((run) => run.guard === null && run.held_by !== "pause");
  if (slots === Number.POSITIVE_INFINITY) {
    await setGuards(
      tx,
      holders.map((run) => ({ id: run.id, guard: run.id })),
    );
    // Each its own id: guards handed out in order could give one run the id of another.
    await letGo(
      tx,
      blocked.map((run) => ({ run, guard: run.id })),
      nowAt,
    );
    return;
  }
  const seats = seat(scheduleId, holders, slots);
  await setGuards(tx, seats.surplus);
  await setGuards(tx, seats.seated);
  const held = new Set(
    (await lockEveryRunOf(tx, scheduleId))!.flatMap((run) => (run.guard === null ? [] : [run.guard])),
  );
  const free = freeGuards(scheduleId, slots, held).slice(0, blocked.length);
  await handOn(
    tx,
    free.map((guard) => ({ scheduleId, guard })),
    nowAt,
  );
}

/**
 * The oldest holders take the slots; one that holds a slot already keeps it, the surplus hold their own ids. Surplus
 * come first: two rows never hold one guard, not even inside the transaction.
 */
function seat(scheduleId: Uuid, holders: readonly LiveRun[], slots: number): { surplus: Seat[]; seated: Seat[] } {
  const all = Array.from({ length: slots }, (_, k) => slotGuard(scheduleId, k));
  const oldest = holders.slice(0, slots);
  const kept = new Set(oldest.map((run) => run.guard!));
  const free = all.filter((guard) => !kept.has(guard));
  return {
    surplus: holders.slice(slots).map((run) => ({ id: run.id, guard: run.id })),
    seated: oldest.filter((run) => !all.includes(run.guard!)).map((run) => ({ id: run.id, guard: free.shift()! })),
  };
}
