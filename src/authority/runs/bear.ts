import { type Dispatchable, groupIntoRows, type IntentRow } from "../../domain/dispatch/hint-size.ts";
import type { NewRun } from "../../domain/materialization.ts";
import type { Instant } from "../../kernel/clock.ts";
import { bug } from "../../kernel/errors.ts";
import type { Uuid } from "../../kernel/ids.ts";
import type { Transaction } from "../../store/database.ts";
import { insertIntents, type OutboxRow } from "../../store/rows/outbox.ts";
import { insertLiveRuns, insertRuns, type OwnWork } from "../../store/rows/runs/births.ts";

/** How new runs are to be dispatched; the scanner knows the windows, everybody else leaves it to the relay. */
export type DispatchPlan = {
  sizeOf(tenantId: Uuid, class_: string): number;
  /** Whether a row fits its tenant's window right now, so that it may be born as published. */
  publishNow(row: IntentRow): boolean;
};

export const leaveToRelay: DispatchPlan = { sizeOf: () => 1, publishNow: () => false };

/**
 * Writes runs that nobody can have written before (their ids were minted), with everything that makes them go. The
 * relay dispatches them.
 */
export async function bearRuns(
  tx: Transaction,
  runs: readonly NewRun[],
  own: ReadonlyMap<Uuid, OwnWork>,
  nowAt: Instant,
): Promise<OutboxRow[]> {
  const born = await insertRuns(tx, runs, own, nowAt);
  if (born.size < runs.length) throw bug("a minted run existed already", { runs: runs.length, born: born.size });
  return bringToLife(tx, runs, own, nowAt, leaveToRelay);
}

/** Writes the live rows of runs that this transaction has inserted, and the intents to dispatch those with a guard. */
export async function bringToLife(
  tx: Transaction,
  runs: readonly NewRun[],
  own: ReadonlyMap<Uuid, OwnWork>,
  nowAt: Instant,
  dispatch: DispatchPlan,
): Promise<OutboxRow[]> {
  if (runs.length === 0) return [];
  await insertLiveRuns(tx, runs, own, nowAt);
  const rows = groupIntoRows(runs.filter((run) => run.guard !== null).map(toDispatchable), dispatch.sizeOf);
  return insertIntents(
    tx,
    // What a calendar has moved to another day is not for today's queues.
    rows.map((row) => ({ ...row, published: row.availableAt <= nowAt && dispatch.publishNow(row) })),
    nowAt,
  );
}

function toDispatchable(run: NewRun): Dispatchable {
  return { id: run.id, tenantId: run.tenantId, class: run.class, lane: run.lane, availableAt: run.dueAt };
}
