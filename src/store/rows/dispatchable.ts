import type { Lane } from "../../domain/states.ts";
import type { Instant } from "../../kernel/clock.ts";
import type { Uuid } from "../../kernel/ids.ts";
import { type Queryable, sql } from "../database.ts";

/** What waits in the outbox, seen lane by lane (tenant × class), so that a long backlog never hides a short one. */
export type WaitingLane = {
  tenant_id: Uuid;
  class: string;
  /** When the lane's first row (of any outbox lane) may start. */
  available_at: Instant;
  running: number;
  max_running: number | null;
  start_rate_per_second: number | null;
  starts_window_at: Instant | null;
  starts_in_window: number;
  weight: number;
};

/**
 * A loose index scan: hops from lane to lane in the index of unpublished rows, whatever the length of each. The cost
 * is one probe a lane, not one a row.
 */
const FIND_LANES = sql(
  "dispatchable_find_lanes",
  `with recursive lane (class, tenant_id) as (
     (select class, tenant_id from outbox where published_at is null and kind = 'run'
       order by class, tenant_id limit 1)
     union all
     (select n.class, n.tenant_id
        from lane l
       cross join lateral (
         select class, tenant_id from outbox
          where published_at is null and kind = 'run' and (class, tenant_id) > (l.class, l.tenant_id)
          order by class, tenant_id limit 1) n))
   select l.tenant_id, l.class, first.available_at, coalesce(u.running, 0) as running, u.max_running,
          u.start_rate_per_second, u.starts_window_at, coalesce(u.starts_in_window, 0) as starts_in_window,
          coalesce(q.weight, 1) as weight
     from lane l
    cross join lateral (
      select min(head.available_at) as available_at
        from (values (0::smallint), (1::smallint), (2::smallint)) as k (lane)
       cross join lateral (
         select available_at from outbox
          where published_at is null and kind = 'run' and class = l.class and tenant_id = l.tenant_id and lane = k.lane
          order by available_at limit 1) head) first
     left join usage u on u.tenant_id = l.tenant_id and u.class = l.class
     left join quota q on q.tenant_id = l.tenant_id and q.class = l.class
    where first.available_at is not null
    order by l.class, l.tenant_id`,
);
const COUNT_PUBLISHED = sql(
  "dispatchable_count_published",
  `select tenant_id, class, sum(cardinality(runs))::int as runs,
          coalesce(sum(cardinality(runs)) filter (where lane = 2), 0)::int as late
     from outbox where published_at is not null group by tenant_id, class`,
);

/**
 * Rows of lanes that may start now: at most `k` of each, strict before normal before late, then by instant; at most `late`
 * of them late ones, of which the first `late_first` come before all, so that they are not starved by a tenant that never
 * runs out of others.
 */
const FIND_ROWS = sql(
  "dispatchable_find_rows",
  `select r.id, r.tenant_id, r.class, r.lane, r.runs, r.publish_no
     from unnest($1::uuid[], $2::text[], $3::int[], $4::int[], $5::int[]) as w (tenant_id, class, k, late, late_first)
    cross join lateral (
      select o.id, o.tenant_id, o.class, o.lane, o.runs, o.publish_no
        from (values (0::smallint, w.k), (1::smallint, w.k), (2::smallint, w.late)) as p (lane, most)
       cross join lateral (
         select id, tenant_id, class, lane, runs, publish_no, available_at,
                row_number() over (order by available_at, id) as nth
           from outbox
          where published_at is null and kind = 'run' and class = w.class and tenant_id = w.tenant_id and lane = p.lane
            and available_at <= (select clock_timestamp())
          order by available_at, id limit p.most) o
       order by (o.lane = 2 and o.nth <= w.late_first) desc, o.lane, o.available_at, o.id
       limit w.k) r`,
);

const MARK = sql(
  "dispatchable_mark",
  `with free as (select id from outbox where id = any($1::bigint[]) and published_at is null order by id for update skip locked)
   update outbox o set published_at = clock_timestamp(), publish_no = o.publish_no + 1
    where o.id = any(array(select id from free))
   returning o.id, o.tenant_id, o.class, o.lane, o.runs, o.publish_no`,
);
const UNMARK = sql(
  "dispatchable_unmark",
  `with seen as (select id from outbox
                  where id = any($1::bigint[]) and publish_no = ($2::int[])[array_position($1::bigint[], id)]
                    and published_at is not null order by id for update skip locked)
   update outbox o set published_at = null where o.id = any(array(select id from seen)) returning o.id`,
);
const FIND_PUBLISHED = sql(
  "dispatchable_find_published",
  `select id, tenant_id, class, lane, runs, publish_no, published_at, clock_timestamp() as now
     from outbox
    where published_at is not null and published_at <= (select clock_timestamp()) - $1::int * interval '1 ms'
      and (published_at, id) > ($2::timestamptz, $3::bigint)
    order by published_at, id limit $4`,
);

export type DispatchableRow = {
  id: bigint;
  tenant_id: Uuid;
  class: string;
  lane: Lane;
  runs: Uuid[];
  publish_no: number;
};

export function findWaitingLanes(db: Queryable): Promise<WaitingLane[]> {
  return db.query<WaitingLane>(FIND_LANES);
}

/** Lanes with a row that may start by now, and when the first of the others may (null: there is none). */
export function divideByTime(
  lanes: readonly WaitingLane[],
  nowAt: Instant,
): { due: WaitingLane[]; nextAt: Instant | null } {
  const later = lanes.filter((lane) => lane.available_at > nowAt).map((lane) => lane.available_at);
  return {
    due: lanes.filter((lane) => lane.available_at <= nowAt),
    nextAt: later.length === 0 ? null : Math.min(...later),
  };
}

/** Runs of each lane that are published and not yet claimed, and how many of them are late ones. */
export function countPublished(
  db: Queryable,
): Promise<{ tenant_id: Uuid; class: string; runs: number; late: number }[]> {
  return db.query(COUNT_PUBLISHED);
}

/** How many rows of a lane: at most `rows`, of which `late` may be late ones, `lateFirst` of them before all others. */
export type DispatchableShare = { rows: number; late: number; lateFirst: number };

export function findDispatchable(
  db: Queryable,
  wanted: readonly ({ tenantId: Uuid; class: string } & DispatchableShare)[],
): Promise<DispatchableRow[]> {
  return db.query<DispatchableRow>(FIND_ROWS, [
    wanted.map((lane) => lane.tenantId),
    wanted.map((lane) => lane.class),
    wanted.map((lane) => lane.rows),
    wanted.map((lane) => lane.late),
    wanted.map((lane) => lane.lateFirst),
  ]);
}

export function markPublished(tx: Queryable, ids: readonly bigint[]): Promise<DispatchableRow[]> {
  return tx.query<DispatchableRow>(MARK, [ids]);
}

export type Seen = { rowId: bigint; publishNo: number };

/** Unmarks rows that are still at the publication that was seen; a later one is none of the caller's business. */
export async function unmarkPublished(tx: Queryable, seen: readonly Seen[]): Promise<number> {
  const rows = await tx.query(UNMARK, [seen.map((one) => one.rowId), seen.map((one) => one.publishNo)]);
  return rows.length;
}

export type PublishedRow = DispatchableRow & { published_at: Instant; now: Instant };

/** Rows published at least `ageMs` ago, oldest first, after a position. */
export function findPublished(
  db: Queryable,
  ageMs: number,
  after: { publishedAt: string; id: bigint },
  limit: number,
): Promise<PublishedRow[]> {
  return db.query<PublishedRow>(FIND_PUBLISHED, [ageMs, after.publishedAt, after.id, limit]);
}
