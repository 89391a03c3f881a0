import { concernOf } from "../../domain/overlap.ts";
import type { Instant } from "../../kernel/clock.ts";
import { bug } from "../../kernel/errors.ts";
import type { Uuid } from "../../kernel/ids.ts";
import { sql, type Transaction } from "../../store/database.ts";
import {
  advanceCursors,
  type CursorRow,
  lockCursorsSkipping,
  setFaults,
  setScheduleStatus,
} from "../../store/rows/cursors.ts";
import type { OutboxRow } from "../../store/rows/outbox.ts";
import { insertRuns, insertSkipRanges, insertSkips } from "../../store/rows/runs/births.ts";
import { endRuns } from "../../store/rows/runs/endings.ts";
import { markCancelRequested } from "../../store/rows/runs/live-marks.ts";
import { type LiveRun, lockOpenRunsOf } from "../../store/rows/runs/live-runs.ts";
import type { Authority } from "../authority.ts";
import { loadPlacings } from "../calendars/placings.ts";
import { revisionOf } from "../revisions.ts";
import { localToRemember } from "../timezones/onward.ts";
import { planAnew } from "../timezones/replan.ts";
import { bringToLife, type DispatchPlan } from "./bear.ts";
import { hearEnds } from "./hear-ends.ts";
import { endingsOfWaiting } from "./making-way.ts";
import { type CursorPlan, FAULT_RETRY_MS, type MissedAnswer, planCursor } from "./plan-cursor.ts";

export type Settled = {
  runs: number;
  skips: number;
  /** Instants in these skips; null: a range is too long to have been counted yet. */
  skippedInstants: number | null;
  /** Schedules that could not be decided now: a run is moving in another transaction. Their cursors stand. */
  undecided: number;
  /** Schedules that this transaction had no budget left for. Their cursors stand. */
  unplanned: Uuid[];
  /** Whether a cursor that was planned is still due: its catch-up is longer than one plan. */
  stillDue: boolean;
  intents: OutboxRow[];
  nowAt: Instant;
  /** The authority's epoch, which the hints of these intents carry. */
  epoch: number;
};

export type Materialized = Settled & {
  /** Ends of runs that their schedules have heard of. */
  heard: number;
};

/** Births of one transaction: past this it plans no further cursor, so that it ends well before its deadline. */
const BIRTH_BUDGET = 3_000;

const READ_SETTING = sql(
  "materialize_read_setting",
  "select (select floor_at from history_floor) as floor_at, (select epoch from authority_epoch) as epoch",
);

/**
 * Turns due instants into runs and skips.
 * Locks   cursors, guard holders, waiting runs where a policy needs them; all skipping what others hold.
 * Time    authority time, after the locks.
 * Writes  run, live_run, skip_range, outbox, schedule_cursor; schedule where a rule has no further instant; what the
 *         ends of runs bring about that schedules were told of.
 * Replay  a cursor that has moved on is not due any more; the same instant gives the same run id.
 */
export async function materialize(
  authority: Authority,
  scheduleIds: readonly Uuid[],
  dispatch: DispatchPlan,
): Promise<Materialized> {
  const done = await authority.transact("materialize", async (tx) => {
    const { cursors, heard } = await hearEnds(authority, tx, await lockCursorsSkipping(tx, scheduleIds));
    return { ...(await settleLocked(authority, tx, cursors, dispatch)), heard };
  });
  authority.metrics.runsMaterialized.inc({ kind: "run" }, done.runs);
  authority.metrics.runsMaterialized.inc({ kind: "skip" }, done.skips);
  return done;
}

/**
 * What materialize does to cursors that are locked and have heard of their runs' ends. Edits, pauses, resumes and
 * deletes call it first, so that every nominal instant up to now is settled under the revision that was in force then.
 * It does not listen itself: who called has decided by what was heard, and a failure told since, which pauses the
 * schedule, would owe none of the instants that the caller goes on as if they were settled. It waits for the next look.
 */
export async function settleLocked(
  authority: Authority,
  tx: Transaction,
  locked: readonly CursorRow[],
  dispatch: DispatchPlan,
  missed: MissedAnswer = {},
): Promise<Settled> {
  await authority.faults.reach("materialize:cursors-locked");
  const cursors = await planAnew(authority, tx, locked);
  const revisions = cursors.map(revisionOf);
  await authority.revisions.load(tx, revisions);
  const { open, undecided } = await lockOpenRunsOf(
    tx,
    revisions.map((key) => ({
      scheduleId: key.scheduleId,
      concern: concernOf(authority.revisions.get(key).definition.overlap),
    })),
  );
  const nowAt = await tx.authorityNow();
  const setting = (await tx.query<{ floor_at: Instant | null; epoch: number }>(READ_SETTING))[0]!;
  const placings = await loadPlacings(authority, tx, cursors);
  const existing = new Set<Uuid>();
  const plan = (cursor: CursorRow) =>
    planCursor(authority, cursor, open.get(cursor.schedule_id) ?? [], nowAt, {
      floorAt: setting.floor_at ?? 0,
      existing,
      placings,
      ...missed,
    });

  const planned: Planned[] = [];
  const unplanned: Uuid[] = [];
  let births = 0;
  for (const cursor of cursors) {
    if (undecided.has(cursor.schedule_id)) continue;
    if (births >= BIRTH_BUDGET) {
      unplanned.push(cursor.schedule_id);
      continue;
    }
    let made = plan(cursor);
    while (made !== undefined && (await placings.learn(tx))) made = plan(cursor);
    if (made === undefined) continue;
    planned.push({ cursor, plan: made });
    births += made.runs.length;
  }
  const plans = await insertPlanned(tx, planned, existing, plan, nowAt);
  const intents = await writePlans(authority, tx, { plans, cursors, open }, nowAt, dispatch);
  await placings.record(tx);
  await setAside(authority, tx, cursors, plans, nowAt);
  const skips = plans.reduce((sum, one) => sum + one.skips.length + one.ranges.length, 0);
  const counts = plans.flatMap((one) => [one.skips.length, ...one.ranges.map((range) => range.instants)]);
  return {
    runs: plans.reduce((sum, one) => sum + one.runs.length, 0),
    skips,
    skippedInstants: counts.reduce((sum, n) => (sum === null || n === null ? null : sum + n), 0),
    undecided: undecided.size,
    unplanned,
    stillDue: plans.some((one) => one.next.dueAt !== null && one.next.dueAt <= nowAt),
    intents,
    nowAt,
    epoch: setting.epoch,
  };
}

