import { lateRoom } from "../../domain/dispatch/window.ts";
import type { Uuid } from "../../kernel/ids.ts";
import { findRemoteRows } from "../../store/rows/remote-work.ts";
import { laneKey, readUsage } from "../../store/rows/usage.ts";
import type { Authority } from "../authority.ts";
import { readServer } from "../server.ts";
import { startsNow } from "./direct.ts";

/** What the waiting workers of a tenant can do, and how much of it now. */
export type RemoteDemand = { tenantId: Uuid; jobs: readonly string[]; slots: number };
export type RemoteHint = { rowId: bigint; epoch: number; tenantId: Uuid; job: string };

const CLASS = "remote";

/**
 * Rows that one look reads for a tenant's jobs. Any of them may have all that there is, so each may have as much as there is
 * room for; of many each has less, and what it has beyond that is found by the next look.
 */
const ROWS_OF_LOOK = 5_000;
const LEAST_OF_JOB = 25;

/**
 * Work for tenants' own workers, straight from the outbox, as far as limits and start rates let it start. Read without
 * locks: two workers that are told of one row meet in the claim, which holds limits and rates exactly. `told`: rows that
 * somebody was told of a moment ago.
 */
export async function findRemoteWork(
  authority: Authority,
  demands: readonly RemoteDemand[],
  told: readonly bigint[],
): Promise<RemoteHint[]> {
  const { db } = authority;
  const lanes = demands.map(({ tenantId }) => ({ tenantId, class: CLASS }));
  const usage = await readUsage(db, lanes);
  const server = await readServer(db, 0);
  const rooms = new Map<Uuid, number>();
  for (const { tenantId, slots } of demands) {
    const lane = usage.get(laneKey({ tenantId, class: CLASS }));
    const room = lane === undefined ? slots : startsNow(lane, server.now).room;
    rooms.set(tenantId, Math.min(slots, room));
  }
  const wanted = demands.flatMap(({ tenantId, jobs }) => {
    const room = rooms.get(tenantId)!;
    if (room <= 0) return [];
    const rows = Math.min(room, Math.max(LEAST_OF_JOB, Math.ceil(ROWS_OF_LOOK / jobs.length)));
    return jobs.map((job) => ({ tenantId, job, rows, lateFirst: lateRoom(rows, authority.chance()) }));
  });
  if (wanted.length === 0) return [];
  const rows = await findRemoteRows(db, wanted, told);
  return rows.flatMap((row) => {
    const left = rooms.get(row.tenant_id)!;
    if (left <= 0) return [];
    rooms.set(row.tenant_id, left - 1);
    return [{ rowId: row.id, epoch: server.epoch, tenantId: row.tenant_id, job: row.job }];
  });
}
