import type { Payload, Work } from "../../../domain/definition.ts";
import type { Instant } from "../../../kernel/clock.ts";
import type { Uuid } from "../../../kernel/ids.ts";
import { type Queryable, sql } from "../../database.ts";

const READ = sql(
  "own_work_read",
  `select r.id, r.job, r.payload
     from unnest($1::timestamptz[], $2::uuid[]) as k (scheduled_at, id)
     join run r on r.scheduled_at = k.scheduled_at and r.id = k.id`,
);

/** Work and payload of runs that brought their own (ad hoc, or run-now with another payload). */
export async function readOwnWork(
  tx: Queryable,
  runs: readonly { id: Uuid; scheduled_at: Instant }[],
): Promise<Map<Uuid, { job: Work | null; payload: Payload | null }>> {
  if (runs.length === 0) return new Map();
  const rows = await tx.query<{ id: Uuid; job: Work | null; payload: Payload | null }>(READ, [
    runs.map((run) => run.scheduled_at),
    runs.map((run) => run.id),
  ]);
  return new Map(rows.map((row) => [row.id, row]));
}
