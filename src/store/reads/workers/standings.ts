import type { Fence } from "../../../domain/fence.ts";
import { instantOf, type Uuid } from "../../../kernel/ids.ts";
import { type Queryable, sql } from "../../database.ts";

/** How a run of the tenant stands, as far as it says who may speak of its attempts; `fence` null: none is running. */
export type Standing = {
  id: Uuid;
  class: string;
  attempt: number;
  fence: Fence | null;
  worker: string | null;
  cancelRequested: boolean;
};

const LIVE = sql(
  "read_standings",
  `select id, class, attempt, fence, worker, cancel_requested_at is not null as "cancelRequested"
     from live_run where tenant_id = $1 and id = any($2::uuid[])`,
);
const ENDED = sql(
  "read_ended_standings",
  `select r.id, r.class, r.attempts as attempt, null::bigint as fence, null::text as worker, false as "cancelRequested"
     from unnest($2::timestamptz[], $3::uuid[]) as k (scheduled_at, id)
     join run r on r.scheduled_at = k.scheduled_at and r.id = k.id
    where r.tenant_id = $1`,
);

/** Of these runs, those that are the tenant's. Read plainly: tenant and class of a run never change, and a fence is one attempt's for ever. */
export async function readStandings(
  db: Queryable,
  tenantId: Uuid,
  runIds: readonly Uuid[],
): Promise<Map<Uuid, Standing>> {
  const live = await db.query<Standing>(LIVE, [tenantId, runIds]);
  const found = new Map(live.map((row) => [row.id, row]));
  const gone = runIds.filter((id) => !found.has(id));
  if (gone.length === 0) return found;
  for (const row of await db.query<Standing>(ENDED, [tenantId, gone.map(instantOf), gone])) found.set(row.id, row);
  return found;
}
