import {
  type BackfillPolicy,
  MOST_OPEN_RUNS,
  type RunVerdict,
  roomOfStep,
  takeVerdicts,
  type Verdict,
} from "../../../domain/backfill.ts";
import type { Definition } from "../../../domain/definition.ts";
import type { Instant } from "../../../kernel/clock.ts";
import type { Transaction } from "../../../store/database.ts";
import type { CursorRow } from "../../../store/rows/cursors.ts";
import { readFloor } from "../../../store/rows/floor.ts";
import { countOpenRuns } from "../../../store/rows/operations/backfill.ts";
import type { OperationRow } from "../../../store/rows/operations/operations.ts";
import type { Authority } from "../../authority.ts";
import { hearEnds } from "../../runs/hear-ends.ts";
import { lockScheduleOrDeleted } from "../../schedules/settled-schedule.ts";
import { countRequested, lockRoomForRuns } from "../../tenants/admit.ts";
import { waitForQuota } from "../begin.ts";
import { NOTHING_DONE, type OperationKind, type Step } from "../kind.ts";
import { bearPast } from "./bear-past.ts";
import { judgePast, tallyOf, undecidedFrom, walkOf } from "./past.ts";

/** Instants one step looks at, however few of them become runs: a multiple of what it may make, within these bounds. */
const LEAST_WALK = 100;
const MOST_WALK = 500;
/** How long a backfill waits for the schedule's open runs to become fewer. */
const WAIT_MS = 1_000;
/** How long it waits for a resume before it looks again. */
const HELD_WAIT_MS = 5_000;

export type BackfillArguments = { from: Instant; to: Instant; policy: BackfillPolicy };

/**
 * Past instants of a schedule become runs, of the revision in force at each step.
 * Locks   tenant_quota, where it limits runs; schedule_cursor, schedule; what hearing of ends locks; guard holders, skipping what others hold.
 * Time    authority time, after the locks.
 * Writes  run (new, or a skip opened again), live_run, outbox, skip_range (how many of its instants have become runs),
 *         tenant_day.
 * Replay  an instant that has a run is left alone.
 */
export const backfill: OperationKind = {
  async step(authority, tx, operation, limit) {
    const pace = operation.pace_per_second ?? limit;
    const walk = Math.min(MOST_WALK, Math.max(LEAST_WALK, 2 * Math.min(limit, pace)));
    const quota = await lockRoomForRuns(tx, operation.tenant_id);
    const past = await lookBack(authority, tx, operation, walk);
    if (past === "deleted") return scheduleIsDeleted;
    if (past === "held") return heldByFailure(operation);
    const { definition, cursor, verdicts, restAt } = past;
    const { open, blocked, held } = await countOpenRuns(tx, cursor.schedule_id, MOST_OPEN_RUNS);
    const room = roomOfStep(definition.overlap, pace, open, blocked, Math.min(limit, quota.most));
    const { taken, leftAt } = takeVerdicts(verdicts, room);
    const runs = taken.filter((one): one is RunVerdict => one.kind === "run");
    await bearPast(authority, tx, cursor, definition, runs);
    await countRequested(tx, operation.tenant_id, quota, runs.length);
    return {
      ...goOn(operation, leftAt ?? restAt),
      done: runs.length,
      failed: 0,
      tally: tallyOf(taken),
      intends: runs.length > 0,
      // What needs no room is done without it: a range whose last runs took up a quota ends, and waits for none.
      ...(leftAt === undefined || room > 0
        ? {}
        : quota.most < 1
          ? waitForQuota(quota.excess!)
          : waitForRuns(open, blocked, held)),
    };
  },

  async passOver(authority, tx, operation) {
    const past = await lookBack(authority, tx, operation, LEAST_WALK);
    if (past === "deleted") return scheduleIsDeleted;
    if (past === "held") return heldByFailure(operation);
    const { verdicts, restAt } = past;
    const { taken, leftAt } = takeVerdicts(verdicts, 0);
    const failed = leftAt === undefined ? 0 : 1;
    const goOnAt = leftAt === undefined ? restAt : (verdicts[taken.length + 1]?.at ?? restAt);
    return { ...goOn(operation, goOnAt), done: 0, failed, tally: tallyOf(taken), intends: false };
  },
};

const scheduleIsDeleted: Step = {
  cursor: null,
  ...NOTHING_DONE,
  end: "failed",
  message: "the schedule was deleted",
};

function waitForRuns(open: number, blocked: number, held: number): Pick<Step, "waitMs" | "message"> {
  const message =
    `it waits while ${open} runs of the schedule are open, ${blocked} of them blocked` +
    (held === 0 ? "" : `, and ${held} held since a failure until the schedule is resumed`);
  return { waitMs: WAIT_MS, message };
}

/** Under pauseOnFailure nothing more may fail until somebody has looked, past instants least of all. */
function heldByFailure({ cursor }: OperationRow): Step {
  const message =
    "it waits until the schedule is resumed, since a failure may have paused it (pauseOnFailure); or cancel it";
  return { cursor, ...NOTHING_DONE, waitMs: HELD_WAIT_MS, message };
}

function goOn(operation: OperationRow, at: Instant | null): Pick<Step, "cursor" | "end"> {
  const { to } = operation.arguments as BackfillArguments;
  return at === null ? { cursor: { at: to }, end: "done" } : { cursor: { at } };
}

type Past = { definition: Definition; cursor: CursorRow; verdicts: Verdict[]; restAt: Instant | null };

/** The schedule under its lock, and what is to become of its next past instants. */
async function lookBack(
  authority: Authority,
  tx: Transaction,
  operation: OperationRow,
  limit: number,
): Promise<Past | "deleted" | "held"> {
  const { from, to, policy } = operation.arguments as BackfillArguments;
  const lock = () => lockScheduleOrDeleted(tx, operation.tenant_id, operation.schedule_id!);
  let locked = await lock();
  if (locked === undefined) return "deleted";
  // A failure that the schedule was told of and has not heard of yet pauses it first.
  if ((await hearEnds(authority, tx, [locked.cursor])).heard > 0) locked = (await lock())!;
  const { cursor, schedule } = locked;
  if (schedule.status === "deleted") return "deleted";
  const walk = await walkOf(authority, tx, cursor, policy);
  if (schedule.status === "paused" && walk.definition.pauseOnFailure) return "held";
  // History may have been cut meanwhile, and a cursor set back: what it has before it is materialize's.
  const floorAt = Math.ceil(await readFloor(tx));
  const fromAt = Math.max((operation.cursor as { at: Instant } | null)?.at ?? from, floorAt);
  const toAt = Math.min(to, cursor.next_run_at ?? undecidedFrom(schedule.status, cursor) ?? to);
  const { verdicts, restAt } = await judgePast(authority, tx, walk, fromAt, toAt, limit);
  return { definition: walk.definition, cursor, verdicts, restAt };
}
