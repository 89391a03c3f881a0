import type { SlotAccounts } from "../../domain/dispatch/slot-accounts.ts";
import { roomInWindow } from "../../domain/dispatch/start-rate.ts";
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
import type { Usage } from "../../store/rows/usage.ts";
import type { Authority } from "../authority.ts";
import { readServer } from "../server.ts";

export type DirectWork = {
  hints: { rowId: bigint; epoch: number; tenantId: Uuid; runCount: number }[];
  nowAt: Instant;
  /** When the next row that waits for its time, or for its tenant's next second, may start. */
  nextAt: Instant | null;
};

/** Rows read for each slot: a lane may turn out shorter than its share, then the others fill in. */
const ROWS_PER_SLOT = 4;

type OpenLane = WaitingLane & { room: number };

/**
 * Work straight from the outbox, for when Redis does not answer or is not there: the same rows, the same claim, and the
 * same accounts of the worker's slots decide whose turn it is. Read without locks; two workers that take the same row
 * meet in the claim, which also holds limits and start rates exactly.
 */
export async function findDirectWork(
  authority: Authority,
  class_: string,
  slots: number,
  accounts: SlotAccounts,
): Promise<DirectWork> {
  const { db } = authority;
  const lanes = (await findWaitingLanes(db)).filter((lane) => lane.class === class_);
  if (lanes.length === 0) return { hints: [], nowAt: authority.clock.now(), nextAt: null };
  const server = await readServer(db, 0);
  const { due, nextAt: nextDueAt } = divideByTime(lanes, server.now);
  for (const lane of due) accounts.weigh(lane.tenant_id, lane.weight);
  const { open, nextAt: nextRoomAt } = underTheirRates(due, server.now);
  const nextAt = earlier(nextDueAt, nextRoomAt);
  // Every lane here has a row, so no more lanes than slots are needed.
  const first = inTurn(open, accounts).slice(0, slots);
  if (first.length === 0) return { hints: [], nowAt: server.now, nextAt };

  const each = Math.ceil((ROWS_PER_SLOT * slots) / first.length);
  const lateFirst = () => lateRoom(Math.ceil(slots / first.length), authority.chance());
  const rows = await findDispatchable(
    db,
    first.map((lane) => {
      const rows = Math.min(each, lane.room);
      return { tenantId: lane.tenant_id, class: class_, rows, late: rows, lateFirst: lateFirst() };
    }),
  );
  const hints = deal(first, rows, slots, accounts).map((row) => ({
    rowId: row.id,
    epoch: server.epoch,
    tenantId: row.tenant_id,
    runCount: row.runs.length,
  }));
  return { hints, nowAt: server.now, nextAt };
}

/** Lanes with the runs that their limits and rates let start now, and when the first of those at their rate may go on. */
function underTheirRates(due: readonly WaitingLane[], nowAt: Instant): { open: OpenLane[]; nextAt: Instant | null } {
  let nextAt: Instant | null = null;
  const open = due.flatMap((lane): OpenLane[] => {
    const { room, againAt } = startsNow(lane, nowAt);
    nextAt = earlier(nextAt, againAt);
    return room <= 0 ? [] : [{ ...lane, room }];
  });
  return { open, nextAt };
}

/** How many runs of a lane its limit and its rate let start now, and when it may go on that is at its rate. */
export function startsNow(
  lane: Omit<Usage, "tenant_id" | "class">,
  nowAt: Instant,
): { room: number; againAt: Instant | null } {
  const underLimit = lane.max_running === null ? 2 ** 31 - 1 : lane.max_running - lane.running;
  if (underLimit <= 0 || lane.start_rate_per_second === null) return { room: underLimit, againAt: null };
  const seen = { windowAt: lane.starts_window_at, starts: lane.starts_in_window };
  const { room, againAt } = roomInWindow(seen, lane.start_rate_per_second, nowAt);
  return { room: Math.min(underLimit, room), againAt: room === 0 ? againAt : null };
}

function earlier(one: Instant | null, other: Instant | null): Instant | null {
  if (one === null || other === null) return one ?? other;
  return Math.min(one, other);
}

function inTurn(lanes: readonly OpenLane[], accounts: SlotAccounts): OpenLane[] {
  const byTenant = new Map(lanes.map((lane) => [lane.tenant_id, lane]));
  const contenders = lanes.map((lane) => accounts.contender(lane.tenant_id, lane.room));
  return accounts.order(contenders).map((one) => byTenant.get(one.tenantId as Uuid)!);
}

/** Deals the slots to the lanes' rows. The last row may name more runs than slots are left: the claim puts them back. */
function deal(
  lanes: readonly OpenLane[],
  rows: readonly DispatchableRow[],
  slots: number,
  accounts: SlotAccounts,
): DispatchableRow[] {
  const byTenant = Map.groupBy(rows, (row) => row.tenant_id);
  const contenders = lanes.map((lane) =>
    accounts.contender(lane.tenant_id, Math.min(lane.room, runsOf(byTenant.get(lane.tenant_id) ?? []))),
  );
  let left = slots;
  return accounts.share(contenders, slots).flatMap((share) => {
    let room = share.slots;
    return byTenant.get(share.tenantId as Uuid)!.filter((row) => {
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
