import type { Uuid } from "../../kernel/ids.ts";
import { type Queryable, sql } from "../database.ts";

/** Who is alive: workers with their slots, scanners with their lease. */

const TOUCH_WORKER = sql(
  "registry_touch_worker",
  `insert into worker (id, name, slots, version, started_at, seen_at)
   values ($1, $2, $3, $4, clock_timestamp(), clock_timestamp())
   on conflict (id) do update set seen_at = clock_timestamp(), slots = excluded.slots, stopping = false`,
);
const STOP_WORKER = sql("registry_stop_worker", "delete from worker where id = $1");
const COUNT_SLOTS = sql(
  "registry_count_slots",
  `select s.key as class, sum((s.value ->> 'slots')::int)::int as slots, max((s.value ->> 'p95Ms')::float8) as p95_ms
     from worker w cross join lateral jsonb_each(w.slots) s
    where w.seen_at > clock_timestamp() - interval '15 seconds' and not w.stopping
    group by s.key`,
);
const FORGET_WORKERS = sql(
  "registry_forget_workers",
  "delete from worker where seen_at < clock_timestamp() - interval '1 hour'",
);
const TOUCH_SCANNER = sql(
  "registry_touch_scanner",
  `insert into scanner (id, started_at, expires_at)
   values ($1, clock_timestamp(), clock_timestamp() + $2::int * interval '1 ms')
   on conflict (id) do update set expires_at = excluded.expires_at, epoch = scanner.epoch + 1`,
);
const LIVE_SCANNERS = sql(
  "registry_live_scanners",
  "select id from scanner where expires_at > clock_timestamp() order by id",
);
const FORGET_SCANNERS = sql(
  "registry_forget_scanners",
  "delete from scanner where expires_at < clock_timestamp() - interval '1 hour' or id = $1",
);

/** Per class: slots of this worker and the 95th percentile of its attempts' durations (ms). */
export type WorkerSlots = Readonly<Record<string, { slots: number; p95Ms: number }>>;

export async function touchWorker(
  db: Queryable,
  worker: { id: Uuid; name: string; slots: WorkerSlots; version: string },
) {
  await db.query(TOUCH_WORKER, [worker.id, worker.name, JSON.stringify(worker.slots), worker.version]);
}

export async function removeWorker(db: Queryable, id: Uuid): Promise<void> {
  await db.query(STOP_WORKER, [id]);
}

export function countLiveSlots(db: Queryable): Promise<{ class: string; slots: number; p95_ms: number | null }[]> {
  return db.query(COUNT_SLOTS);
}

export async function forgetDeadWorkers(db: Queryable): Promise<void> {
  await db.query(FORGET_WORKERS);
}

/** Renews a scanner's lease and answers who is alive, itself included. */
export async function touchScanner(db: Queryable, id: Uuid, ttlMs: number): Promise<Uuid[]> {
  await db.query(TOUCH_SCANNER, [id, ttlMs]);
  return (await db.query<{ id: Uuid }>(LIVE_SCANNERS)).map((row) => row.id);
}

/** Gives a scanner's lease up, and forgets those that died long ago. */
export async function removeScanner(db: Queryable, id: Uuid): Promise<void> {
  await db.query(FORGET_SCANNERS, [id]);
}
