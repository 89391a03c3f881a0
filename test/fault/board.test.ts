import { expect, test } from "vitest";
import { createBoard } from "../../src/hints/board.ts";
import type { BoardAction } from "../../src/hints/board-actions.ts";
import { queuePath, serveBoards } from "../hints/board-server.ts";
import { redisAvailable, testRedis } from "../support/redis.ts";
import { allSucceed, dueSchedule, type Node, type NodeOptions, startNode, until } from "../support/system.ts";
import { createWorld } from "../support/world.ts";
import { createLedger } from "./ledger.ts";

if (redisAvailable) {
  test("runs whose hints an operator has emptied from the board happen all the same, once each", async ({
    onTestFinished,
  }) => {
    const world = await createWorld();
    const nodes: Node[] = [];
    const redis = testRedis();
    const ledger = createLedger(0);
    const start = async (roles: NodeOptions["roles"]) => {
      const node = await startNode({ roles, url: world.url, redis, jobs: [ledger.job] });
      nodes.push(node);
      return node;
    };
    onTestFinished(async () => {
      for (const node of nodes) await node.stop();
      await world.check();
      await world.close();
    });
    const feeder = await start(["scheduler", "relay"]);
    await dueSchedule(world.authority, world.admin, { tenantId: world.tenantId, runs: 20, job: "test.count" });
    await until("all are published", async () => {
      const { rows } = await world.admin.query(
        "select coalesce(sum(cardinality(runs)), 0)::int as n from outbox where published_at is not null",
      );
      return rows[0].n === 20;
    });

    const actions: BoardAction[] = [];
    const at = await serveBoards(createBoard({ redis: feeder.core.redis!.connection }), actions);
    onTestFinished(() => at.close());
    const waiting = async () => {
      const [short] = await at.list(world.tenantId);
      return (short!.counts.waiting ?? 0) + (short!.counts.prioritized ?? 0);
    };
    expect(await waiting()).toBeGreaterThan(0);
    const emptied = await at.put(`/${world.tenantId}/api/queues/${queuePath(world.tenantId, "short")}/empty`);
    expect([emptied.status, actions.map(({ action }) => action)]).toEqual([200, ["empty"]]);
    expect(await waiting()).toBe(0);

    await start(["worker", "sweeper"]);
    await allSucceed(world.admin, 20);
    const { rows } = await world.admin.query("select count(*)::int as n from attempt where n > 1");
    expect(rows).toEqual([{ n: 0 }]);
  });
}
