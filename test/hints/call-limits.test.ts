import { setTimeout as pause } from "node:timers/promises";
import { Redis } from "ioredis";
import { afterEach, describe, expect, it } from "vitest";
import { type CallLimits, createCallLimits, type Taken } from "../../src/hints/call-limits.ts";
import { connectHintRedis, type HintRedis } from "../../src/hints/connection.ts";
import { type Clock, systemClock } from "../../src/kernel/clock.ts";
import { silentLog } from "../../src/kernel/log.ts";
import { redisAvailable, startTestRedis, testRedis } from "../support/redis.ts";

const ends: (() => Promise<unknown> | unknown)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});

async function connect(url: string, prefix: string): Promise<HintRedis> {
  // Health is asked for rarely here: a Redis that falls silent is found out by who waits for it.
  const redis = connectHintRedis({ url, prefix, clock: systemClock, log: silentLog, pingEveryMs: 60_000 });
  ends.push(() => redis.stop());
  await redis.start();
  return redis;
}
const limits = (redis: HintRedis | undefined, clock: Clock = systemClock) => createCallLimits({ redis, clock });
const MINUTE = { points: 3, seconds: 60 };

async function takeTimes(calls: CallLimits, times: number, key = "tenant:a", limit = MINUTE): Promise<boolean[]> {
  const taken: Taken[] = [];
  for (let n = 0; n < times; n++) taken.push(await calls.take(key, limit));
  return taken.map((one) => one.isAllowed);
}

/** Whoever waits by it waits for an answer, however long that takes on this machine. */
const patient: Clock = { ...systemClock, after: () => ({ cancel: () => undefined }) };

/** A clock that notes down what is waited for. */
function countingWaits(): { clock: Clock; waits: number[] } {
  const waits: number[] = [];
  const note: Clock["after"] = (ms, fn) => {
    waits.push(ms);
    return systemClock.after(ms, fn);
  };
  return { clock: { ...systemClock, after: note }, waits };
}

function gone(redis: HintRedis): Promise<void> {
  return new Promise((resolve) => {
    if (!redis.health().available) return resolve();
    const stop = redis.onHealth(({ available }) => {
      if (available) return;
      stop();
      resolve();
    });
  });
}

describe("without Redis", () => {
  it("as many calls are allowed as the limit says; another key has its own", async () => {
    const calls = limits(undefined);
    expect(await takeTimes(calls, 5)).toEqual([true, true, true, false, false]);
    expect(await takeTimes(calls, 1, "tenant:b")).toEqual([true]);
  });

  it("what is left, and until when, is said; then it begins anew", async () => {
    const calls = limits(undefined);
    const second = { points: 2, seconds: 1 };
    expect(await calls.take("k", second)).toMatchObject({ isAllowed: true, remaining: 1 });
    await calls.take("k", second);
    const refused = await calls.take("k", second);
    expect(refused).toMatchObject({ isAllowed: false, remaining: 0 });
    expect(refused.resetMs).toBeGreaterThan(0);
    expect(refused.resetMs).toBeLessThanOrEqual(1000);
    await pause(refused.resetMs + 1);
    expect(await calls.take("k", second)).toMatchObject({ isAllowed: true });
  });
});

if (redisAvailable) {
  describe("with Redis", () => {
    it("all processes count together, under the installation's prefix alone, and nothing stays", async () => {
      const { url, prefix } = testRedis();
      const [one, other] = [limits(await connect(url, prefix), patient), limits(await connect(url, prefix), patient)];
      expect(await takeTimes(one, 2)).toEqual([true, true]);
      expect(await takeTimes(other, 2)).toEqual([true, false]);
      expect(await takeTimes(limits(await connect(url, `${prefix}x`), patient), 1)).toEqual([true]);
      const client = new Redis(url);
      ends.push(() => client.quit());
      const keys = await client.keys(`${prefix}:*`);
      expect(keys).toEqual([`${prefix}:calls:tenant:a`]);
      expect(await client.pttl(keys[0]!)).toBeGreaterThan(0);
    });

    it("one that is stopped holds nobody up: memory counts, and for a while it is not asked at all", async () => {
      const server = await startTestRedis();
      ends.push(() => server.stop());
      const { clock, waits } = countingWaits();
      const redis = await connect(server.url, "stopped");
      expect(await takeTimes(limits(redis, patient), 1)).toEqual([true]);
      const calls = limits(redis, clock);
      process.kill(server.pid, "SIGSTOP");
      ends.push(() => process.kill(server.pid, "SIGCONT"));
      // The first call waits for an answer that does not come; in memory nothing was counted before.
      expect(await takeTimes(calls, 5)).toEqual([true, true, true, false, false]);
      expect(waits).toEqual([100]);
    });

    it("one that is known to be gone is not asked", async () => {
      const server = await startTestRedis();
      const redis = await connect(server.url, "gone");
      const { clock, waits } = countingWaits();
      const calls = limits(redis, clock);
      await server.stop();
      await gone(redis);
      expect(await takeTimes(calls, 4)).toEqual([true, true, true, false]);
      expect(waits).toEqual([]);
    });

    it("one that refuses is answered for by memory", async () => {
      const { url, prefix } = testRedis();
      const redis = await connect(url, prefix);
      const client = new Redis(url);
      ends.push(() => client.quit());
      // The key is something else: the counting command fails.
      await client.lpush(`${prefix}:calls:tenant:a`, "x");
      ends.push(() => client.del(`${prefix}:calls:tenant:a`));
      expect(await takeTimes(limits(redis, patient), 4)).toEqual([true, true, true, false]);
    });
  });
}
