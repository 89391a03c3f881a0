import type { Instant } from "../../kernel/clock.ts";
import type { Uuid } from "../../kernel/ids.ts";
import { type Queryable, sql } from "../database.ts";
import { located } from "../located.ts";
import { instantText } from "../values.ts";

const RENEW = sql(
  "leases_renew",
  `update live_run l set lease_until = b.lease_until, last_heartbeat_at = $3
     from ${located("live_run", "$1::uuid[], $2::timestamptz[]", "id, lease_until")} b
    where l.ctid = b.place`,
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

/** A lease that goes from one holder to the next, or to none: the attempt is out of any worker's hands until then. */
export type Handover = { runId: Uuid; scheduledAt: Instant; n: number; worker: string | null; leaseUntil: Instant };

const HAND_OVER = sql(
  "leases_hand_over",
  `update live_run l set worker = h.worker, lease_until = h.lease_until, last_heartbeat_at = $4
     from ${located("live_run", "$1::uuid[], $2::text[], $3::timestamptz[]", "id, worker, lease_until")} h
    where l.ctid = h.place`,
);
const NOTE_HANDOVER = sql(
  "leases_note_handover",
  `update attempt a
      set detached_at = case when h.worker is null then $5 else a.detached_at end,
          adopted_by = case when a.detached_at is not null then coalesce(h.worker, a.adopted_by) end
     from unnest($1::timestamptz[], $2::uuid[], $3::int[], $4::text[]) as h (scheduled_at, run_id, n, worker)
    where a.scheduled_at = h.scheduled_at and a.run_id = h.run_id and a.n = h.n
   returning a.run_id as id, a.started_at`,
);

/** Hands leases over; their live rows are locked. Answers when each of the attempts began. */
export async function handOver(
  tx: Queryable,
  handovers: readonly Handover[],
  nowAt: Instant,
): Promise<Map<Uuid, Instant>> {
  if (handovers.length === 0) return new Map();
  const ids = handovers.map((one) => one.runId);
  const workers = handovers.map((one) => one.worker);
  const now = instantText(nowAt);
  await tx.query(HAND_OVER, [ids, workers, handovers.map((one) => one.leaseUntil), now]);
  const noted = await tx.query<{ id: Uuid; started_at: Instant }>(NOTE_HANDOVER, [
    handovers.map((one) => one.scheduledAt),
    ids,
    handovers.map((one) => one.n),
    workers,
    now,
  ]);
  return new Map(noted.map((row) => [row.id, row.started_at]));
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
