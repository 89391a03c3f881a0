import { type Contender, shareOut } from "../../domain/dispatch/fairness.ts";
import { lateRoom } from "../../domain/dispatch/window.ts";
import type { Instant } from "../../kernel/clock.ts";
import type { Uuid } from "../../kernel/ids.ts";
import {
  type DispatchableRow,
  divideByTime,
  findDispatchable,
  findWaitingLanes,
  type WaitingLane,
} from "../../store/rows/dispatchable.ts";
import type { Authority } from "../authority.ts";
import { readServer } from "../server.ts";

export type DirectWork = {
  hints: { rowId: bigint; epoch: number; tenantId: Uuid; runCount: number }[];
  nowAt: Instant;
  /** When the next row that waits for its time may start. */
  nextAt: Instant | null;
};

/** Rows read for each slot: a lane may turn out shorter than its share, then the others fill in. */
const ROWS_PER_SLOT = 4;

/**
 * Work straight from the outbox, for when Redis does not answer or is not there: the same rows, the same claim. The
 * slots go to the tenants that hold the fewest for their weight; where they hold equally much, `turn`, which counts
 * the caller's calls, moves who comes first. Read without locks; two workers that take the same row meet in the claim.
 */
export async function findDirectWork(
  authority: Authority,
  class_: string,
  slots: number,
  turn: number,
): Promise<DirectWork> {
  const { db } = authority;
  const lanes = (await findWaitingLanes(db)).filter((lane) => lane.class === class_);
  if (lanes.length === 0) return { hints: [], nowAt: authority.clock.now(), nextAt: null };
  const server = await readServer(db, 0);
  const { due, nextAt } = divideByTime(lanes, server.now);
  // Every lane here has a row, so no more lanes than slots are needed.
  const first = inTurn(due, turn).slice(0, slots);
  if (first.length === 0) return { hints: [], nowAt: server.now, nextAt };

  const each = Math.ceil((ROWS_PER_SLOT * slots) / first.length);
  const lateFirst = () => lateRoom(Math.ceil(slots / first.length), authority.chance());
  const rows = await findDispatchable(
    db,
    first.map((lane) => {
      const rows = Math.min(each, roomUnder(lane));
      return { tenantId: lane.tenant_id, class: class_, rows, late: rows, lateFirst: lateFirst() };
    }),
  );
  const hints = deal(first, rows, slots).map((row) => ({
    rowId: row.id,
    epoch: server.epoch,
    tenantId: row.tenant_id,
    runCount: row.runs.length,
  }));
  return { hints, nowAt: server.now, nextAt };
}

/** Lanes below their limit, the fewest slots in use for their weight first, equals rotated by `turn`. */
function inTurn(lanes: readonly WaitingLane[], turn: number): WaitingLane[] {
  const start = turn % Math.max(1, lanes.length);
  return [...lanes.slice(start), ...lanes.slice(0, start)]
    .filter((lane) => roomUnder(lane) > 0)
    .sort((a, b) => a.running / a.weight - b.running / b.weight);
}

/** Runs the lane's limit allows to start; a plenty without a limit. */
function roomUnder(lane: WaitingLane): number {
  return lane.max_running === null ? 2 ** 31 - 1 : lane.max_running - lane.running;
}

/** Deals the slots to the lanes' rows. The last row may name more runs than slots are left: the claim puts them back. */
function deal(lanes: readonly WaitingLane[], rows: readonly DispatchableRow[], slots: number): DispatchableRow[] {
  const byTenant = Map.groupBy(rows, (row) => row.tenant_id);
  const inUse = lanes.reduce((sum, lane) => sum + lane.running, 0);
  const contenders = lanes.map(
    (lane, place): Contender => ({
      tenantId: lane.tenant_id,
      weight: lane.weight,
      inUse: lane.running,
      virtualTime: place / 1e6, // equals in the order they came
      wants: Math.min(roomUnder(lane), runsOf(byTenant.get(lane.tenant_id) ?? [])),
    }),
  );
  const pool = { slots: slots + inUse, inUse, reservedFraction: 0, totalWeight: 0 };
  let left = slots;
  return shareOut(pool, contenders, slots).flatMap((share) => {
    let room = share.slots;
    return byTenant.get(share.tenantId)!.filter((row) => {
      if (room <= 0 || left <= 0) return false;
      room -= row.runs.length;
      left -= row.runs.length;
      return true;
    });
  });
}

function runsOf(rows: readonly DispatchableRow[]): number {
  return rows.reduce((sum, row) => sum + row.runs.length, 0);
}
