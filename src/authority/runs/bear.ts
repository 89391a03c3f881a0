import { type Dispatchable, groupIntoRows, type IntentRow } from "../../domain/hint-size.ts";
import type { NewRun } from "../../domain/materialization.ts";
import type { Instant } from "../../kernel/clock.ts";
import type { Uuid } from "../../kernel/ids.ts";
import type { Transaction } from "../../store/database.ts";
import { insertLiveRuns, insertRuns, type OwnWork } from "../../store/rows/births.ts";
import { insertIntents, type OutboxRow } from "../../store/rows/outbox.ts";

/** How new runs are to be dispatched; the scanner knows the windows, everybody else leaves it to the relay. */
export type DispatchPlan = {
  sizeOf(tenantId: Uuid, class_: string): number;
  /** Whether a row fits its tenant's window right now, so that it may be born as published. */
  publishNow(row: IntentRow): boolean;
};

export const leaveToRelay: DispatchPlan = { sizeOf: () => 1, publishNow: () => false };

/**
 * Writes runs with their live rows and the intents to dispatch those that hold a guard. Live and outbox rows are
 * written only for runs that this insert created: a run that existed already has its own story.
 */
export async function bearRuns(
  tx: Transaction,
  runs: readonly NewRun[],
  own: ReadonlyMap<Uuid, OwnWork>,
  nowAt: Instant,
  dispatch: DispatchPlan,
): Promise<{ born: Set<Uuid>; intents: OutboxRow[] }> {
  if (runs.length === 0) return { born: new Set(), intents: [] };
  const born = await insertRuns(tx, runs, own, nowAt);
  const fresh = runs.filter((run) => born.has(run.id));
  if (fresh.length === 0) return { born, intents: [] };
  await insertLiveRuns(tx, fresh, own, nowAt);
  const rows = groupIntoRows(fresh.filter((run) => run.guard !== null).map(toDispatchable), dispatch.sizeOf);
  const intents = await insertIntents(
    tx,
    rows.map((row) => ({ ...row, published: dispatch.publishNow(row) })),
    nowAt,
  );
  return { born, intents };
}

function toDispatchable(run: NewRun): Dispatchable {
  return { id: run.id, tenantId: run.tenantId, class: run.class, lane: run.lane, availableAt: run.dueAt };
}
