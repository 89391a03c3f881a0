import type { Uuid } from "../../kernel/ids.ts";
import {
  forgetDeadWorkers,
  removeScanner,
  removeWorker,
  touchScanner,
  touchWorker,
  type WorkerSlots,
} from "../../store/rows/registry.ts";
import type { Authority } from "../authority.ts";

/** Who is alive. Single statements about rows that only their owner writes. */

export function announceWorker(
  authority: Authority,
  worker: { id: Uuid; name: string; slots: WorkerSlots; version: string },
): Promise<void> {
  return touchWorker(authority.db, worker);
}

export function dismissWorker(authority: Authority, id: Uuid): Promise<void> {
  return removeWorker(authority.db, id);
}

export function forgetWorkers(authority: Authority): Promise<void> {
  return forgetDeadWorkers(authority.db);
}

/** Renews a scanner's lease; answers the live scanners, this one included. */
export function announceScanner(authority: Authority, id: Uuid, ttlMs: number): Promise<Uuid[]> {
  return touchScanner(authority.db, id, ttlMs);
}

export function dismissScanner(authority: Authority, id: Uuid): Promise<void> {
  return removeScanner(authority.db, id);
}
