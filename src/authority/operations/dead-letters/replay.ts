import { MOST_OPEN_RUNS, roomOfStep } from "../../../domain/backfill.ts";
import { REPLAYABLE_TOGETHER } from "../../../domain/dead-letters.ts";
import { countNames, type Tally } from "../../../domain/operation.ts";
import { showId, type Uuid } from "../../../kernel/ids.ts";
import type { Transaction } from "../../../store/database.ts";
import { type LetterKey, type LetterPlace, readLetterKeys } from "../../../store/rows/dead-letters.ts";
import { countOpenRuns } from "../../../store/rows/operations/backfill.ts";
import type { OperationRow } from "../../../store/rows/operations/operations.ts";
import type { Authority } from "../../authority.ts";
import { type Graves, lockGraves, overlapFor, reopen } from "../../dead-letters/reopen.ts";
import { lookAgain } from "../../refusal.ts";
import type { OperationKind, Step } from "../kind.ts";
import { walkOn } from "./walk.ts";

/** How long it waits for a schedule's open runs to become fewer. */
const WAIT_MS = 1_000;

/**
 * Many runs that were given up are opened again, oldest failure first.
 * Locks   as the replay of one run, of all the step's runs at once.
 * Time    authority time, after the locks.
 * Writes  as the replay of one run, but for the request key and the audit event: the operation has them.
 * Replay  a letter that is resolved is not found again.
 */
export const replay: OperationKind = {
  async step(authority, tx, operation, limit) {
    const pace = operation.pace_per_second ?? limit;
    const { meant, rest } = await walkOn(tx, operation, Math.min(limit, pace));
    const keys = await readLetterKeys(
      tx,
      operation.tenant_id,
      meant.map((one) => one.id),
    );
    const graves = await lockGraves(authority, tx, operation.tenant_id, keys, REPLAYABLE_TOGETHER);
    const taken = await takeInOrder(authority, tx, graves, { meant, keys, pace });
    if (taken.stop === "undecided" && taken.places.length === 0) lookAgain();
    const opened = taken.places.map((one) => one.id).filter((id) => !graves.outcomes.has(id));
    await reopen(authority, tx, graves, opened, {
      actor: operation.actor,
      reason: operation.reason,
      operationId: operation.id,
    });
    authority.metrics.replays.inc(opened.length);
    const tally = countNames(taken.places.map(({ id }) => graves.outcomes.get(id)?.kind ?? "not-found"));
    const done = { done: opened.length, failed: 0, tally, intends: opened.length > 0 };
    if (taken.stop === undefined) return { ...goOn(operation, rest), ...done };
    const cursor = taken.places.at(-1) ?? operation.cursor;
    if (taken.stop === "undecided") return { cursor, ...done };
    return { cursor, ...done, waitMs: WAIT_MS, message: taken.stop };
  },

  async passOver(_authority, tx, operation) {
    return passOverNext(tx, operation);
  },
};

/** Leaves the next letter that is meant as it is. */
export async function passOverNext(tx: Transaction, operation: OperationRow): Promise<Step> {
  const { meant, rest } = await walkOn(tx, operation, 1);
  const nothing: { done: number; tally: Tally; intends: boolean } = { done: 0, tally: {}, intends: false };
  return { ...goOn(operation, rest), ...nothing, failed: meant.length };
}

export function goOn(operation: OperationRow, rest: LetterPlace | undefined): Pick<Step, "cursor" | "end"> {
  return rest === undefined ? { cursor: operation.cursor, end: "done" } : { cursor: rest };
}

type Taken = {
  /** Those that are decided now, in the order of failures. */
  places: LetterPlace[];
  /** Why no more: a run that is moving, or what is waited for, in words. */
  stop: "undecided" | (string & {}) | undefined;
};

/**
 * As many as can be decided now without leaving one behind, and without more runs of a schedule waiting than the pace
 * makes in a second: its on-time runs would wait behind them.
 */
async function takeInOrder(
  authority: Authority,
  tx: Transaction,
  graves: Graves,
  { meant, keys, pace }: { meant: readonly LetterPlace[]; keys: readonly LetterKey[]; pace: number },
): Promise<Taken> {
  const scheduleOf = new Map(keys.map((key) => [key.run_id, key.schedule_id]));
  const rooms = new Map<Uuid, number>();
  const places: LetterPlace[] = [];
  for (const place of meant) {
    const outcome = graves.outcomes.get(place.id);
    if (outcome?.kind === "undecided") return { places, stop: "undecided" };
    const scheduleId = scheduleOf.get(place.id);
    if (outcome === undefined && scheduleId != null) {
      const room = rooms.get(scheduleId) ?? (await roomIn(authority, tx, graves, scheduleId, pace));
      if (room <= 0) return { places, stop: `it waits while many runs of ${showId("sch", scheduleId)} are open` };
      rooms.set(scheduleId, room - 1);
    }
    places.push(place);
  }
  return { places, stop: undefined };
}

async function roomIn(authority: Authority, tx: Transaction, graves: Graves, scheduleId: Uuid, pace: number) {
  const { open, blocked } = await countOpenRuns(tx, scheduleId, MOST_OPEN_RUNS);
  const overlap = overlapFor(authority, graves.cursors.get(scheduleId)!);
  return roomOfStep(overlap, pace, open, blocked, MOST_OPEN_RUNS);
}
