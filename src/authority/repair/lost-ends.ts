import type { Instant } from "../../kernel/clock.ts";
import type { Uuid } from "../../kernel/ids.ts";
import { sql } from "../../store/database.ts";
import { lockCursorsSkipping } from "../../store/rows/cursors.ts";
import type { Authority } from "../authority.ts";

/** One snapshot: who ends a run deletes its live row and leaves word in one transaction. */
const AWAITING = `c.awaits_end
      and not exists (select from live_run l where l.schedule_id = c.schedule_id)
      and not exists (select from outbox o
                       where o.kind = 'schedule' and o.published_at is null and o.schedule_id = c.schedule_id)`;
const FIND = sql("lost_ends_find", `select c.schedule_id from schedule_cursor c where ${AWAITING} limit $1`);
/**
 * The last end is looked for among the newest runs: a run of days long gone may have been replayed, and ended later. The word
 * names no run, so it pauses nothing: nobody knows any more which failures somebody has dealt with.
 */
const RESTORE = sql(
  "lost_ends_restore",
  `insert into outbox (kind, tenant_id, class, lane, available_at, runs, publish_no, schedule_id)
   select 'schedule', c.tenant_id, coalesce(r.class, 'short'), 1, coalesce(r.finished_at, clock_timestamp()),
          array[c.schedule_id], 0, c.schedule_id
     from schedule_cursor c
     left join lateral (
       select class, finished_at
         from (select class, finished_at from run
                where schedule_id = c.schedule_id order by scheduled_at desc, id desc limit 1000) newest
        order by finished_at desc nulls last limit 1) r on true
    where c.schedule_id = any($1::uuid[]) and ${AWAITING}
   returning schedule_id, available_at`,
);

/**
 * Tells schedules that await the end of a run, while none of theirs is open, of the last end there was: without it they
 * would never run again.
 * Locks   cursors, skipping what others hold; whether an end is still awaited is read after that.
 * Writes  outbox (kind `schedule`). Replay: nothing.
 */
export async function restoreLostEnds(authority: Authority, limit: number): Promise<number> {
  const ids = (await authority.db.query<{ schedule_id: Uuid }>(FIND, [limit])).map((row) => row.schedule_id);
  if (ids.length === 0) return 0;
  const restored = await authority.transact("restore-ends", async (tx) => {
    const locked = await lockCursorsSkipping(tx, ids);
    return tx.query<{ available_at: Instant }>(RESTORE, [locked.map((cursor) => cursor.schedule_id)]);
  });
  authority.metrics.repairs.inc({ kind: "lost-end" }, restored.length);
  if (restored.length > 0) authority.signals.scheduleMoved(0);
  return restored.length;
}
