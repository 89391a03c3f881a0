import type { Instant } from "../../kernel/clock.ts";
import { instantOf, type Uuid } from "../../kernel/ids.ts";
import { sql } from "../../store/database.ts";
import { instantText } from "../../store/values.ts";
import type { Authority } from "../authority.ts";

const PIN = sql(
  "pin_result",
  `update object o set pin_until = greatest(o.pin_until, $4)
    where o.id = (select r.result_object from run r where r.scheduled_at = $1 and r.id = $2 and r.tenant_id = $3)
      and o.state = 'referenced'
   returning o.id`,
);

/**
 * Keeps a run's result until a download link that was promised has died.
 * Locks, writes   the object's pin, which only grows. Replay: the same.
 * False: there is no result, or it is being removed.
 */
export function pinResult(
  authority: Authority,
  request: { tenantId: Uuid; runId: Uuid; untilAt: Instant },
): Promise<boolean> {
  return authority.transact("pin-result", async (tx) => {
    const { runId, tenantId, untilAt } = request;
    const rows = await tx.query(PIN, [instantText(instantOf(runId)), runId, tenantId, instantText(untilAt)]);
    return rows.length === 1;
  });
}
