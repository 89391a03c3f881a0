import { type CleanupView, GRANT_MARGIN_MS } from "../../../domain/objects/life.ts";
import type { Instant } from "../../../kernel/clock.ts";
import { instantOf, type Uuid } from "../../../kernel/ids.ts";
import { type Queryable, sql } from "../../database.ts";
import { instantText } from "../../values.ts";

/** Objects on their way out of the registry. What these find is looked at again under its lock. */

// Attempts that hold their fence come first in this index, as many as there are; nothing else is passed over for long.
const FIND_ORPHANS = sql(
  "objects_find_orphans",
  `select o.id from object o
    where o.state in ('granted', 'staged')
      and (o.granted_until + $2 * interval '1 ms' <= clock_timestamp()
           or not exists (select from live_run l
                           where l.id = o.run_id and l.state = 'running' and l.fence = o.fence))
      and not exists (select from object s
                       where s.run_id = o.run_id and s.fence = o.fence and s.name = o.name and s.state = 'referenced')
    order by o.created_at limit $1`,
);
const FIND_EXPIRED = sql(
  "objects_find_expired",
  `select o.id from object o
    where o.state = 'referenced' and o.referenced_at <= clock_timestamp() - $2 * interval '1 ms'
      and (o.pin_until is null or o.pin_until <= clock_timestamp())
      and not exists (select from effect e
                       where e.object_id = o.id and e.state in ('pending', 'sending', 'uncertain'))
    order by o.referenced_at limit $1`,
);
const LOCK_SKIPPING = sql(
  "objects_lock_skipping",
  `select id, state, granted_until, referenced_at, pin_until, clean_at, clean_tries
     from object where id = any($1::uuid[]) order by id for update skip locked`,
);
const READ_TIES = sql(
  "objects_read_ties",
  `select o.id,
          exists (select from live_run l where l.id = o.run_id and l.state = 'running' and l.fence = o.fence)
            as "attemptHoldsFence",
          exists (select from object s where s.run_id = o.run_id and s.fence = o.fence and s.name = o.name
                                         and s.id <> o.id and s.state = 'referenced') as "keyIsResult",
          exists (select from effect e where e.object_id = o.id and e.state in ('pending', 'sending', 'uncertain'))
            as "hasUnsettledEffect"
     from object o where o.id = any($1::uuid[])`,
);
const MARK_DELETING = sql(
  "objects_mark_deleting",
  `update object set state = 'deleting', deleting_at = $2, clean_at = $2, clean_tries = 0 where id = any($1::uuid[])`,
);
const FIND_GOING = sql(
  "objects_find_going",
  `select id, state, uri, size, granted_until, referenced_at, deleted_at
     from object
    where state in ('deleting', 'deleted') and clean_at <= clock_timestamp()
    order by clean_at limit $1`,
);
const MARK_DELETED = sql(
  "objects_mark_deleted",
  `update object o set state = 'deleted', deleted_at = $3, clean_at = g.clean_at, clean_tries = 0
     from unnest($1::uuid[], $2::timestamptz[]) as g (id, clean_at)
    where o.id = g.id`,
);
const PUT_OFF = sql(
  "objects_put_off",
  `update object o set clean_at = p.clean_at, clean_tries = o.clean_tries + 1
     from unnest($1::uuid[], $2::timestamptz[]) as p (id, clean_at)
    where o.id = p.id`,
);
const FORGET = sql("objects_forget", "delete from object where id = any($1::uuid[])");
// Row by row in the order of the question.
const FIND_NAMED = sql(
  "objects_find_named",
  `select exists (select from object o where o.run_id = k.run_id and o.fence = k.fence and o.name = k.name) as "isNamed",
          exists (select from run r where r.scheduled_at = k.scheduled_at and r.id = k.run_id) as "runIsKnown"
     from unnest($1::uuid[], $2::bigint[], $3::text[], $4::timestamptz[]) with ordinality
       as k (run_id, fence, name, scheduled_at, place)
    order by k.place`,
);

export type LeavingRow = {
  id: Uuid;
  state: CleanupView["state"];
  granted_until: Instant;
  referenced_at: Instant | null;
  pin_until: Instant | null;
  clean_at: Instant | null;
  clean_tries: number;
};
export type Ties = Pick<CleanupView, "attemptHoldsFence" | "keyIsResult" | "hasUnsettledEffect">;

export type GoingRow = {
  id: Uuid;
  state: "deleting" | "deleted";
  uri: string;
  size: bigint | null;
  granted_until: Instant;
  referenced_at: Instant | null;
  deleted_at: Instant | null;
};

const idsOf = (rows: { id: Uuid }[]) => rows.map((row) => row.id);

export async function findOrphans(db: Queryable, limit: number): Promise<Uuid[]> {
  return idsOf(await db.query(FIND_ORPHANS, [limit, GRANT_MARGIN_MS]));
}

export async function findExpired(db: Queryable, limit: number, keptMs: number): Promise<Uuid[]> {
  return idsOf(await db.query(FIND_EXPIRED, [limit, keptMs]));
}

export function lockLeaving(tx: Queryable, ids: readonly Uuid[]): Promise<LeavingRow[]> {
  return tx.query<LeavingRow>(LOCK_SKIPPING, [ids]);
}

/** What holds on to the objects: read in a statement of its own, after their locks. */
export async function readTies(tx: Queryable, ids: readonly Uuid[]): Promise<Map<Uuid, Ties>> {
  const rows = await tx.query<Ties & { id: Uuid }>(READ_TIES, [ids]);
  return new Map(rows.map((row) => [row.id, row]));
}

export async function markDeleting(tx: Queryable, ids: readonly Uuid[], nowAt: Instant): Promise<void> {
  if (ids.length > 0) await tx.query(MARK_DELETING, [ids, instantText(nowAt)]);
}

export function findGoing(db: Queryable, limit: number): Promise<GoingRow[]> {
  return db.query<GoingRow>(FIND_GOING, [limit]);
}

type Again = { id: Uuid; cleanAt: Instant };

export async function markDeleted(tx: Queryable, rows: readonly Again[], nowAt: Instant): Promise<void> {
  if (rows.length === 0) return;
  await tx.query(MARK_DELETED, [rows.map((row) => row.id), rows.map((row) => row.cleanAt), instantText(nowAt)]);
}

export async function putOff(tx: Queryable, rows: readonly Again[]): Promise<void> {
  if (rows.length > 0) await tx.query(PUT_OFF, [rows.map((row) => row.id), rows.map((row) => row.cleanAt)]);
}

export async function forgetObjects(tx: Queryable, ids: readonly Uuid[]): Promise<void> {
  if (ids.length > 0) await tx.query(FORGET, [ids]);
}

export type StoredName = { runId: Uuid; fence: bigint; name: string };

/** Of keys found in the store, in their order: whether the registry names them, and whether their run is known here. */
export function findNamed(
  db: Queryable,
  names: readonly StoredName[],
): Promise<{ isNamed: boolean; runIsKnown: boolean }[]> {
  return db.query(FIND_NAMED, [
    names.map((one) => one.runId),
    names.map((one) => one.fence),
    names.map((one) => one.name),
    names.map((one) => instantOf(one.runId)),
  ]);
}
