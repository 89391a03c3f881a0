import type { LogPart } from "../../../domain/logs/attempt-log.ts";
import type { Instant } from "../../../kernel/clock.ts";
import { instantOf, type Uuid } from "../../../kernel/ids.ts";
import { type Queryable, sql } from "../../database.ts";
import { instantText } from "../../values.ts";

export type LoggedAttempt = { runId: Uuid; attempt: number; tenantId: Uuid; fence: bigint; endedAt: Instant | null };

// The attempt that ended its run carries no end of its own.
const READ_ATTEMPTS = sql(
  "attempt_logs_read_attempts",
  `select a.run_id as "runId", a.n as attempt, r.tenant_id as "tenantId", a.fence,
          coalesce(a.ended_at, case when a.n = r.attempts then r.finished_at end) as "endedAt"
     from unnest($1::timestamptz[], $2::uuid[], $3::int[]) as k (scheduled_at, run_id, n)
     join attempt a on a.scheduled_at = k.scheduled_at and a.run_id = k.run_id and a.n = k.n
     join run r on r.scheduled_at = k.scheduled_at and r.id = k.run_id`,
);
/** Parts that are not there yet have no row to be locked by. In the order of the keys, as two logs may have one. */
const LOCK_LOGS = sql(
  "attempt_logs_lock_logs",
  `select pg_advisory_xact_lock(key)
     from (select distinct hashtextextended('log ' || run_id || ' ' || attempt, 0) as key
             from unnest($1::uuid[], $2::int[]) as k (run_id, attempt)
            order by 1) keys`,
);
const LOCK_PARTS = sql(
  "attempt_logs_lock",
  `select l.run_id as "runId", l.attempt, l.n, l.at_byte::float8 as "atByte", l.size, l.object_id as "objectId"
     from attempt_log l
     join unnest($1::uuid[], $2::int[]) as k (run_id, attempt) on l.run_id = k.run_id and l.attempt = k.attempt
    order by l.run_id, l.attempt, l.n for update of l`,
);
const INSERT = sql(
  "attempt_logs_insert",
  `insert into attempt_log (run_id, attempt, n, object_id, at_byte, size, written_at)
   select run_id, attempt, n, object_id, at_byte, size, $7
     from unnest($1::uuid[], $2::int[], $3::int[], $4::uuid[], $5::bigint[], $6::int[])
       as p (run_id, attempt, n, object_id, at_byte, size)
    order by run_id, attempt, n
   on conflict do nothing
   returning object_id as "objectId"`,
);
const DROP = sql(
  "attempt_logs_drop",
  `delete from attempt_log l using unnest($1::uuid[], $2::int[], $3::int[]) as p (run_id, attempt, n)
    where l.run_id = p.run_id and l.attempt = p.attempt and l.n = p.n`,
);
const INSERT_OBJECTS = sql(
  "attempt_logs_insert_objects",
  `insert into object (id, tenant_id, run_id, attempt, fence, name, kind, state, uri, version, sha256, size, media_type,
                       granted_until, referenced_at)
   select id, tenant_id, run_id, attempt, fence, name, 'log', 'referenced', uri, version, sha256, size, 'text/plain', $11, $11
     from unnest($1::uuid[], $2::uuid[], $3::uuid[], $4::int[], $5::bigint[], $6::text[], $7::text[], $8::text[], $9::text[],
                 $10::bigint[])
       as o (id, tenant_id, run_id, attempt, fence, name, uri, version, sha256, size)`,
);

type Of = { runId: Uuid; attempt: number };
export type KeptPart = LogPart & Of & { objectId: Uuid };

/** Not locked: what is read here of an attempt does not change but for its end. */
export async function readLoggedAttempts(tx: Queryable, of: readonly Of[]): Promise<LoggedAttempt[]> {
  return tx.query<LoggedAttempt>(READ_ATTEMPTS, [
    of.map((one) => instantOf(one.runId)),
    of.map((one) => one.runId),
    of.map((one) => one.attempt),
  ]);
}

/** All parts of these logs, in their order. Who adds to one of them waits until the others who do have done so. */
export async function lockParts(tx: Queryable, of: readonly Of[]): Promise<KeptPart[]> {
  const logs = [of.map((one) => one.runId), of.map((one) => one.attempt)];
  await tx.query(LOCK_LOGS, logs);
  return tx.query<KeptPart>(LOCK_PARTS, logs);
}

/** Answers the objects whose parts were written: a number that somebody else was quicker to take is not. */
export async function insertParts(tx: Queryable, parts: readonly KeptPart[], nowAt: Instant): Promise<Set<Uuid>> {
  const rows = await tx.query<{ objectId: Uuid }>(INSERT, [
    parts.map((one) => one.runId),
    parts.map((one) => one.attempt),
    parts.map((one) => one.n),
    parts.map((one) => one.objectId),
    parts.map((one) => one.atByte),
    parts.map((one) => one.size),
    instantText(nowAt),
  ]);
  return new Set(rows.map((row) => row.objectId));
}

export async function dropParts(tx: Queryable, parts: readonly KeptPart[]): Promise<void> {
  if (parts.length === 0) return;
  await tx.query(DROP, [parts.map((one) => one.runId), parts.map((one) => one.attempt), parts.map((one) => one.n)]);
}

export type LogObject = {
  id: Uuid;
  tenantId: Uuid;
  runId: Uuid;
  attempt: number;
  fence: bigint;
  name: string;
  uri: string;
  version: string;
  sha256: string;
  size: number;
};

/** Registers parts that are stored already: they are referenced from the first, by their log. */
export async function insertLogObjects(tx: Queryable, objects: readonly LogObject[], nowAt: Instant): Promise<void> {
  if (objects.length === 0) return;
  await tx.query(INSERT_OBJECTS, [
    objects.map((one) => one.id),
    objects.map((one) => one.tenantId),
    objects.map((one) => one.runId),
    objects.map((one) => one.attempt),
    objects.map((one) => one.fence),
    objects.map((one) => one.name),
    objects.map((one) => one.uri),
    objects.map((one) => one.version),
    objects.map((one) => one.sha256),
    objects.map((one) => one.size),
    instantText(nowAt),
  ]);
}
