import type { Instant } from "../../kernel/clock.ts";
import type { Uuid } from "../../kernel/ids.ts";
import { type Queryable, sql } from "../database.ts";
import { instantText } from "../values.ts";

const RENEW = sql(
  "leases_renew",
  `update live_run l set lease_until = b.lease_until, last_heartbeat_at = $3
     from unnest($1::uuid[], $2::timestamptz[]) as b (id, lease_until)
    where l.id = b.id`,
);
const FIND_LAPSED = sql(
  "leases_find_lapsed",
  `select id from live_run
    where state = 'running' and lease_until < (select clock_timestamp())
    order by lease_until
    limit $1`,
);

export async function renewLeases(
  tx: Queryable,
  renewals: readonly { runId: Uuid; leaseUntil: Instant }[],
  nowAt: Instant,
): Promise<void> {
  if (renewals.length === 0) return;
  await tx.query(RENEW, [renewals.map((one) => one.runId), renewals.map((one) => one.leaseUntil), instantText(nowAt)]);
}

/** Candidates only: whether a lease is over is decided under its row's lock. Walks the small table (no index: HOT). */
export async function findLapsed(db: Queryable, limit: number): Promise<Uuid[]> {
  return (await db.query<{ id: Uuid }>(FIND_LAPSED, [limit])).map((row) => row.id);
}

export type ProgressNote = { runId: Uuid; scheduledAt: Instant; n: number; progress: string };

const WRITE_PROGRESS = sql(
  "leases_write_progress",
  `update attempt a set progress = p.progress::jsonb
     from unnest($1::timestamptz[], $2::uuid[], $3::int[], $4::text[]) as p (scheduled_at, run_id, n, progress)
    where a.scheduled_at = p.scheduled_at and a.run_id = p.run_id and a.n = p.n`,
);

/** Notes how far attempts are; their live rows are locked. */
export async function writeProgress(tx: Queryable, notes: readonly ProgressNote[]): Promise<void> {
  if (notes.length === 0) return;
  await tx.query(WRITE_PROGRESS, [
    notes.map((note) => note.scheduledAt),
    notes.map((note) => note.runId),
    notes.map((note) => note.n),
    notes.map((note) => note.progress),
  ]);
}
