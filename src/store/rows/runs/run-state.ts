import type { RunState } from "../../../domain/states.ts";
import { instantOf, type Uuid } from "../../../kernel/ids.ts";
import { type Queryable, sql } from "../../database.ts";
import { instantText } from "../../values.ts";

const FIND = sql(
  "run_state_find",
  `select coalesce(l.state, r.state) as state
     from run r left join live_run l on l.id = r.id
    where r.scheduled_at = $1 and r.id = $2 and r.tenant_id = $3`,
);
const READ_RECORDED = sql(
  "run_state_read_recorded",
  `select r.id, r.tenant_id, r.state from unnest($1::timestamptz[], $2::uuid[]) as k (scheduled_at, id)
     join run r on r.scheduled_at = k.scheduled_at and r.id = k.id`,
);

export type RecordedState = { id: Uuid; tenant_id: Uuid; state: RunState | "open" };

/** How runs stand in history: `open` until they have ended. Those that are not on record are missing. */
export async function readRecordedStates(tx: Queryable, ids: readonly Uuid[]): Promise<Map<Uuid, RecordedState>> {
  if (ids.length === 0) return new Map();
  const rows = await tx.query<RecordedState>(READ_RECORDED, [ids.map(instantOf), ids]);
  return new Map(rows.map((row) => [row.id, row]));
}

/** Where a tenant's run stands right now. */
export async function findRunState(db: Queryable, tenantId: Uuid, runId: Uuid): Promise<RunState | undefined> {
  return (await db.query<{ state: RunState }>(FIND, [instantText(instantOf(runId)), runId, tenantId]))[0]?.state;
}
