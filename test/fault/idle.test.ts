import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { startPostgresProxy } from "../dispatch/postgres-proxy.ts";
import { redisAvailable, startTestRedis } from "../support/redis.ts";
import { dueSchedule, startNode } from "../support/system.ts";
import { createWorld } from "../support/world.ts";
import { createLedger } from "./ledger.ts";

const WATCHED_MS = 6_000;
/** The terms of an installation that sets none. */
const CONFIG = { PUNCTUAL_LEASE_TTL_MS: "60000", PUNCTUAL_HEARTBEAT_MS: "10000", PUNCTUAL_LEASE_MARGIN_MS: "5000" };

/** Calls per second by name, most first. */
type Rates = [name: string, perSecond: number][];

function ratesOf(counts: Iterable<[string, number]>): Rates {
  return [...counts]
    .map(([name, count]): [string, number] => [name.slice(0, 60), (count * 1_000) / WATCHED_MS])
    .filter(([, rate]) => rate > 0)
    .toSorted((a, b) => b[1] - a[1]);
}

const sum = (rates: Rates) => rates.reduce((all, [, rate]) => all + rate, 0);

if (redisAvailable) {
  test("an idle installation of 100 schedules is nearly silent", async () => {
    const world = await createWorld();
    const redis = await startTestRedis();
    const proxy = await startPostgresProxy(world.url);
    const node = await startNode({
      roles: ["scheduler", "relay", "sweeper", "worker", "api"],
      url: proxy.url,
      redis: { url: redis.url, prefix: "punctual" },
      config: CONFIG,
      jobs: [createLedger().job],
    });
    try {
      for (let n = 0; n < 100; n++) {
        const dueAgoMs = -3_600_000;
        await dueSchedule(world.authority, world.admin, {
          tenantId: world.tenantId,
          runs: 1,
          job: "test.count",
          dueAgoMs,
        });
      }
      // Start-up has its own statements, and naps grow to their longest.
      await sleep(3_000);
      const { client } = node.core.redis!.connection;
      proxy.statements.clear();
      await client.config("RESETSTAT");
      await sleep(WATCHED_MS);
      const statements = ratesOf(proxy.statements);
      const commands = ratesOf(
        [...(await client.info("commandstats")).matchAll(/cmdstat_(\S+?):calls=(\d+)/g)].map(
          ([, name, calls]): [string, number] => [name!, Number(calls)],
        ),
      );
      const all = sum(statements) + sum(commands);
      // Who saw nothing proves nothing: a scanner that sleeps still looks every second.
      expect(Math.min(sum(statements), sum(commands))).toBeGreaterThan(0);
      expect(all, JSON.stringify({ statements, commands })).toBeLessThan(50);
    } finally {
      await node.stop();
      await proxy.stop();
      await redis.stop();
      await world.close();
    }
  });
}
