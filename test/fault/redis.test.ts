import { setTimeout as sleep } from "node:timers/promises";
import { expect, inject, test } from "vitest";
import { startRedis } from "../../src/app/embedded/redis.ts";
import { createInspector } from "../../src/hints/inspector.ts";
import { hintJobId } from "../../src/hints/names.ts";
import { createPublisher } from "../../src/hints/publisher.ts";
import { silentLog } from "../../src/kernel/log.ts";
import { redisAvailable, startTestRedis } from "../support/redis.ts";
import {
  allSucceed,
  countRuns,
  dueSchedule,
  type Node,
  type NodeOptions,
  startNode,
  until,
} from "../support/system.ts";
import { createWorld } from "../support/world.ts";
import { createLedger, type Ledger } from "./ledger.ts";

/** A system of this test's own: the tests of this file run side by side, for most of them wait. */
async function openScene(onTestFinished: (close: () => Promise<void>) => void) {
  const world = await createWorld();
  const nodes: Node[] = [];
  const servers: { stop(): Promise<void> }[] = [];
  let tenants = 0;
  onTestFinished(async () => {
    for (const node of nodes) await node.stop();
    for (const server of servers) await server.stop();
    await world.check();
    await world.close();
  });
  return {
    world,
    servers,
    async start(roles: NodeOptions["roles"], redisUrl: string, ledger: Ledger, slots = 20): Promise<Node> {
      const config = { PUNCTUAL_SLOTS_SHORT: String(slots) };
      const redis = { url: redisUrl, prefix: "punctual" };
      const node = await startNode({ roles, url: world.url, redis, config, jobs: [ledger.job] });
      nodes.push(node);
      return node;
    },
    async backlog(tenantCount: number, runsEach: number): Promise<number> {
      for (let n = 0; n < tenantCount; n++) {
        const tenantId = await world.newTenant(`tenant ${tenants++}`);
        await dueSchedule(world.authority, world.admin, { tenantId, runs: runsEach, job: "test.count" });
      }
      return tenantCount * runsEach;
    },
    succeeded: async () => (await countRuns(world.admin)).succeeded ?? 0,
    async expectOneAttemptEach() {
      const { rows } = await world.admin.query("select count(*)::int as n from attempt where n > 1");
      expect(rows).toEqual([{ n: 0 }]);
    },
  };
}

