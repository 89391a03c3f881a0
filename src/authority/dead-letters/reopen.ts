import { waitsItsTurn } from "../../domain/backfill.ts";
import { type LetterState, type ReplayRefusal, refusalOfReplay, standingOf } from "../../domain/dead-letters.ts";
import { concernOf, type OverlapPlan, planOverlap } from "../../domain/overlap.ts";
import type { RunState } from "../../domain/states.ts";
import type { Instant } from "../../kernel/clock.ts";
import { bug } from "../../kernel/errors.ts";
import type { Uuid } from "../../kernel/ids.ts";
import type { Transaction } from "../../store/database.ts";
import { type CursorRow, lockCursors } from "../../store/rows/cursors.ts";
import {
  type Decision,
  type GivenUpRun,
  type LetterKey,
  lockGivenUpRuns,
  lockLetters,
  reopenGivenUp,
  resolveLetters,
} from "../../store/rows/dead-letters.ts";
import { readFloor } from "../../store/rows/floor.ts";
import { type LiveRun, lockOpenRunsOf, openRunOf } from "../../store/rows/runs/live-runs.ts";
import { readRecordedStates } from "../../store/rows/runs/run-state.ts";
import { lockSchedules, type ScheduleRow } from "../../store/rows/schedules.ts";
import type { Authority } from "../authority.ts";
import { revisionOf } from "../revisions.ts";
import { bringBack } from "../runs/bring-back.ts";
import { hearEnds } from "../runs/hear-ends.ts";

export type Reopened =
  | { kind: "replayed"; state: "queued" | "blocked" }
  | { kind: Exclude<ReplayRefusal, "not-failed"> }
  | { kind: "not-failed"; state: RunState | "open" }
  /** Somebody is at the run, or its guard is changing hands: a new transaction has to look. */
  | { kind: "undecided" };

/** Everything a replay is decided by, as read under its locks. */
export type Graves = {
  cursors: ReadonlyMap<Uuid, CursorRow>;
  schedules: ReadonlyMap<Uuid, ScheduleRow>;
  open: ReadonlyMap<Uuid, LiveRun[]>;
  runs: ReadonlyMap<Uuid, GivenUpRun>;
  outcomes: Map<Uuid, Reopened>;
  nowAt: Instant;
};

/**
 * Locks what replays of these dead letters are decided by, and refuses those that cannot be: cursors, schedules, what
 * hearing of ends locks (a failure pauses first, however quickly somebody is there to replay it), guard holders and runs
 * that nobody else holds, letters. In the result, runs without an outcome may be opened by `reopen`. `failedAt`: which
 * failure of each run is meant, where it is a certain one.
 */
export async function lockGraves(
  authority: Authority,
  tx: Transaction,
  tenantId: Uuid,
  keys: readonly LetterKey[],
  replayable: readonly LetterState[],
  failedAt: ReadonlyMap<Uuid, Instant> = new Map(),
): Promise<Graves> {
  const ids = [...new Set(keys.flatMap((key) => key.schedule_id ?? []))].sort();
  const before = await lockCursors(tx, ids);
  const schedules = new Map((await lockSchedules(tx, ids)).map((row) => [row.id, row]));
  const { cursors } = await hearEnds(authority, tx, before);
  await authority.revisions.load(tx, cursors.map(revisionOf));
  const concerns = cursors.map((cursor) => ({
    scheduleId: cursor.schedule_id,
    concern: concernOf(overlapFor(authority, cursor)),
  }));
  const { open, undecided } = await lockOpenRunsOf(tx, concerns);
  const runs = await lockGivenUpRuns(tx, keys);
  // Only of runs that are locked: who ends a run holds its letter, and may be waiting for what we hold.
  const letters = await lockLetters(tx, tenantId, [...runs.keys()]);
  const recorded = await readRecordedStates(
    tx,
    keys.filter((key) => !runs.has(key.run_id)).map((key) => key.run_id),
  );
  const floorAt = await readFloor(tx);
  await authority.faults.reach("replay:locked");
  const nowAt = await tx.authorityNow();

  const outcomes = new Map<Uuid, Reopened>();
  for (const { run_id: id, scheduled_at: scheduledAt, schedule_id: scheduleId } of keys) {
    const run = runs.get(id);
    const isMoving = run === undefined ? recorded.has(id) : scheduleId !== null && undecided.has(scheduleId);
    if (run === undefined || isMoving) {
      // Of a run that is not on record any more only its letter is left: its partition is gone.
      outcomes.set(id, { kind: isMoving ? "undecided" : "history-removed" });
      continue;
    }
    const { state } = run;
    const scheduleStatus = scheduleId === null ? undefined : schedules.get(scheduleId)?.status;
    const view = { scheduledAt, state, letter: standingOf(letters.get(id), failedAt.get(id)), scheduleStatus };
    const refusal = refusalOfReplay(view, replayable, floorAt);
    if (refusal === "not-failed") outcomes.set(id, { kind: refusal, state });
    else if (refusal !== undefined) outcomes.set(id, { kind: refusal });
  }
  const known = new Map(cursors.map((cursor) => [cursor.schedule_id, cursor]));
  return { cursors: known, schedules, open, runs, outcomes, nowAt };
}

/**
 * Opens failed runs again: the same runs, with a fresh budget. Each waits its turn: a guard only where one is free and
 * nobody waits.
 */
export async function reopen(
  authority: Authority,
  tx: Transaction,
  graves: Graves,
  ids: readonly Uuid[],
  decision: Decision,
): Promise<void> {
  if (ids.length === 0) return;
  const { nowAt, outcomes } = graves;
  const given = ids.map((id) => graves.runs.get(id)!);
  const born = [...Map.groupBy(given, (run) => run.schedule_id).entries()].flatMap(([scheduleId, runs]) =>
    planGuards(authority, graves, scheduleId, runs),
  );
  const reopened = await reopenGivenUp(tx, given);
  if (reopened !== given.length) throw bug("a locked, failed run could not be opened", { reopened, of: given.length });
  await bringBack(
    authority,
    tx,
    born.map(({ birth, guard }) => ({ run: birth, guard })),
    graves.cursors,
    nowAt,
  );
  await resolveLetters(tx, ids, "replayed", decision, nowAt);
  for (const { birth, guard } of born) {
    outcomes.set(birth.id, { kind: "replayed", state: guard === null ? "blocked" : "queued" });
  }
  await authority.faults.reach("replay:written");
}

type Birth = GivenUpRun & { scheduledAt: Instant };

function planGuards(
  authority: Authority,
  graves: Graves,
  scheduleId: Uuid | null,
  runs: readonly GivenUpRun[],
): OverlapPlan<Birth>["born"] {
  const births = runs
    .map((run) => ({ ...run, scheduledAt: run.scheduled_at }))
    .toSorted((a, b) => a.scheduledAt - b.scheduledAt || (a.id < b.id ? -1 : 1));
  // An ad hoc run competes with nobody.
  if (scheduleId === null) return births.map((birth) => ({ birth, guard: birth.id }));
  const overlap = overlapFor(authority, graves.cursors.get(scheduleId)!);
  return planOverlap(scheduleId, overlap, (graves.open.get(scheduleId) ?? []).map(openRunOf), births).born;
}

/** Slots are those of the revision in force, as for every other birth. */
export function overlapFor(authority: Authority, cursor: CursorRow) {
  return waitsItsTurn(authority.revisions.get(revisionOf(cursor)).definition.overlap);
}
