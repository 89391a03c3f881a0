import type { Redis } from "ioredis";
import { messageOf } from "../kernel/errors.ts";
import type { Log } from "../kernel/log.ts";
import type { Service } from "../kernel/service.ts";
import type { HintRedis } from "./connection.ts";

/** Wake-ups over Redis pub/sub. Best effort: whoever is woken must also find its work without. */
export type Waker = Service & {
  /** Wakes every process that listens to `topic`. Never waits, never throws. */
  wake(topic: string): void;
  /** Calls back on wake-ups of `topic`, and once after each (re)connect, when some may have been missed. Returns the unsubscribe. */
  on(topic: string, callback: () => void): () => void;
};

export function createWaker(options: { redis: HintRedis; log: Log }): Waker {
  const { redis, log } = options;
  const { names } = redis;
  const listeners = new Map<string, Set<() => void>>();
  let subscriber: Redis | undefined;

  const call = (channel: string) => {
    for (const callback of listeners.get(channel) ?? []) callback();
  };

  async function subscribe(channels: string[]): Promise<void> {
    if (subscriber?.status !== "ready" || channels.length === 0) return;
    try {
      await subscriber.subscribe(...channels);
      channels.forEach(call);
    } catch (error) {
      log.debug({ error: messageOf(error) }, "Subscribing to wake-ups failed");
    }
  }

  return {
    name: "waker",
    wake(topic) {
      if (redis.health().available) redis.client.publish(names.wakeChannel(topic), "").catch(() => undefined);
    },
    on(topic, callback) {
      const channel = names.wakeChannel(topic);
      const of = listeners.get(channel) ?? new Set();
      listeners.set(channel, of.add(callback));
      if (of.size === 1) void subscribe([channel]);
      return () => {
        of.delete(callback);
        if (of.size > 0 || listeners.get(channel) !== of) return;
        listeners.delete(channel);
        if (subscriber?.status === "ready") subscriber.unsubscribe(channel).catch(() => undefined);
      };
    },
    async start() {
      if (subscriber !== undefined) return;
      // A subscriber of its own: ioredis must be told anew what to listen to, so that `on` decides, not the old socket.
      subscriber = redis.client.duplicate({ enableAutoPipelining: false, autoResubscribe: false });
      subscriber.on("error", (error) => log.debug({ error: messageOf(error) }, "Redis subscriber reports an error"));
      subscriber.on("message", call);
      subscriber.on("ready", () => void subscribe([...listeners.keys()]));
      await subscriber.connect().catch(() => undefined);
    },
    async stop() {
      subscriber?.disconnect();
      subscriber = undefined;
    },
  };
}
