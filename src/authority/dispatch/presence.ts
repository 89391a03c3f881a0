import type { Uuid } from "../../kernel/ids.ts";
import {
  forgetDeadWorkers,
  hearRemoteWorker,
  type OwnWorker,
  type RemoteWorker,
  removeScanner,
  removeWorker,
  touchRemoteWorker,
  touchScanner,
  touchWorker,
} from "../../store/rows/registry.ts";
import type { Authority } from "../authority.ts";

/** Who is alive. Single statements about rows that only their owner writes. */

export function announceWorker(authority: Authority, worker: OwnWorker): Promise<void> {
  return touchWorker(authority.db, worker);
}

export function announceRemoteWorker(authority: Authority, worker: RemoteWorker): Promise<void> {
  return touchRemoteWorker(authority.db, worker);
}

export function noteRemoteWorker(authority: Authority, id: Uuid): Promise<void> {
  return hearRemoteWorker(authority.db, id);
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
