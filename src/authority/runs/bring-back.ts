import type { NewRun } from "../../domain/materialization.ts";
import { hasEffects, type Telling, tellingOf } from "../../domain/planning/told-ends.ts";
import { LANES, type Trigger } from "../../domain/states.ts";
import type { Instant } from "../../kernel/clock.ts";
import type { Uuid } from "../../kernel/ids.ts";
import type { Transaction } from "../../store/database.ts";
import type { CursorRow } from "../../store/rows/cursors.ts";
import { carryAttempts } from "../../store/rows/operations/backfill.ts";
import type { Authority } from "../authority.ts";
import { revisionOf } from "../revisions.ts";
import { bringToLife, leaveToRelay } from "./bear.ts";

/** As much of a run on record as its live row is made from again. */
export type ReturningRun = {
  id: Uuid;
  scheduled_at: Instant;
  schedule_id: Uuid | null;
  tenant_id: Uuid;
  class: string;
  revision: number | null;
  content: Uuid | null;
  trigger: Trigger;
  due_at: Instant;
  attempts: number;
  started_at: Instant | null;
  own_work: boolean;
  /** Its own job, which only an ad hoc run has, declares effects. */
  own_effects: boolean;
};

/**
 * Gives runs that stand open in history a live row again, each with its guard (null: it waits), of the revisions they were
 * made under; attempts are numbered on. The start deadline was kept or missed by the first start and does not count. Of their
 * ends they tell what their schedules, whose cursors are locked, want to hear of now.
 */
export async function bringBack(
  authority: Authority,
  tx: Transaction,
  returning: readonly { run: ReturningRun; guard: Uuid | null }[],
  cursors: ReadonlyMap<Uuid, CursorRow>,
  nowAt: Instant,
): Promise<void> {
  const given = returning.map((one) => one.run);
  await authority.revisions.load(tx, [...given.flatMap(keyOf), ...[...cursors.values()].map(revisionOf)]);
  const runs = returning.map(({ run, guard }) => ({ ...toNewRun(run, guard), ...telling(authority, run, cursors) }));
  const own = new Map(given.filter((run) => run.own_work).map((run) => [run.id, { job: null, payload: null }]));
  await bringToLife(tx, runs, own, nowAt, leaveToRelay);
  await carryAttempts(tx, given);
}

function keyOf({ schedule_id, revision, content }: ReturningRun) {
  return schedule_id === null || revision === null ? [] : [revisionOf({ schedule_id, revision, content })];
}

/** Effects are those of the run's own work; ends are told to the schedule as it is. */
function telling(authority: Authority, run: ReturningRun, cursors: ReadonlyMap<Uuid, CursorRow>): Partial<Telling> {
  const [key] = keyOf(run);
  if (key === undefined) return { hasEffects: run.own_effects };
  const cursor = cursors.get(key.scheduleId);
  return {
    ...(cursor === undefined ? {} : tellingOf(authority.revisions.get(revisionOf(cursor)).definition)),
    hasEffects: hasEffects(authority.revisions.get(key).definition),
  };
}

function toNewRun(run: ReturningRun, guard: Uuid | null): NewRun {
  return {
    id: run.id,
    scheduleId: run.schedule_id,
    tenantId: run.tenant_id,
    class: run.class,
    lane: LANES.late,
    revision: run.revision,
    content: run.content,
    trigger: run.trigger,
    scheduledAt: run.scheduled_at,
    dueAt: run.due_at,
    prevScheduledAt: null,
    startDeadlineAt: null,
    heldBy: "replay",
    guard,
  };
}
