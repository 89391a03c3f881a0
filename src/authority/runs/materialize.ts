import type { Misfire } from "../../domain/definition.ts";
import { type MaterializationPlan, planMaterialization } from "../../domain/materialization.ts";
import { toLocal } from "../../domain/recurrence/local.ts";
import { nextAfter } from "../../domain/recurrence/next.ts";
import { zoneOf } from "../../domain/rule-zone.ts";
import type { SkipReason } from "../../domain/states.ts";
import type { Instant } from "../../kernel/clock.ts";
import { messageOf } from "../../kernel/errors.ts";
import type { Uuid } from "../../kernel/ids.ts";
import { sql, type Transaction } from "../../store/database.ts";
import { insertSkipRanges, insertSkips } from "../../store/rows/births.ts";
import {
  advanceCursors,
  type CursorRow,
  lockCursorsSkipping,
  setFault,
  setScheduleStatus,
} from "../../store/rows/cursors.ts";
import { type Ending, endRuns } from "../../store/rows/endings.ts";
import { markCancelRequested } from "../../store/rows/live-marks.ts";
import { type LiveRun, lockOpenRunsOf, lockWaitingRunsOf } from "../../store/rows/live-runs.ts";
import type { OutboxRow } from "../../store/rows/outbox.ts";
import type { Authority } from "../authority.ts";
import { bearRuns, type DispatchPlan } from "./bear.ts";
import { endingOfWaiting } from "./making-way.ts";

export type Materialized = {
  runs: number;
  skips: number;
  /** Schedules that could not be decided now: a holder is ending in another transaction. Their cursors stand. */
  undecided: number;
  intents: OutboxRow[];
  nowAt: Instant;
  /** The authority's epoch, which the hints of these intents carry. */
  epoch: number;
};

/** What to do about instants missed for a known cause, where it is not the schedule's own misfire policy. */
export type MissedAnswer = { misfire?: Partial<Misfire>; reason?: SkipReason };

const FAULT_RETRY_MS = 60_000;

const READ_SETTING = sql(
  "materialize_read_setting",
  "select (select floor_at from history_floor) as floor_at, (select epoch from authority_epoch) as epoch",
);

/**
 * Turns due instants into runs and skips.
 * Locks   cursors (skipping what others hold), guard holders (skipping), waiting runs where a policy needs them.
 * Time    authority time, after the locks.
 * Writes  run, live_run, skip_range, outbox, schedule_cursor; schedule where a rule has no further instant.
 * Replay  a cursor that has moved on is not due any more; the same instant gives the same run id.
 */
export async function materialize(
  authority: Authority,
  scheduleIds: readonly Uuid[],
  dispatch: DispatchPlan,
): Promise<Materialized> {
  const done = await authority.transact("materialize", async (tx) => {
    const cursors = await lockCursorsSkipping(tx, scheduleIds);
    return settleLocked(authority, tx, cursors, dispatch);
  });
  authority.metrics.runsMaterialized.inc({ kind: "run" }, done.runs);
  authority.metrics.runsMaterialized.inc({ kind: "skip" }, done.skips);
  return done;
}

/**
 * What materialize does to cursors that are locked already. Edits, pauses, resumes and deletes call it first, so that
 * every nominal instant up to now is settled under the revision that was in force then.
 */
export async function settleLocked(
  authority: Authority,
  tx: Transaction,
  cursors: readonly CursorRow[],
  dispatch: DispatchPlan,
  missed: MissedAnswer = {},
): Promise<Materialized> {
  await authority.faults.reach("materialize:cursors-locked");
  const { open, undecided } = await lockOpenRunsOf(
    tx,
    cursors.map((cursor) => cursor.schedule_id),
  );
  await authority.revisions.load(
    tx,
    cursors.map((cursor) => ({ scheduleId: cursor.schedule_id, revision: cursor.revision })),
  );
  await lockWaiting(
    authority,
    tx,
    cursors.filter((cursor) => !undecided.has(cursor.schedule_id)),
    open,
  );
  const nowAt = await tx.authorityNow();
  const setting = (await tx.query<{ floor_at: Instant | null; epoch: number }>(READ_SETTING))[0]!;
  const floorAt = setting.floor_at ?? 0;

  const plans: MaterializationPlan[] = [];
  let left = 0;
  for (const cursor of cursors) {
    if (undecided.has(cursor.schedule_id)) left++;
    else {
      const plan = await planOne(authority, tx, cursor, open.get(cursor.schedule_id) ?? [], nowAt, {
        floorAt,
        ...missed,
      });
      if (plan !== undefined) plans.push(plan);
    }
  }
  const intents = await writePlans(authority, tx, plans, open, nowAt, dispatch);
  const skips = plans.reduce((sum, plan) => sum + plan.skips.length + plan.ranges.length, 0);
  return {
    runs: plans.reduce((sum, plan) => sum + plan.runs.length, 0),
    skips,
    undecided: left,
    intents,
    nowAt,
    epoch: setting.epoch,
  };
}

