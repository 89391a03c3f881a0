import type { Uuid } from "../../kernel/ids.ts";
import { sql } from "../../store/database.ts";
import { addUsage, type LaneKey, laneKey, lockUsage } from "../../store/rows/usage.ts";
import type { Authority } from "../authority.ts";

const FIND = sql(
  "usage_drift_find",
  `select coalesce(u.tenant_id, l.tenant_id) as "tenantId", coalesce(u.class, l.class) as class
     from usage u
     full join (select tenant_id, class, count(*)::int as running from live_run where state = 'running' group by 1, 2) l
       on l.tenant_id = u.tenant_id and l.class = u.class
    where coalesce(u.running, 0) <> coalesce(l.running, 0)
    limit $1`,
);
const COUNT = sql(
  "usage_drift_count",
  `select tenant_id as "tenantId", class, count(*)::int as running
     from live_run
    where state = 'running' and (tenant_id, class) in (select * from unnest($1::uuid[], $2::text[]))
    group by tenant_id, class`,
);

type Counted = { tenantId: Uuid; class: string; running: number };

/**
 * Puts running counts right where they are not the number of running rows. Never expected; a limit that leaks would
 * starve its tenant for ever.
 * Locks   the usage rows; then, in a later statement, counts. Whoever changes a live row to or from running writes its
 *         usage row last and so waits for us, or has committed both before our count.
 * Writes  usage. Replay: nothing.
 */
export async function repairUsage(authority: Authority, limit: number): Promise<number> {
  const lanes = await authority.db.query<LaneKey>(FIND, [limit]);
  if (lanes.length === 0) return 0;
  const repaired = await authority.transact("repair-usage", async (tx) => {
    const usage = await lockUsage(tx, lanes);
    const keys = [lanes.map((lane) => lane.tenantId), lanes.map((lane) => lane.class)];
    const counted = new Map((await tx.query<Counted>(COUNT, keys)).map((row) => [laneKey(row), row.running]));
    const deltas = new Map(
      lanes.map((lane) => {
        const key = laneKey(lane);
        return [key, { lane, delta: (counted.get(key) ?? 0) - usage.get(key)!.running }];
      }),
    );
    await addUsage(tx, deltas);
    return [...deltas.values()].filter((one) => one.delta !== 0).length;
  });
  authority.metrics.repairs.inc({ kind: "usage-drift" }, repaired);
  return repaired;
}
