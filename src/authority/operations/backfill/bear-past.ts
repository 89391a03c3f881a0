import { type RunVerdict, waitsItsTurn } from "../../../domain/backfill.ts";
import type { Definition } from "../../../domain/definition.ts";
import type { NewRun } from "../../../domain/materialization.ts";
import { concernOf, planOverlap } from "../../../domain/overlap.ts";
import { tellingOf } from "../../../domain/planning/told-ends.ts";
import { LANES } from "../../../domain/states.ts";
import type { Instant } from "../../../kernel/clock.ts";
import { deriveRunId } from "../../../kernel/ids.ts";
import type { Transaction } from "../../../store/database.ts";
import type { CursorRow } from "../../../store/rows/cursors.ts";
import { addBackfilled, carryAttempts, reopenSkips } from "../../../store/rows/operations/backfill.ts";
import { dropNames } from "../../../store/rows/outbox.ts";
import { insertRuns } from "../../../store/rows/runs/births.ts";
import { lockOpenRunsOf, openRunOf } from "../../../store/rows/runs/live-runs.ts";
import type { Authority } from "../../authority.ts";
import { lookAgain } from "../../refusal.ts";
import { bringToLife, leaveToRelay } from "../../runs/bear.ts";

/**
 * Past instants of a schedule whose cursor is locked become runs, in their order. They wait their turn: a guard only
 * where one is free and nobody waits. Their start deadlines are long past and do not count: somebody asked for them now.
 */
export async function bearPast(
  authority: Authority,
  tx: Transaction,
  cursor: CursorRow,
  definition: Definition,
  wanted: readonly RunVerdict[],
): Promise<void> {
  if (wanted.length === 0) return;
  const scheduleId = cursor.schedule_id;
  const overlap = waitsItsTurn(definition.overlap);
  const { open, undecided } = await lockOpenRunsOf(tx, [{ scheduleId, concern: concernOf(overlap) }]);
  if (undecided.size > 0) lookAgain();
  await authority.faults.reach("backfill:locked");
  const nowAt = await tx.authorityNow();

  const births = wanted.map((one) => ({
    ...one,
    id: deriveRunId(scheduleId, "schedule", one.at),
    scheduledAt: one.at,
  }));
  const seen = (open.get(scheduleId) ?? []).map(openRunOf);
  const runs = planOverlap(scheduleId, overlap, seen, births).born.map(
    ({ birth, guard }): NewRun => ({
      id: birth.id,
      scheduleId,
      tenantId: cursor.tenant_id,
      class: definition.class,
      lane: LANES.late,
      revision: cursor.revision,
      content: cursor.content,
      trigger: "backfill",
      scheduledAt: birth.at,
      dueAt: birth.dueAt,
      // It stands beside the chain of instants: the range around it is a link of that, or nothing is. A skip that is
      // opened again stays a link, since its row keeps what it names.
      prevScheduledAt: null,
      startDeadlineAt: null,
      heldBy: "replay",
      guard,
      ...tellingOf(definition),
    }),
  );
  const skips = births.filter((birth) => birth.was?.kind === "skip");
  const isSkip = new Set(skips.map((skip) => skip.id));
  const fresh = runs.filter((run) => !isSkip.has(run.id));
  const inserted = await insertRuns(tx, fresh, new Map(), nowAt);
  const work = { revision: cursor.revision, class: definition.class };
  const reopened = await reopenSkips(tx, skips, work, nowAt);
  // Whatever is not ours now has changed since it was read, and guards were planned for all: judge anew.
  if (inserted.size + reopened.length < runs.length) lookAgain();
  await dropNames(
    tx,
    cursor.tenant_id,
    births.filter(mayBeNamed).map((birth) => birth.id),
  );
  await bringToLife(tx, runs, new Map(), nowAt, leaveToRelay);
  await carryAttempts(
    tx,
    reopened.filter((run) => run.attempts > 0),
  );
  await addBackfilled(tx, scheduleId, countByRange(wanted));
  await authority.faults.reach("backfill:written");
}

/** Of a run that nobody started in time its outbox row may be left, which would name it a second time. */
function mayBeNamed({ was }: RunVerdict): boolean {
  return was?.kind === "skip" && was.reason === "start-deadline";
}

function countByRange(wanted: readonly RunVerdict[]): Map<Instant, number> {
  const counts = new Map<Instant, number>();
  for (const { was } of wanted) {
    if (was?.kind === "range") counts.set(was.fromAt, (counts.get(was.fromAt) ?? 0) + 1);
  }
  return counts;
}
