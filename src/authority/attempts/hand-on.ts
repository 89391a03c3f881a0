import { groupIntoRows } from "../../domain/dispatch/hint-size.ts";
import type { Instant } from "../../kernel/clock.ts";
import type { Uuid } from "../../kernel/ids.ts";
import { sql, type Transaction } from "../../store/database.ts";
import { located } from "../../store/located.ts";
import { insertIntents, type OutboxRow } from "../../store/rows/outbox.ts";
import type { EndingRun, LiveRun } from "../../store/rows/runs/live-runs.ts";

/** A guard that its holder has let go of in this transaction. */
export type FreedSlot = { scheduleId: Uuid; guard: Uuid };

const LOCK_OLDEST_BLOCKED = sql(
  "hand_on_lock_oldest",
  `select b.*
     from unnest($1::uuid[], $2::int[]) as s (schedule_id, k)
    cross join lateral (
      select id, schedule_id, tenant_id, class, lane, not_before
        from live_run
       where schedule_id = s.schedule_id and state = 'blocked' and held_by <> 'pause'
       order by scheduled_at, id
       limit s.k
         for update) b`,
);
const GIVE_GUARDS = sql(
  "hand_on_give_guards",
  `update live_run l set state = 'queued', guard = g.guard
     from ${located("live_run", "$1::uuid[], $2::uuid[]", "id, guard")} g
    where l.ctid = g.place`,
);

type Sibling = Pick<LiveRun, "id" | "schedule_id" | "tenant_id" | "class" | "lane" | "not_before">;

/** The slots that these runs' guards were; a run that holds its own id competes with nobody and hands nothing on. */
export function slotsHeldBy(runs: readonly EndingRun[]): FreedSlot[] {
  return runs.flatMap((run) =>
    run.guard !== null && run.guard !== run.id && run.schedule_id !== null
      ? [{ scheduleId: run.schedule_id, guard: run.guard }]
      : [],
  );
}

/**
 * Gives freed guards to the oldest blocked siblings. The caller has deleted its own live rows in an earlier statement
 * of this transaction: in one statement the old and the new holder would collide in the unique index, and a plain
 * read before the update would lose the wake-up of a run born meanwhile. Waits for siblings that others hold.
 */
export async function handOn(tx: Transaction, freed: readonly FreedSlot[], nowAt: Instant): Promise<OutboxRow[]> {
  if (freed.length === 0) return [];
  const guards = new Map<Uuid, Uuid[]>();
  for (const slot of freed) guards.set(slot.scheduleId, [...(guards.get(slot.scheduleId) ?? []), slot.guard]);
  const schedules = [...guards.keys()].sort();
  const siblings = await tx.query<Sibling>(LOCK_OLDEST_BLOCKED, [
    schedules,
    schedules.map((id) => guards.get(id)!.length),
  ]);
  if (siblings.length === 0) return [];
  return letGo(
    tx,
    siblings.map((run) => ({ run, guard: guards.get(run.schedule_id!)!.shift()! })),
    nowAt,
  );
}

/** Lets blocked runs whose rows are locked go: each gets a guard that nobody holds, and is dispatched. */
export async function letGo(
  tx: Transaction,
  given: readonly { run: Sibling; guard: Uuid }[],
  nowAt: Instant,
): Promise<OutboxRow[]> {
  if (given.length === 0) return [];
  await tx.query(GIVE_GUARDS, [given.map((one) => one.run.id), given.map((one) => one.guard)]);
  const rows = groupIntoRows(
    given.map(({ run }) => ({
      id: run.id,
      tenantId: run.tenant_id,
      class: run.class,
      lane: run.lane,
      availableAt: Math.max(run.not_before, nowAt),
    })),
    () => 1,
  );
  return insertIntents(
    tx,
    rows.map((row) => ({ ...row, published: false })),
    nowAt,
  );
}
