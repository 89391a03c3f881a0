import type { Overlap } from "../../domain/definition.ts";
import { freeGuards, slotsOf } from "../../domain/guard.ts";
import type { Instant } from "../../kernel/clock.ts";
import type { Uuid } from "../../kernel/ids.ts";
import { sql, type Transaction } from "../../store/database.ts";
import type { OutboxRow } from "../../store/rows/outbox.ts";
import type { LiveRun } from "../../store/rows/runs/live-runs.ts";
import { handOn, letGo } from "./hand-on.ts";

/** What waits in a schedule whose cursor is locked: only who holds that may free or hold guards without having had one. */

const HOLD = sql(
  "waiting_hold",
  `with waiting as (select id from live_run where schedule_id = $1 and state = 'blocked' and held_by <> 'pause'
                     order by scheduled_at, id for update)
   update live_run l set held_by = 'pause' from waiting w where l.id = w.id`,
);
// What a person asked for waits as that again: nothing takes its place (domain/overlap.ts). A run that waits and was tried
// before is a replayed one: nothing else goes back behind others.
const RELEASE = sql(
  "waiting_release",
  `with held as (select id from live_run where schedule_id = $1 and state = 'blocked' and held_by = 'pause'
                  order by scheduled_at, id for update)
   update live_run l
      set held_by = case when l.attempt > 0
                           or exists (select from run r where r.scheduled_at = l.scheduled_at and r.id = l.id
                                                          and r.trigger = 'backfill') then 'replay' else 'overlap' end
     from held h where l.id = h.id`,
);
const READ_GUARDS = sql(
  "waiting_read_guards",
  "select guard from live_run where schedule_id = $1 and guard is not null",
);
const LOCK_BLOCKED = sql(
  "waiting_lock_blocked",
  `select id, schedule_id, tenant_id, class, lane, not_before from live_run
    where schedule_id = $1 and state = 'blocked' and held_by <> 'pause' order by scheduled_at, id for update`,
);

/** Holds whatever waits until the schedule is resumed: no guard is handed on to it. Answers how many runs that are. */
export async function holdWaiting(tx: Transaction, scheduleId: Uuid): Promise<number> {
  await tx.query(HOLD, [scheduleId]);
  const held = await tx.query<{ n: number }>(COUNT_HELD, [scheduleId]);
  return held[0]!.n;
}
const COUNT_HELD = sql(
  "waiting_count_held",
  "select count(*)::int as n from live_run where schedule_id = $1 and state = 'blocked' and held_by = 'pause'",
);

/** Lets go what a failure has held, the oldest first, as far as there are guards. */
export async function releaseWaiting(
  tx: Transaction,
  scheduleId: Uuid,
  overlap: Overlap,
  nowAt: Instant,
): Promise<OutboxRow[]> {
  await tx.query(RELEASE, [scheduleId]);
  return fillFreeGuards(tx, scheduleId, overlap, nowAt);
}

/**
 * Gives guards that nobody holds to the oldest that wait. A plain read decides: under the schedule's lock guards only move
 * from one holder to the next, in one transaction, so that any snapshot shows each of them held.
 */
export async function fillFreeGuards(
  tx: Transaction,
  scheduleId: Uuid,
  overlap: Overlap,
  nowAt: Instant,
): Promise<OutboxRow[]> {
  const slots = slotsOf(overlap);
  if (slots === Number.POSITIVE_INFINITY) {
    const blocked = await tx.query<Pick<LiveRun, "id" | "schedule_id" | "tenant_id" | "class" | "lane" | "not_before">>(
      LOCK_BLOCKED,
      [scheduleId],
    );
    return letGo(
      tx,
      blocked.map((run) => ({ run, guard: run.id })),
      nowAt,
    );
  }
  const held = new Set((await tx.query<{ guard: Uuid }>(READ_GUARDS, [scheduleId])).map((row) => row.guard));
  // Holders of their own ids are surplus from an edit: they take no slot.
  const free = freeGuards(scheduleId, slots, held);
  return handOn(
    tx,
    free.map((guard) => ({ scheduleId, guard })),
    nowAt,
  );
}
