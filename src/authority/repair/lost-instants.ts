import type { Uuid } from "../../kernel/ids.ts";
import { sql } from "../../store/database.ts";
import { lockCursorsSkipping } from "../../store/rows/cursors.ts";
import type { Authority } from "../authority.ts";

const LOST = `s.status = 'active' and c.next_due_at is null and c.fault is null and not c.awaits_end`;
const FIND = sql(
  "lost_instants_find",
  `select c.schedule_id from schedule_cursor c join schedule s on s.id = c.schedule_id where ${LOST} limit $1`,
);
/** A schedule that goes on after completion waits for an end; of any other the rule says what comes next. */
const FLAG = sql(
  "lost_instants_flag",
  `update schedule_cursor c
      set awaits_end = w.awaits, fault = case when not w.awaits then 'the next instant was lost and is computed anew' end,
          fault_retry_at = case when not w.awaits then clock_timestamp() end
     from (select c.schedule_id, c.next_run_at is null and v.definition -> 'rule' ->> 'kind' = 'afterCompletion' as awaits
             from schedule_cursor c join schedule s on s.id = c.schedule_id
             join schedule_revision v on v.schedule_id = c.schedule_id and v.revision = c.revision
            where c.schedule_id = any($1::uuid[]) and ${LOST}) w
    where c.schedule_id = w.schedule_id
   returning c.schedule_id`,
);

/**
 * Has the next instant computed anew of active schedules that do not know one and do not say why: the scanner would never
 * look at them again. They are flagged as having a fault, which is tried again at once, from the last settled instant on.
 * Locks   cursors, skipping what others hold; whether it is still lost is read after that.
 * Writes  schedule_cursor. Replay: nothing.
 */
export async function findLostInstants(authority: Authority, limit: number): Promise<number> {
  const ids = (await authority.db.query<{ schedule_id: Uuid }>(FIND, [limit])).map((row) => row.schedule_id);
  if (ids.length === 0) return 0;
  const flagged = await authority.transact("find-instants", async (tx) => {
    const locked = await lockCursorsSkipping(tx, ids);
    return tx.query(FLAG, [locked.map((cursor) => cursor.schedule_id)]);
  });
  authority.metrics.repairs.inc({ kind: "lost-instant" }, flagged.length);
  if (flagged.length > 0) authority.signals.scheduleMoved(0);
  return flagged.length;
}
