import { LRUCache } from "lru-cache";
import type { Authority } from "../../authority/authority.ts";
import { announceRemoteWorker, forgetWorkers, noteRemoteWorker } from "../../authority/dispatch/presence.ts";
import type { Clock } from "../../kernel/clock.ts";
import { messageOf } from "../../kernel/errors.ts";
import { digestOf, type Uuid } from "../../kernel/ids.ts";

/**
 * Writes down which workers of tenants are heard of: beside their calls, and no call fails for it. A tenant's are written
 * down one by one: thousands at once would have all connections, and every other call would wait behind them.
 */
export type Presence = {
  /** It asks for work. */
  asks(worker: Asking): void;
  /** It is at work, and asks for none. */
  works(worker: Pick<Asking, "tenantId" | "name">): void;
};

type Asking = { tenantId: Uuid; name: string; jobs: readonly string[]; concurrency: number; version: string };

const NOTED_EVERY_MS = 5_000;
const FORGOTTEN_EVERY_MS = 600_000;
const MOST_REMEMBERED = 10_000;
/** Of a tenant; beyond that a worker is written down when it is heard of again. */
const MOST_WAITING = 100;

export function createPresence(deps: { authority: Authority; clock: Clock }): Presence {
  const { authority, clock } = deps;
  const notedMs = new LRUCache<string, number>({ max: MOST_REMEMBERED });
  /** By tenant, what is still to be written. */
  const lines = new Map<Uuid, Map<string, () => Promise<void>>>();
  let forgottenMs = clock.monotonic();

  function note(
    what: "asks" | "works",
    { tenantId, name }: Pick<Asking, "tenantId" | "name">,
    write: (id: Uuid) => Promise<void>,
  ) {
    const id = digestOf(`${tenantId}\n${name}`);
    const key = `${what} ${id}`;
    const nowMs = clock.monotonic();
    if (nowMs - (notedMs.get(key) ?? Number.NEGATIVE_INFINITY) < NOTED_EVERY_MS) return;
    const line = lines.get(tenantId);
    if (line !== undefined && line.size >= MOST_WAITING) return;
    notedMs.set(key, nowMs);
    const isLong = nowMs - forgottenMs >= FORGOTTEN_EVERY_MS;
    if (isLong) forgottenMs = nowMs;
    const task = () => (isLong ? write(id).then(() => forgetWorkers(authority)) : write(id));
    if (line !== undefined) line.set(key, task);
    else void writeDown(tenantId, new Map([[key, task]]));
  }

  async function writeDown(tenantId: Uuid, line: Map<string, () => Promise<void>>): Promise<void> {
    lines.set(tenantId, line);
    // What is added meanwhile has its turn, too.
    for (const [key, task] of line) {
      line.delete(key);
      try {
        await task();
      } catch (error) {
        notedMs.delete(key);
        authority.log.warn({ reason: messageOf(error) }, "that a worker was heard of is not written down");
      }
    }
    lines.delete(tenantId);
  }

  return {
    asks: (worker) => note("asks", worker, (id) => announceRemoteWorker(authority, { id, ...worker })),
    works: (worker) => note("works", worker, (id) => noteRemoteWorker(authority, id)),
  };
}
