import type { Uuid } from "../../kernel/ids.ts";
import { type Queryable, sql } from "../database.ts";

/** Who is alive: workers with their slots, scanners with their lease. */

const TOUCH_WORKER = sql(
  "registry_touch_worker",
  `insert into worker (id, name, slots, version, started_at, seen_at, blocked_at, blocked_ms)
   values ($1, $2, $3, $4, clock_timestamp(), clock_timestamp(), clock_timestamp() - $5::float8 * interval '1 ms', $6::int)
   on conflict (id) do update set seen_at = clock_timestamp(), slots = excluded.slots, stopping = false,
                                  blocked_at = excluded.blocked_at, blocked_ms = excluded.blocked_ms`,
);
const TOUCH_REMOTE_WORKER = sql(
  "registry_touch_remote_worker",
  `insert into worker (id, tenant_id, name, jobs, concurrency, slots, version, started_at, seen_at)
   select $1, $2, $3, $4, $5, '{}', $6, clock_timestamp(), clock_timestamp()
    where exists (select from worker where id = $1)
       or (select count(*) from (select from worker where tenant_id = $2 limit $7) known) < $7
   on conflict (id) do update set seen_at = clock_timestamp(), jobs = excluded.jobs, concurrency = excluded.concurrency,
                                  version = excluded.version`,
);
const HEAR_REMOTE_WORKER = sql(
  "registry_hear_remote_worker",
  "update worker set seen_at = clock_timestamp() where id = $1",
);
const STOP_WORKER = sql("registry_stop_worker", "delete from worker where id = $1");
const COUNT_SLOTS = sql(
  "registry_count_slots",
  `select s.key as class, sum((s.value ->> 'slots')::int)::int as slots, max((s.value ->> 'p95Ms')::float8) as p95_ms
     from worker w cross join lateral jsonb_each(w.slots) s
    where w.tenant_id is null and w.seen_at > clock_timestamp() - interval '15 seconds' and not w.stopping
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

/** That its event loop was blocked: how long ago, and for how long. */
export type Blocked = { agoMs: number; ms: number };

export type OwnWorker = { id: Uuid; name: string; slots: WorkerSlots; version: string; blocked?: Blocked | undefined };

export async function touchWorker(db: Queryable, { id, name, slots, version, blocked }: OwnWorker): Promise<void> {
  const [agoMs, ms] = [blocked?.agoMs ?? null, blocked === undefined ? null : Math.round(blocked.ms)];
  await db.query(TOUCH_WORKER, [id, name, JSON.stringify(slots), version, agoMs, ms]);
}

/** One of a tenant's own workers; `id` is made of the tenant and the name, so that it is the same at every call. */
export type RemoteWorker = {
  id: Uuid;
  tenantId: Uuid;
  name: string;
  jobs: readonly string[];
  concurrency: number;
  version: string;
};

/** A worker may call itself anew in every poll; beyond so many of a tenant the newest are not written down. */
const MOST_OF_TENANT = 1_000;

export async function touchRemoteWorker(db: Queryable, worker: RemoteWorker): Promise<void> {
  const { id, tenantId, name, jobs, concurrency, version } = worker;
  await db.query(TOUCH_REMOTE_WORKER, [id, tenantId, name, jobs, concurrency, version, MOST_OF_TENANT]);
}

/** It is busy, and asks for nothing. */
export async function hearRemoteWorker(db: Queryable, id: Uuid): Promise<void> {
  await db.query(HEAR_REMOTE_WORKER, [id]);
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
