import type { RunState } from "../../domain/states.ts";
import { instantOf, type Uuid } from "../../kernel/ids.ts";
import { type Queryable, sql } from "../database.ts";
import { instantText } from "../values.ts";

const FIND = sql(
  "run_state_find",
  `select coalesce(l.state, r.state) as state
     from run r left join live_run l on l.id = r.id
    where r.scheduled_at = $1 and r.id = $2 and r.tenant_id = $3`,
);

/** Where a tenant's run stands right now. */
export async function findRunState(db: Queryable, tenantId: Uuid, runId: Uuid): Promise<RunState | undefined> {
  return (await db.query<{ state: RunState }>(FIND, [instantText(instantOf(runId)), runId, tenantId]))[0]?.state;
}