if (redisAvailable) {
  test.concurrent("a run whose hint is published again and again, beside other workers, runs once", async ({
    onTestFinished,
  }) => {
    const { world, servers, start, backlog, expectOneAttemptEach } = await openScene(onTestFinished);
    const redis = await startTestRedis();
    servers.push(redis);
    const gate = Promise.withResolvers<void>();
    const ledger = createLedger(0, gate.promise);
    const feeder = await start(["scheduler", "relay"], redis.url, ledger);
    const runs = await backlog(3, 20);
    await until("all are published", async () => {
      const { rows } = await world.admin.query(
        "select coalesce(sum(cardinality(runs)), 0)::int as n from outbox where published_at is not null",
      );
      return rows[0].n === runs;
    });
    const { core } = feeder;
    const publisher = createPublisher({ redis: core.redis!.connection, clock: core.clock, log: silentLog });
    const { rows } = await world.admin.query("select id, tenant_id, class, lane, runs, publish_no from outbox");
    const duplicates = (from: number) =>
      rows.flatMap((row) =>
        [1, 2, 3].map((n) => ({
          rowId: row.id as bigint,
          publishNo: row.publish_no + from + n,
          epoch: 1,
          shard: 0,
          tenantId: row.tenant_id as string,
          class: row.class as string,
          lane: row.lane as 1,
          runCount: row.runs.length as number,
        })),
      );
    const inspector = createInspector({ redis: core.redis!.connection });
    const publishAgain = async (from: number) => {
      expect((await publisher.publish(duplicates(from))).published).toHaveLength(3 * rows.length);
    };
    const allAreTaken = async (from: number) => {
      const hints = duplicates(from).map((row) => ({ ...row, hintId: hintJobId(row) }));
      return (await inspector.look(hints)).every(({ state }) => state === "finished" || state === "missing");
    };
    // Beside the hints of runs that wait, then of runs that are running, then of runs that have ended.
    await publishAgain(0);
    await start(["worker"], redis.url, ledger, 100);
    await start(["worker"], redis.url, ledger, 100);
    await until("all are running", async () => (await countRuns(world.admin)).running === runs);
    await publishAgain(10);
    await until("the hints are taken", () => allAreTaken(10));
    gate.resolve();
    await allSucceed(world.admin, runs);
    await publishAgain(20);
    await until("the hints are taken", () => allAreTaken(20));
    await allSucceed(world.admin, runs);
    ledger.expectEachOnce(runs);
    await expectOneAttemptEach();
  });

  test.concurrent("2,000 outstanding runs survive FLUSHALL: none is lost, none runs twice", async ({
    onTestFinished,
  }) => {
    const { world, servers, start, backlog, succeeded, expectOneAttemptEach } = await openScene(onTestFinished);
    const redis = await startTestRedis();
    servers.push(redis);
    const ledger = createLedger(5);
    const main = await start(["scheduler", "relay", "sweeper"], redis.url, ledger);
    await start(["worker"], redis.url, ledger);
    await start(["worker"], redis.url, ledger);
    const runs = await backlog(10, 220);
    await until("the first 200 have run", async () => (await succeeded()) >= 200);
    await main.core.redis!.connection.client.flushall();
    expect(await succeeded()).toBeLessThan(runs);
    await allSucceed(world.admin, runs);
    ledger.expectEachOnce(runs);
    await expectOneAttemptEach();
  });

  test.concurrent("Redis that is killed and comes back empty costs nothing but time", async ({ onTestFinished }) => {
    const { world, servers, start, backlog, succeeded, expectOneAttemptEach } = await openScene(onTestFinished);
    const binary = inject("redisBinary");
    const settings = { requirepass: "secret" };
    const first = await startRedis({ binary, settings, log: () => undefined });
    servers.push(first);
    const url = `redis://:secret@127.0.0.1:${first.port}`;
    const ledger = createLedger(5);
    const node = await start(["scheduler", "relay", "sweeper", "worker"], url, ledger);
    const runs = await backlog(5, 200);
    await until("some have run", async () => (await succeeded()) >= 100);
    process.kill(first.pid, "SIGKILL");
    await first.exited;
    const before = await succeeded();
    await until("the system goes on without", async () => (await succeeded()) > before + 20);
    const second = await startRedis({ binary, settings, port: first.port, log: () => undefined });
    servers.push(second);
    await until("Redis is used again", () => node.core.redisAvailable());
    const more = await backlog(1, 100);
    await allSucceed(world.admin, runs + more);
    ledger.expectEachOnce(runs + more);
    await expectOneAttemptEach();
  });

  // The one slow test: the 20 seconds are what is promised.
  test.concurrent("Redis stands still for 20 seconds under load: completions go on, nothing is lost, nothing doubled", async ({
    onTestFinished,
  }) => {
    const { world, servers, start, backlog, succeeded, expectOneAttemptEach } = await openScene(onTestFinished);
    const redis = await startTestRedis();
    servers.push(redis);
    const ledger = createLedger(100);
    await start(["scheduler", "relay", "sweeper"], redis.url, ledger);
    await start(["worker"], redis.url, ledger, 8);
    await start(["worker"], redis.url, ledger, 8);
    const runs = await backlog(4, 700);
    await until("some have run", async () => (await succeeded()) >= 100);
    process.kill(redis.pid, "SIGSTOP");
    const stoppedAt = await succeeded();
    // More than the workers can have fetched before.
    await Promise.all([sleep(20_000), until("completions go on", async () => (await succeeded()) > stoppedAt + 300)]);
    process.kill(redis.pid, "SIGCONT");
    await allSucceed(world.admin, runs);
    ledger.expectEachOnce(runs);
    await expectOneAttemptEach();
  });
}
