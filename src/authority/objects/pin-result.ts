import { instantOf, type Uuid } from "../../kernel/ids.ts";
import { sql } from "../../store/database.ts";
import { instantText } from "../../store/values.ts";
import type { Authority } from "../authority.ts";

/** The clocks of the API, of the object store and of the authority may differ by this much. */
const SKEW_MS = 60_000;

const PIN = sql(
  "pin_result",
  `update object o set pin_until = greatest(o.pin_until, clock_timestamp() + $4 * interval '1 ms')
    where o.id = (select r.result_object from run r where r.scheduled_at = $1 and r.id = $2 and r.tenant_id = $3)
      and o.state = 'referenced'
   returning o.id`,
);

/**
 * Keeps a run's result until a download link that is given away now has died.
 * Locks, writes   the object's pin, which only grows. Time: the authority's, where the pin is written. Replay: the same.
 * False: there is no result, or it is being removed.
 */
export function pinResult(
  authority: Authority,
  request: { tenantId: Uuid; runId: Uuid; forMs: number },
): Promise<boolean> {
  return authority.transact("pin-result", async (tx) => {
    const { runId, tenantId, forMs } = request;
    const rows = await tx.query(PIN, [instantText(instantOf(runId)), runId, tenantId, forMs + SKEW_MS]);
    return rows.length === 1;
  });
}
