import { SlotAccounts } from "../../src/domain/dispatch/slot-accounts.ts";
import { connectHintRedis, type HintRedis } from "../../src/hints/connection.ts";
import { type Consumer, type ConsumerOptions, createConsumer } from "../../src/hints/consumer.ts";
import { hintJobId } from "../../src/hints/names.ts";
import { createPublisher, type PublishableRow, type Publisher } from "../../src/hints/publisher.ts";
import { createWaker, type Waker } from "../../src/hints/wake.ts";
import { systemClock } from "../../src/kernel/clock.ts";
import { silentLog } from "../../src/kernel/log.ts";
import type { Service } from "../../src/kernel/service.ts";
import { stopAll } from "../../src/kernel/service.ts";

export type WorkerOptions = Pick<Partial<ConsumerOptions>, "lookEveryMs" | "capacity"> & {
  slots?: number;
  reservedFraction?: number;
};

/** A relay and workers on one Redis. */
export type HintWorld = {
  redis: HintRedis;
  waker: Waker;
  publisher: Publisher;
  /**
   * A worker process: connection, subscriber and consumer of its own. It looks at what is ready when it first fetches and
   * when it is woken; a look of its own in between, just before a publish, would let that fetch come too early.
   */
  worker(options?: WorkerOptions): Promise<Consumer & { accounts: SlotAccounts }>;
  /** `count` rows of one tenant with fresh ids. */
  rows(tenant: number, count: number, more?: Partial<PublishableRow>): PublishableRow[];
  stop(): Promise<void>;
};

export const tenantId = (n: number) => `0199f0a0-7a3b-8c1d-9e2f-${String(n).padStart(12, "0")}`;

export const addressOf = (row: PublishableRow) => ({
  hintId: hintJobId(row),
  tenantId: row.tenantId,
  class: row.class,
});

let lastRow = 0n;

export async function startHintWorld(
  server: { url: string; prefix?: string },
  timing: { commandTimeoutMs?: number; pingEveryMs?: number } = {},
): Promise<HintWorld> {
  const services: Service[] = [];
  const clock = systemClock;
  const log = silentLog;
  const open = async () => {
    const redis = connectHintRedis({ ...server, clock, log, ...timing });
    const waker = createWaker({ redis, log });
    services.push(redis, waker);
    await redis.start();
    await waker.start();
    return { redis, waker };
  };
  const { redis, waker } = await open();
  return {
    redis,
    waker,
    publisher: createPublisher({ redis, clock, log }),
    async worker({ slots = 1_000, reservedFraction = 0.1, ...options } = {}) {
      const own = await open();
      const accounts = new SlotAccounts({ slots, reservedFraction, now: () => clock.monotonic() });
      const classes = [{ class: "short", accounts }];
      const consumer = createConsumer({ ...own, clock, log, classes, lookEveryMs: 60_000, ...options });
      services.push(consumer);
      await consumer.start();
      return { ...consumer, accounts };
    },
    rows: (tenant, count, more = {}) =>
      Array.from({ length: count }, () => ({
        rowId: ++lastRow,
        publishNo: 1,
        epoch: 1,
        shard: 0,
        tenantId: tenantId(tenant),
        class: "short",
        lane: 1,
        runCount: 1,
        ...more,
      })),
    stop: () => stopAll(services),
  };
}

/** Repeats `attempt` until it returns something, for things that other processes bring about. */
export async function eventually<T>(
  attempt: () => Promise<T | undefined> | T | undefined,
  withinMs = 60_000,
): Promise<T> {
  const until = performance.now() + withinMs;
  while (performance.now() < until) {
    const found = await attempt();
    if (found !== undefined && found !== false) return found;
    await systemClock.sleep(10);
  }
  throw new Error("it did not come about in time");
}
