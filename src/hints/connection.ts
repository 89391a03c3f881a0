import { once } from "node:events";
import { QueueKeys, RedisConnection, RedisQueueBackend } from "bullmq";
import { Redis } from "ioredis";
import type { Clock, Instant, Timer } from "../kernel/clock.ts";
import { messageOf } from "../kernel/errors.ts";
import type { Log } from "../kernel/log.ts";
import type { Service } from "../kernel/service.ts";
import { createNames, DEFAULT_PREFIX, type Names } from "./names.ts";

/** Whether Redis answers, and since when that is so. */
export type RedisHealth = { available: boolean; since: Instant };

export type HintRedis = Service & {
  readonly names: Names;
  /** One connection for everything but pub/sub; commands of one tick travel together (auto-pipelining). */
  readonly client: Redis;
  health(): RedisHealth;
  /** Calls back on every change of `health().available`; returns the unsubscribe. */
  onHealth(callback: (health: RedisHealth) => void): () => void;
  /** BullMQ's own data access bound to `client`; `forQueue` makes siblings for real queues. Rejects while Redis is away. */
  backend(): Promise<RedisQueueBackend>;
  /** A command timed out: nothing is sent any more until a PING came back. */
  suspect(): void;
};

export type HintRedisOptions = {
  url: string;
  clock: Clock;
  log: Log;
  prefix?: string;
  /** A command without a reply for so long fails. Default 2,000 ms. */
  commandTimeoutMs?: number;
  /** Pause between two PINGs. Default 1,000 ms. */
  pingEveryMs?: number;
};

// A connection that answered nothing for so long is torn down: its peer may be gone without a word.
const RECONNECT_AFTER_MS = 10_000;

/**
 * A Redis connection that fails rather than waits: no offline queue, nothing resent after a reconnect (a hint sent
 * twice is harmless, a relay that hangs is not), every command bounded. Reconnects for ever, at most a second apart.
 */
export function connectHintRedis(options: HintRedisOptions): HintRedis {
  const { clock, log, commandTimeoutMs = 2_000, pingEveryMs = 1_000 } = options;
  const names = createNames(options.prefix ?? DEFAULT_PREFIX);
  const client = new Redis(options.url, {
    lazyConnect: true,
    enableOfflineQueue: false,
    autoResendUnfulfilledCommands: false,
    maxRetriesPerRequest: null,
    enableAutoPipelining: true,
    // A PING behind a stuck pipeline would be told late that Redis is back.
    autoPipeliningIgnoredCommands: ["ping"],
    connectTimeout: commandTimeoutMs,
    commandTimeout: commandTimeoutMs,
    // The old primary came back as a replica: the address may by now lead to the new one.
    reconnectOnError: (error) => error.message.startsWith("READONLY"),
    retryStrategy: (attempt) => Math.min(50 * 2 ** Math.min(attempt, 5), 1_000),
  });
  const callbacks = new Set<(health: RedisHealth) => void>();
  let health: RedisHealth = { available: false, since: clock.now() };
  let backend: Promise<RedisQueueBackend> | undefined;
  let timer: Timer | undefined;
  let running = false;
  let unansweredSince = clock.monotonic();
  let pinging: Promise<void> | undefined;

  client.on("error", (error) => log.debug({ error: messageOf(error) }, "Redis connection reports an error"));
  client.on("ready", () => void ping());
  client.on("close", () => become(false));

  function become(available: boolean): void {
    if (health.available === available) return;
    health = { available, since: clock.now() };
    if (running) log[available ? "info" : "warn"](available ? "Redis answers" : "Redis does not answer");
    for (const callback of callbacks) callback(health);
  }

  function ping(): Promise<void> {
    pinging ??= client
      .ping()
      .then(
        () => {
          unansweredSince = clock.monotonic();
          if (running) become(true);
        },
        () => become(false),
      )
      .finally(() => {
        pinging = undefined;
      });
    return pinging;
  }

  async function watch(): Promise<void> {
    await ping();
    if (!running) return;
    if (clock.monotonic() - unansweredSince > RECONNECT_AFTER_MS) {
      unansweredSince = clock.monotonic();
      if (client.status === "ready" || client.status === "connect") client.disconnect(true);
    }
    timer = clock.after(pingEveryMs, () => void watch());
  }

  async function openBackend(): Promise<RedisQueueBackend> {
    // Not waiting for ready here: a connection that is away must be an error now, and a fresh attempt next time.
    if (!health.available) throw new Error("Redis does not answer");
    const connection = new RedisConnection(client, { shared: true, blocking: false, skipWaitingForReady: true });
    connection.on("error", () => undefined);
    await connection.client;
    const keys = new QueueKeys(names.prefix);
    const keysOf = (queue: string) => (type: string) => keys.toKey(queue, type);
    const opts = { connection: client, prefix: names.prefix };
    const root = new RedisQueueBackend(connection, "root", keys.getKeys("root"), keysOf("root"), opts);
    root.on("error", () => undefined);
    return root;
  }

  return {
    name: "hint-redis",
    names,
    client,
    health: () => health,
    onHealth(callback) {
      callbacks.add(callback);
      return () => callbacks.delete(callback);
    },
    backend() {
      backend ??= openBackend().catch((error: unknown) => {
        backend = undefined;
        throw error;
      });
      return backend;
    },
    suspect: () => become(false),
    /** Resolves with the first verdict, good or bad: a missing Redis does not keep a process from starting. */
    async start() {
      if (running) return;
      running = true;
      unansweredSince = clock.monotonic();
      await client.connect().catch(() => undefined);
      await watch();
    },
    async stop() {
      running = false;
      timer?.cancel();
      const live = client.status === "ready" || client.status === "connect";
      const ended = live ? once(client, "end") : undefined;
      client.disconnect();
      await ended;
      await pinging;
      become(false);
    },
  };
}
