import { roomOf } from "../../domain/window.ts";
import type { Instant } from "../../kernel/clock.ts";
import type { Uuid } from "../../kernel/ids.ts";
import { findDispatchable, findWaitingLanes } from "../../store/rows/dispatchable.ts";
import type { Authority } from "../authority.ts";
import { readServer } from "../server.ts";

export type DirectWork = {
  hints: { rowId: bigint; epoch: number; tenantId: Uuid; runCount: number }[];
  nowAt: Instant;
  /** When the next row that waits for its time may start. */
  nextAt: Instant | null;
};

/**
 * Work straight from the outbox, for when Redis does not answer or is not there: the same rows, the same claim. A fair
 * batch: every lane gets its share of the slots by weight, whatever the length of its backlog. Read without locks; two
 * workers that take the same row meet in the claim.
 */
export async function findDirectWork(authority: Authority, class_: string, slots: number): Promise<DirectWork> {
  const { db } = authority;
  const lanes = (await findWaitingLanes(db)).filter((lane) => lane.class === class_);
  if (lanes.length === 0) return { hints: [], nowAt: authority.clock.now(), nextAt: null };
  const server = await readServer(db, 0);
  const due = lanes.filter((lane) => lane.available_at <= server.now);
  const later = lanes.filter((lane) => lane.available_at > server.now).map((lane) => lane.available_at);
  const nextAt = later.length === 0 ? null : Math.min(...later);
  const rooms = roomOf(
    due.map((lane) => ({
      tenantId: lane.tenant_id,
      class: class_,
      weight: lane.weight,
      running: lane.running,
      maxRunning: lane.max_running,
      published: 0,
    })),
    slots,
  );
  const wanted = due.flatMap((lane, i) =>
    rooms[i]! > 0 ? [{ tenantId: lane.tenant_id, class: class_, rows: rooms[i]! }] : [],
  );
  const rows = wanted.length === 0 ? [] : await findDispatchable(db, wanted);
  const hints: DirectWork["hints"] = [];
  let left = slots;
  for (const row of rows) {
    if (left <= 0) break;
    left -= row.runs.length;
    hints.push({ rowId: row.id, epoch: server.epoch, tenantId: row.tenant_id, runCount: row.runs.length });
  }
  return { hints, nowAt: server.now, nextAt };
}
