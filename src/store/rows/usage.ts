import type { Instant } from "../../kernel/clock.ts";
import type { Uuid } from "../../kernel/ids.ts";
import { type Queryable, sql } from "../database.ts";

/** Running attempts of a tenant in a class, and the limits they are held to. */
export type Usage = {
  tenant_id: Uuid;
  class: string;
  running: number;
  max_running: number | null;
  start_rate_per_second: number | null;
  /** Starts in the second that began then; counted only where there is a rate. */
  starts_window_at: Instant | null;
  starts_in_window: number;
};

export type LaneKey = { tenantId: Uuid; class: string };

export function laneKey(lane: LaneKey): string {
  return `${lane.tenantId} ${lane.class}`;
}

const COLUMNS = `u.tenant_id, u.class, u.running, u.max_running, u.start_rate_per_second, u.starts_window_at, u.starts_in_window`;

const LOCK = sql(
  "usage_lock",
  `select ${COLUMNS}
     from usage u
    where (u.tenant_id, u.class) in (select * from unnest($1::uuid[], $2::text[]))
    order by u.tenant_id, u.class
      for update`,
);
const CREATE = sql(
  "usage_create",
  // A suspension makes all of its tenant's rows: what is born here meanwhile finds them.
  `insert into usage (tenant_id, class, max_running, start_rate_per_second)
   select k.tenant_id, k.class, case t.status when 'suspended' then 0 else q.max_running end, q.start_rate_per_second
     from unnest($1::uuid[], $2::text[]) as k (tenant_id, class)
     left join tenant t on t.id = k.tenant_id
     left join quota q on q.tenant_id = k.tenant_id and q.class = k.class
    order by 1, 2
   on conflict do nothing`,
);
const READ = sql(
  "usage_read",
  `select ${COLUMNS}
     from unnest($1::uuid[], $2::text[]) as k (tenant_id, class)
     join usage u on u.tenant_id = k.tenant_id and u.class = k.class`,
);
/**
 * Locks in order, then adds, in one statement: everybody wants these rows, so they are held for as short as can be
 * (measured: as two statements with work between them, half of a burst was spent waiting here). A count that changed
 * while we waited is read anew by UPDATE itself.
 */
const ADD = sql(
  "usage_add",
  `with locked as materialized (
     select u.tenant_id, u.class, k.delta
       from unnest($1::uuid[], $2::text[], $3::int[]) as k (tenant_id, class, delta)
       join usage u on u.tenant_id = k.tenant_id and u.class = k.class
      order by u.tenant_id, u.class
        for update of u)
   update usage u set running = u.running + l.delta
     from locked l where u.tenant_id = l.tenant_id and u.class = l.class
   returning ${COLUMNS}`,
);

const COUNT_STARTS = sql(
  "usage_count_starts",
  `update usage u set starts_window_at = s.window_at, starts_in_window = s.starts
     from unnest($1::uuid[], $2::text[], $3::timestamptz[], $4::int[]) as s (tenant_id, class, window_at, starts)
    where u.tenant_id = s.tenant_id and u.class = s.class`,
);

/** Plain reads: good for knowing that a lane has no limit, never for holding it to one. Lanes without a row are missing. */
export async function readUsage(tx: Queryable, lanes: readonly LaneKey[]): Promise<Map<string, Usage>> {
  const unique = [...new Map(lanes.map((lane) => [laneKey(lane), lane])).values()];
  const keys = [unique.map((lane) => lane.tenantId), unique.map((lane) => lane.class)];
  return byLane(await tx.query<Usage>(READ, keys));
}

function byLane(rows: readonly Usage[]): Map<string, Usage> {
  return new Map(rows.map((row) => [laneKey({ tenantId: row.tenant_id, class: row.class }), row]));
}

/** Locks the usage rows of lanes in order, making those that are missing. Last in the lock order. */
export async function lockUsage(tx: Queryable, lanes: readonly LaneKey[]): Promise<Map<string, Usage>> {
  const unique = [...new Map(lanes.map((lane) => [laneKey(lane), lane])).values()];
  const keys = [unique.map((lane) => lane.tenantId), unique.map((lane) => lane.class)];
  let rows = await tx.query<Usage>(LOCK, keys);
  if (rows.length < unique.length) {
    await tx.query(CREATE, keys);
    rows = await tx.query<Usage>(LOCK, keys);
  }
  return byLane(rows);
}

/** Adds to running counts, locking the rows in order; answers them as they stand now. The rows exist. */
export async function addUsage(
  tx: Queryable,
  deltas: ReadonlyMap<string, { lane: LaneKey; delta: number }>,
): Promise<Map<string, Usage>> {
  const changed = [...deltas.values()].filter((one) => one.delta !== 0);
  if (changed.length === 0) return new Map();
  return byLane(
    await tx.query<Usage>(ADD, [
      changed.map((one) => one.lane.tenantId),
      changed.map((one) => one.lane.class),
      changed.map((one) => one.delta),
    ]),
  );
}

/** Writes how many starts the present windows of lanes have seen. Their rows are locked. */
export async function countStarts(
  tx: Queryable,
  windows: readonly { lane: LaneKey; windowAt: Instant; starts: number }[],
): Promise<void> {
  if (windows.length === 0) return;
  await tx.query(COUNT_STARTS, [
    windows.map(({ lane }) => lane.tenantId),
    windows.map(({ lane }) => lane.class),
    windows.map(({ windowAt }) => windowAt),
    windows.map(({ starts }) => starts),
  ]);
}

/** Sums one change per run into one change per lane. */
export function countLanes(runs: readonly { tenant_id: Uuid; class: string }[], each: 1 | -1) {
  const deltas = new Map<string, { lane: LaneKey; delta: number }>();
  for (const run of runs) {
    const lane = { tenantId: run.tenant_id, class: run.class };
    const key = laneKey(lane);
    const known = deltas.get(key);
    if (known === undefined) deltas.set(key, { lane, delta: each });
    else known.delta += each;
  }
  return deltas;
}
