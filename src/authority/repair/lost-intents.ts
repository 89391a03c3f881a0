import type { Lane } from "../../domain/states.ts";
import type { Instant } from "../../kernel/clock.ts";
import type { Uuid } from "../../kernel/ids.ts";
import { sql } from "../../store/database.ts";
import { insertIntents } from "../../store/rows/outbox.ts";
import { lockLiveRunsSkipping } from "../../store/rows/runs/live-runs.ts";
import type { Authority } from "../authority.ts";

const WAITING = "l.state in ('queued', 'retrying')";
/** Both tables in one snapshot: whoever moves a run from one outbox row to another does it in one transaction. */
const FIND = sql(
  "lost_intents_find",
  `select l.id from live_run l where ${WAITING}
   except select unnest(o.runs) from outbox o where o.kind = 'run'
   limit $1`,
);
const STILL_LOST = sql(
  "lost_intents_still",
  `select l.id, l.tenant_id, l.class, l.lane, l.not_before from live_run l
    where l.id = any($1::uuid[]) and ${WAITING}
      and not exists (select 1 from outbox o where o.kind = 'run' and o.runs @> array[l.id])`,
);

type Lost = { id: Uuid; tenant_id: Uuid; class: string; lane: Lane; not_before: Instant };

/**
 * Gives runs that wait and are named by no outbox row a new one: without it they would wait for ever.
 * Locks   live runs, skipping what others hold; what is still lost is read after that.
 * Writes  outbox. Replay: nothing. A row too many would be harmless: the second claim finds nothing.
 */
export async function restoreLostIntents(authority: Authority, limit: number): Promise<number> {
  const candidates = (await authority.db.query<{ id: Uuid }>(FIND, [limit])).map((row) => row.id);
  if (candidates.length === 0) return 0;
  const lost = await authority.transact("restore-intents", async (tx) => {
    const locked = await lockLiveRunsSkipping(tx, candidates);
    const rows = await tx.query<Lost>(STILL_LOST, [[...locked.keys()]]);
    const nowAt = await tx.authorityNow();
    const intents = rows.map((run) => ({
      tenantId: run.tenant_id,
      class: run.class,
      lane: run.lane,
      availableAt: run.not_before,
      runs: [run.id],
      published: false,
    }));
    await insertIntents(tx, intents, nowAt);
    return rows.length;
  });
  authority.metrics.repairs.inc({ kind: "lost-intent" }, lost);
  if (lost > 0) authority.signals.outboxGrew(0);
  return lost;
}
