import type { Instant } from "../kernel/clock.ts";
import type { HintRedis } from "./connection.ts";
import { HintQueues } from "./queues.ts";

/** Where a hint is. `fetched`: a worker took it at `fetchedAt` (that worker's clock) and did not acknowledge yet. */
export type HintSighting =
  | { state: "waiting" | "finished" | "missing"; fetchedAt: undefined }
  | { state: "fetched"; fetchedAt: Instant };

export type HintAddress = { hintId: string; tenantId: string; class: string };

/** Redis as the sweepers see it. Everything rejects when Redis does not answer. */
export type Inspector = {
  /** One sighting per hint, in order. One pipelined HMGET each. */
  look(hints: readonly HintAddress[]): Promise<HintSighting[]>;
  /** Ends hints that nobody will end; Bull Board shows them as failed, with `why`. Acknowledging one later is harmless. */
  retire(hints: readonly HintAddress[], why?: string): Promise<void>;
  /** Fetched, unacknowledged hints of a queue, oldest first, at most `most`: whose rows are gone may be retired. */
  fetched(tenantId: string, class_: string, most: number): Promise<HintAddress[]>;
};

const AT_ONCE = 2_000;
const QUEUES_REMEMBERED = 20_000;

export function createInspector(options: { redis: HintRedis }): Inspector {
  const { redis } = options;
  const queues = new HintQueues(redis, QUEUES_REMEMBERED);
  return {
    async look(hints) {
      await queues.open();
      const sightings: HintSighting[] = [];
      for (let at = 0; at < hints.length; at += AT_ONCE) {
        const some = hints.slice(at, at + AT_ONCE).map(async ({ hintId, tenantId, class: class_ }) => {
          const key = queues.jobKey(tenantId, class_, hintId);
          return toSighting(await redis.client.hmget(key, "finishedOn", "processedOn", "timestamp"));
        });
        sightings.push(...(await Promise.all(some)));
      }
      return sightings;
    },
    async retire(hints, why = "fetched, but not claimed in time: its row is published again") {
      await queues.open();
      await Promise.all(hints.map((one) => queues.discard(one.tenantId, one.class, one.hintId, why)));
    },
    async fetched(tenantId, class_, most) {
      await queues.open();
      const ids = await queues.active(tenantId, class_, most);
      return ids.map((hintId) => ({ hintId, tenantId, class: class_ }));
    },
  };
}

/** Every job that exists has a timestamp; without one, only traces of it are left. */
function toSighting([finishedOn, processedOn, timestamp]: (string | null)[]): HintSighting {
  if (finishedOn) return { state: "finished", fetchedAt: undefined };
  if (!timestamp) return { state: "missing", fetchedAt: undefined };
  if (processedOn) return { state: "fetched", fetchedAt: Number(processedOn) };
  return { state: "waiting", fetchedAt: undefined };
}
