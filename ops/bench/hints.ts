/**
 * How many hints a second one connection of one process publishes, fetches and acknowledges.
 *   node ops/bench/hints.ts [queues=100] [hints=40000] [runs per hint=1]
 */

import { findRedisBinary, startRedis } from "../../src/app/embedded/redis.ts";
import { SlotAccounts } from "../../src/domain/dispatch/slot-accounts.ts";
import { connectHintRedis } from "../../src/hints/connection.ts";
import { createConsumer } from "../../src/hints/consumer.ts";
import { createPublisher, type PublishableRow } from "../../src/hints/publisher.ts";
import { createWaker } from "../../src/hints/wake.ts";
import { systemClock as clock } from "../../src/kernel/clock.ts";
import { silentLog as log } from "../../src/kernel/log.ts";

const [queues = 100, hints = 40_000, runCount = 1] = process.argv.slice(2).map(Number);
const HINTS_A_CALL = 10;
const CALLERS = 8;

const binary = findRedisBinary(process.env.PATH);
if (binary === undefined) throw new Error("this bench needs redis-server or valkey-server on PATH");
const server = await startRedis({ binary, log: () => undefined });
const redis = connectHintRedis({ url: server.url, clock, log, commandTimeoutMs: 20_000 });
await redis.start();
const waker = createWaker({ redis, log });
await waker.start();
const publisher = createPublisher({ redis, clock, log });
const accounts = new SlotAccounts({ slots: 1_000_000, reservedFraction: 0.1, now: () => clock.monotonic() });
const classes = [{ class: "short", accounts }];
const consumer = createConsumer({ redis, waker, clock, log, classes });
await consumer.start();

async function redisCpuMs(): Promise<number> {
  const info = await redis.client.info("cpu");
  const seconds = (name: string) => Number(new RegExp(`used_cpu_${name}:([\\d.]+)`).exec(info)?.[1] ?? 0);
  return (seconds("user") + seconds("sys")) * 1_000;
}

async function measure(what: string, work: () => Promise<void>): Promise<void> {
  const [startedAt, ours, theirs] = [performance.now(), process.cpuUsage(), await redisCpuMs()];
  await work();
  const tookMs = performance.now() - startedAt;
  const { user, system } = process.cpuUsage(ours);
  const redisUs = (((await redisCpuMs()) - theirs) * 1_000) / hints!;
  const line = [
    `${Math.round((hints! / tookMs) * 1_000)} hints/s`,
    `${((user + system) / hints!).toFixed(1)} µs of ours a hint`,
    `${redisUs.toFixed(1)} µs of Redis a hint`,
    `${Math.round(process.memoryUsage().heapUsed / 2 ** 20)} MB heap`,
  ];
  console.log(`${what}: ${line.join(", ")}`);
}

const tenant = (n: number) => `0199f0a0-7a3b-8c1d-9e2f-${String(n).padStart(12, "0")}`;
const rows: PublishableRow[] = Array.from({ length: hints }, (_, n) => ({
  rowId: BigInt(n + 1),
  publishNo: 1,
  epoch: 1,
  shard: 0,
  tenantId: tenant(n % queues),
  class: "short",
  lane: 1,
  runCount,
}));

await measure(`publish over ${queues} queues`, async () => {
  const { failed } = await publisher.publish(rows);
  if (failed.length > 0) throw new Error(`${failed.length} rows were not published`);
});

await measure(`fetch and acknowledge, ${HINTS_A_CALL} a call`, async () => {
  let done = 0;
  const call = async () => {
    while (done < hints!) {
      const some = await consumer.fetch("short", HINTS_A_CALL * runCount);
      if (some.length === 0) return;
      done += some.length;
      await consumer.acknowledge(some);
    }
  };
  await Promise.all(Array.from({ length: CALLERS }, call));
  if (done !== hints) throw new Error(`fetched ${done} hints of ${hints}`);
});

await consumer.stop();
await waker.stop();
await redis.stop();
await server.stop();