/** Policies that let a newer run replace a waiting one need that one locked too. */
async function lockWaiting(
  authority: Authority,
  tx: Transaction,
  cursors: readonly CursorRow[],
  open: Map<Uuid, LiveRun[]>,
): Promise<void> {
  const replacing = cursors.filter((cursor) => {
    const { overlap } = authority.revisions.get({
      scheduleId: cursor.schedule_id,
      revision: cursor.revision,
    }).definition;
    const waits = open.get(cursor.schedule_id)?.some((run) => run.guard === null) ?? false;
    return waits && (overlap.policy === "bufferOne" || overlap.policy === "cancelRunning");
  });
  if (replacing.length === 0) return;
  const waiting = await lockWaitingRunsOf(
    tx,
    replacing.map((cursor) => cursor.schedule_id),
  );
  const still = new Set(waiting.map((run) => run.id));
  // A waiter that was canceled while we waited for its lock is gone.
  for (const cursor of replacing) {
    const runs = open.get(cursor.schedule_id) ?? [];
    open.set(
      cursor.schedule_id,
      runs.filter((run) => run.guard !== null || still.has(run.id)),
    );
  }
}

async function planOne(
  authority: Authority,
  tx: Transaction,
  cursor: CursorRow,
  open: readonly LiveRun[],
  nowAt: Instant,
  options: { floorAt: Instant } & MissedAnswer,
): Promise<MaterializationPlan | undefined> {
  if (cursor.next_run_at === null || cursor.next_run_at > nowAt) return undefined;
  if (cursor.next_due_at === null && cursor.fault === null) return undefined;
  const { definition } = authority.revisions.get({ scheduleId: cursor.schedule_id, revision: cursor.revision });
  const compiled = authority.revisions.rule(definition);
  if (!compiled.ok) return fault(authority, tx, cursor, compiled.fault.message, nowAt);
  const view = {
    scheduleId: cursor.schedule_id,
    tenantId: cursor.tenant_id,
    revision: cursor.revision,
    nextRunAt: cursor.next_run_at,
    nextDueAt: cursor.next_due_at ?? cursor.next_run_at,
    lastNominalAt: cursor.last_nominal_at ?? undefined,
    runsMade: Number(cursor.runs_made),
  };
  try {
    return planMaterialization(
      view,
      { ...definition, misfire: { ...definition.misfire, ...options.misfire } },
      (at) => nextAfter(compiled.rule, at),
      open.map((run) => ({ id: run.id, scheduledAt: run.scheduled_at, state: run.state, guard: run.guard })),
      nowAt,
      { floorAt: options.floorAt, missedReason: options.reason ?? "misfire" },
    );
  } catch (error) {
    // One rule that throws must not stop everybody else's instants.
    return fault(authority, tx, cursor, messageOf(error), nowAt);
  }
}

/** Sets one schedule aside, visibly; it is tried again by itself. */
async function fault(
  authority: Authority,
  tx: Transaction,
  cursor: CursorRow,
  message: string,
  nowAt: Instant,
): Promise<undefined> {
  await setFault(tx, cursor.schedule_id, message, nowAt + FAULT_RETRY_MS);
  authority.log.error({ schedule: cursor.schedule_id, fault: message }, "a schedule's rule cannot be computed");
}

async function writePlans(
  authority: Authority,
  tx: Transaction,
  plans: readonly MaterializationPlan[],
  open: ReadonlyMap<Uuid, readonly LiveRun[]>,
  nowAt: Instant,
  dispatch: DispatchPlan,
): Promise<OutboxRow[]> {
  if (plans.length === 0) return [];
  // First what makes way: its guards are given to the new runs below.
  await endRuns(
    tx,
    plans.flatMap((plan) => makingWay(plan, open.get(plan.cursor.scheduleId) ?? [], nowAt)),
    nowAt,
  );
  await markCancelRequested(
    tx,
    plans.flatMap((plan) => plan.cancelRequested),
    nowAt,
  );
  await insertSkips(
    tx,
    plans.flatMap((plan) => plan.skips),
    nowAt,
  );
  await insertSkipRanges(
    tx,
    plans.flatMap((plan) => plan.ranges),
    nowAt,
  );
  const { intents } = await bearRuns(
    tx,
    plans.flatMap((plan) => plan.runs),
    new Map(),
    nowAt,
    dispatch,
  );
  await advanceCursors(
    tx,
    plans.map((plan) => ({
      scheduleId: plan.cursor.scheduleId,
      nextRunAt: plan.next.runAt,
      nextDueAt: plan.next.dueAt,
      lastNominalAt: plan.next.lastNominalAt,
      lastNominalLocal: localOf(authority, plan),
      runsMade: plan.next.runsMade,
    })),
  );
  const finished = plans.filter((plan) => plan.finished).map((plan) => plan.cursor.scheduleId);
  await setScheduleStatus(tx, finished, "finished", nowAt);
  await authority.faults.reach("materialize:written");
  return intents;
}

function makingWay(plan: MaterializationPlan, open: readonly LiveRun[], nowAt: Instant): Ending[] {
  const find = (id: Uuid) => open.find((one) => one.id === id)!;
  return [
    ...plan.superseded.map((id) => endingOfWaiting(find(id), "skipped", nowAt)),
    ...plan.canceled.map((id) => endingOfWaiting(find(id), "canceled", nowAt)),
  ];
}

/** The nominal local time is kept, so that a change of tz data neither doubles nor loses a local appointment. */
function localOf(authority: Authority, plan: MaterializationPlan): string | null {
  const at = plan.next.lastNominalAt;
  if (at === null) return null;
  const { definition } = authority.revisions.get(plan.cursor);
  const zone = zoneOf(definition.rule);
  return zone === undefined ? null : toLocal(zone, at, authority.zones);
}
