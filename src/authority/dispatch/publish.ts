import { type LaneDemand, lateRoom, roomOf, windowOf } from "../../domain/dispatch/window.ts";
import { LANES } from "../../domain/states.ts";
import type { Chance } from "../../kernel/chance.ts";
import type { Instant } from "../../kernel/clock.ts";
import { sql, type Transaction } from "../../store/database.ts";
import {
  countPublished,
  type DispatchableRow,
  type DispatchableShare,
  divideByTime,
  findDispatchable,
  findWaitingLanes,
  markPublished,
  type WaitingLane,
} from "../../store/rows/dispatchable.ts";
import { laneKey } from "../../store/rows/usage.ts";
import type { Authority } from "../authority.ts";
import { readServer } from "../server.ts";

export type Publication = {
  rows: DispatchableRow[];
  epoch: number;
  nowAt: Instant;
  /** Lanes that have work which may start now but no room for it. */
  held: number;
  /** When the next row that waits for its time may start. */
  nextAt: Instant | null;
};

/**
 * Marks outbox rows as published, as many as can start: the caller speaks to Redis after the commit.
 * Locks   outbox rows, skipping what others hold.
 * Time    authority time; a row is taken only when it may start by the database's clock.
 * Writes  outbox (published_at, publish_no).
 * Replay  other rows; a crash between commit and Redis is found by the hint sweeper.
 *
 * `slots`: of the live workers, per class.
 */
export function publishOutbox(authority: Authority, slots: ReadonlyMap<string, number>): Promise<Publication> {
  return authority.transact("publish", async (tx) => {
    const lanes = (await findWaitingLanes(tx)).filter(isForRedis);
    const server = await readServer(tx, 0);
    const { due, nextAt } = divideByTime(lanes, server.now);
    if (due.length === 0) return { rows: [], epoch: server.epoch, nowAt: server.now, held: 0, nextAt };

    const wanted = await roomForAll(tx, due, slots, authority.chance);
    const found = wanted.length === 0 ? [] : await findDispatchable(tx, wanted);
    const rows =
      found.length === 0
        ? []
        : await markPublished(
            tx,
            trim(found, wanted).map((row) => row.id),
          );
    await authority.faults.reach("publish:marked");
    const held = due.length - wanted.length;
    return { rows, epoch: server.epoch, nowAt: server.now, held: held + (found.length > rows.length ? 1 : 0), nextAt };
  });
}

const READ_STANDING = sql(
  "publish_read_standing",
  "select exists (select 1 from outbox where published_at is not null) as standing",
);

/** Whether anything stands in Redis, or should. */
export async function hasPublishedRows(authority: Authority): Promise<boolean> {
  return (await authority.db.query<{ standing: boolean }>(READ_STANDING))[0]!.standing;
}

/** Whether any row waits to be published, now or later. One plain look, for a relay that has long found nothing. */
export async function hasWaitingRows(authority: Authority): Promise<boolean> {
  return (await findWaitingLanes(authority.db)).some(isForRedis);
}

/** Workers that come over HTTP look into the outbox itself. */
const isForRedis = (lane: WaitingLane) => lane.class !== "remote";

/** Rooms are in runs: no row names fewer than one. */
type Wanted = DispatchableShare & { tenantId: string; class: string };

async function roomForAll(
  tx: Transaction,
  due: readonly WaitingLane[],
  slots: ReadonlyMap<string, number>,
  chance: Chance,
): Promise<Wanted[]> {
  const published = new Map(
    (await countPublished(tx)).map((row) => [laneKey({ tenantId: row.tenant_id, class: row.class }), row]),
  );
  const byClass = Map.groupBy(due, (lane) => lane.class);
  return [...byClass].flatMap(([class_, lanes]) => {
    const demands = lanes.map((lane): LaneDemand => {
      const standing = published.get(laneKey({ tenantId: lane.tenant_id, class: class_ }));
      return {
        tenantId: lane.tenant_id,
        class: class_,
        weight: lane.weight,
        running: lane.running,
        maxRunning: lane.max_running,
        published: standing?.runs ?? 0,
        publishedLate: standing?.late ?? 0,
      };
    });
    const rooms = roomOf(demands, windowOf(slots.get(class_) ?? 0));
    return demands.flatMap((lane, i) => {
      const { runs, late } = rooms[i]!;
      if (runs === 0) return [];
      return [{ tenantId: lane.tenantId, class: class_, rows: runs, late, lateFirst: lateRoom(runs, chance()) }];
    });
  });
}

/** A row may go out when at least one of its runs fits. */
function trim(rows: readonly DispatchableRow[], wanted: readonly Wanted[]): DispatchableRow[] {
  const left = new Map(
    wanted.map(({ tenantId, class: class_, rows, late }) => [laneKey({ tenantId, class: class_ }), { rows, late }]),
  );
  return rows.filter((row) => {
    const room = left.get(laneKey({ tenantId: row.tenant_id, class: row.class }))!;
    if (room.rows <= 0 || (row.lane === LANES.late && room.late <= 0)) return false;
    room.rows -= row.runs.length;
    room.late -= row.runs.length;
    return true;
  });
}