type Planned = { cursor: CursorRow; plan: CursorPlan };

/**
 * Inserts the runs of all plans before anything that follows from them. A run may exist already (a cursor that was set
 * back walks its instants again), and then the guard it was to hold would block the next one behind nobody: such plans
 * are made anew, knowing what exists. Leaving births out never takes another's birth away, so what was inserted stays.
 */
async function insertPlanned(
  tx: Transaction,
  planned: readonly Planned[],
  existing: Set<Uuid>,
  plan: (cursor: CursorRow) => CursorPlan | undefined,
  nowAt: Instant,
): Promise<CursorPlan[]> {
  const born = new Set<Uuid>();
  for (;;) {
    const runs = planned.flatMap((one) => one.plan.runs).filter((run) => !born.has(run.id));
    for (const id of await insertRuns(tx, runs, new Map(), nowAt)) born.add(id);
    const known = existing.size;
    for (const run of runs) if (!born.has(run.id)) existing.add(run.id);
    if (existing.size === known) break;
    for (const one of planned) {
      if (one.plan.runs.some((run) => existing.has(run.id))) one.plan = plan(one.cursor) ?? one.plan;
    }
  }
  const plans = planned.map((one) => one.plan);
  const runs = plans.reduce((sum, one) => sum + one.runs.length, 0);
  if (runs !== born.size) throw bug("runs were inserted that no plan has", { runs, born: born.size });
  return plans;
}

async function writePlans(
  authority: Authority,
  tx: Transaction,
  settling: {
    plans: readonly CursorPlan[];
    cursors: readonly CursorRow[];
    open: ReadonlyMap<Uuid, readonly LiveRun[]>;
  },
  nowAt: Instant,
  dispatch: DispatchPlan,
): Promise<OutboxRow[]> {
  const { plans, cursors, open } = settling;
  if (plans.length === 0) return [];
  // First what makes way: its guards are given to the new runs below.
  await endRuns(
    tx,
    plans.flatMap((plan) => endingsOfWaiting(plan, open.get(plan.cursor.scheduleId) ?? [], nowAt)),
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
  const intents = await bringToLife(
    tx,
    plans.flatMap((plan) => plan.runs),
    new Map(),
    nowAt,
    dispatch,
  );
  const known = new Map(cursors.map((cursor) => [cursor.schedule_id, cursor]));
  // What still cannot be computed moves nothing: not even the local time that is remembered of its last instant.
  const moved = plans.filter(
    (plan) => plan.fault === undefined || plan.next.lastNominalAt !== (plan.cursor.lastNominalAt ?? null),
  );
  await advanceCursors(
    tx,
    moved.map((plan) => ({
      scheduleId: plan.cursor.scheduleId,
      nextRunAt: plan.next.runAt,
      nextDueAt: plan.next.dueAt,
      lastNominalAt: plan.next.lastNominalAt,
      lastNominalLocal: localToRemember(authority, known.get(plan.cursor.scheduleId)!, plan.next.lastNominalAt),
      runsMade: plan.next.runsMade,
      catchUp: plan.next.catchUp,
      awaitsEnd: plan.next.awaitsEnd ?? false,
    })),
    authority.tzVersion,
  );
  const finished = plans.filter((plan) => plan.finished).map((plan) => plan.cursor.scheduleId);
  await setScheduleStatus(tx, finished, "finished", nowAt);
  await authority.faults.reach("materialize:written");
  return intents;
}

/** Sets aside, visibly, the schedules whose rules cannot be computed; they are tried again by themselves. */
async function setAside(
  authority: Authority,
  tx: Transaction,
  cursors: readonly CursorRow[],
  plans: readonly CursorPlan[],
  nowAt: Instant,
): Promise<void> {
  const known = new Map(cursors.map((cursor) => [cursor.schedule_id, cursor.fault]));
  const faults = plans.flatMap(({ cursor: { scheduleId }, fault }) =>
    fault === undefined ? [] : [{ scheduleId, fault }],
  );
  await setFaults(tx, faults, nowAt + FAULT_RETRY_MS);
  for (const { scheduleId, fault } of faults) {
    if (known.get(scheduleId) === fault) continue;
    authority.log.error({ schedule: scheduleId, fault }, "a schedule's rule cannot be computed");
  }
}
