import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createInspector } from "../../src/hints/inspector.ts";
import type { FetchedHint } from "../../src/hints/queues.ts";
import { redisAvailable, startTestRedis, testRedis } from "../support/redis.ts";
import { addressOf, eventually, type HintWorld, startHintWorld, tenantId } from "./world.ts";

const countByTenant = (hints: readonly FetchedHint[]) => {
  const counts: Record<string, number> = {};
  for (const hint of hints) counts[hint.tenantId] = (counts[hint.tenantId] ?? 0) + 1;
  return counts;
};
const ids = (hints: readonly { rowId: bigint }[]) => hints.map(({ rowId }) => rowId);

if (redisAvailable) {
  describe("fetching hints", () => {
    let world: HintWorld;
    beforeEach(async () => {
      world = await startHintWorld(testRedis());
    });
    afterEach(() => world.stop());

    it("what was published is fetched once, in order, and says what its row is", async () => {
      const worker = await world.worker();
      const rows = world.rows(1, 30, { runCount: 3, epoch: 7, shard: 2, publishNo: 5 });
      expect(await world.publisher.publish(rows)).toEqual({ published: rows, failed: [] });

      const hints = await worker.fetch("short", 90);

      expect(ids(hints)).toEqual(ids(rows));
      expect(hints[0]).toMatchObject({ ...addressOf(rows[0]!), runCount: 3, epoch: 7, shard: 2, publishNo: 5 });
      expect(await worker.fetch("short", 90)).toEqual([]);
    });

    it("publishing a row twice under one number makes one hint, under two numbers two", async () => {
      const worker = await world.worker();
      const [row] = world.rows(1, 1);
      await world.publisher.publish([row!]);
      await world.publisher.publish([row!]);
      await world.publisher.publish([{ ...row!, publishNo: 2 }]);
      expect((await worker.fetch("short", 10)).map(({ publishNo }) => publishNo)).toEqual([1, 2]);
    });

    it("two workers never get the same hint", async () => {
      const [one, two] = [await world.worker(), await world.worker()];
      await world.publisher.publish([...world.rows(1, 100), ...world.rows(2, 100)]);
      const hints = (await Promise.all([one!.fetch("short", 100), two!.fetch("short", 100)])).flat();
      expect(new Set(ids(hints)).size).toBe(200);
    });

    it("a small tenant is served beside a huge one, by slots in use", async () => {
      const worker = await world.worker();
      await world.publisher.publish([...world.rows(1, 500), ...world.rows(2, 20), ...world.rows(3, 20)]);
      const counts = countByTenant(await worker.fetch("short", 60));
      expect(counts).toEqual({ [tenantId(1)]: 20, [tenantId(2)]: 20, [tenantId(3)]: 20 });
    });

    it("twice the weight, twice the slots", async () => {
      const worker = await world.worker();
      worker.accounts.weighAll(new Map([[tenantId(1), 2]]));
      await world.publisher.publish([...world.rows(1, 100), ...world.rows(2, 100)]);
      const hints = [];
      while (hints.length < 60) hints.push(...(await worker.fetch("short", 10)));
      expect(countByTenant(hints)).toEqual({ [tenantId(1)]: 40, [tenantId(2)]: 20 });
    });

    it("long runs that hold borrowed slots leave room for who comes next", async () => {
      const worker = await world.worker({ slots: 20, reservedFraction: 0.2 });
      await world.publisher.publish([...world.rows(1, 100), ...world.rows(2, 1)]);
      const first = await worker.fetch("short", 20);
      expect(countByTenant(first)).toEqual({ [tenantId(1)]: 15, [tenantId(2)]: 1 });
      for (const hint of first) worker.accounts.hold(hint.tenantId, 1);
      await worker.acknowledge(first);

      await world.publisher.publish(world.rows(2, 4));
      await eventually(async () => (await worker.fetch("short", 4)).length === 4 || undefined);
    });

    it("slots of fetched hints are held until they are acknowledged, those of runs until they end", async () => {
      const worker = await world.worker({ slots: 10 });
      await world.publisher.publish(world.rows(1, 30));
      const first = await worker.fetch("short", 30);
      expect(first).toHaveLength(10);
      expect(await worker.fetch("short", 30)).toEqual([]);
      worker.accounts.hold(tenantId(1), 4);
      await worker.acknowledge(first);
      expect(await worker.fetch("short", 30)).toHaveLength(6);
      worker.accounts.hold(tenantId(1), -4);
      expect(await worker.fetch("short", 30)).toHaveLength(4);
    });

    it("lane 0 goes before lane 1, lane 1 before lane 2, each in order", async () => {
      const worker = await world.worker();
      const [late, normal, strict] = [2, 1, 0].map((lane) => world.rows(1, 3, { lane }));
      await world.publisher.publish([...late!, ...normal!, ...strict!]);
      expect(ids(await worker.fetch("short", 9))).toEqual(ids([...strict!, ...normal!, ...late!]));
    });

    it("lane 2 does not starve behind a queue that is never empty", async () => {
      const worker = await world.worker();
      const late = world.rows(1, 1, { lane: 2 });
      await world.publisher.publish(late);
      let fetched = 0;
      for (let turn = 0; turn < 20; turn++) {
        await world.publisher.publish(world.rows(1, 10));
        const hints = await eventually(async () => {
          const some = await worker.fetch("short", 10);
          return some.length > 0 ? some : undefined;
        });
        fetched += hints.length;
        if (hints.some(({ rowId }) => rowId === late[0]!.rowId) && turn > 0)
          return expect(fetched).toBeLessThanOrEqual(60);
        await worker.acknowledge(hints);
      }
      throw new Error("lane 2 was never served");
    });

    it("an acknowledged hint is over, and each queue keeps a bounded tail of them", async () => {
      const worker = await world.worker();
      const inspector = createInspector({ redis: world.redis });
      const rows = world.rows(1, 80);
      await world.publisher.publish(rows);
      const hints = await worker.fetch("short", 80);
      expect((await inspector.look(hints)).every(({ state }) => state === "fetched")).toBe(true);

      await worker.acknowledge(hints);
      await worker.acknowledge(hints);

      const states = (await inspector.look(rows.map(addressOf))).map(({ state }) => state);
      expect(states.filter((state) => state === "finished")).toHaveLength(50);
      expect(states.filter((state) => state === "missing")).toHaveLength(30);
      expect(await inspector.fetched(tenantId(1), "short", 100)).toEqual([]);
    });

    it("two thousand queues are served through one connection, none left out", async () => {
      // Connections are counted: on a server that nobody else uses.
      const server = await startTestRedis();
      const alone = await startHintWorld(server);
      try {
        const worker = await alone.worker({ slots: 5_000 });
        const rows = Array.from({ length: 2_000 }, (_, n) => alone.rows(n, 2)).flat();
        const connections = async () =>
          String(await alone.redis.client.client("LIST"))
            .trim()
            .split("\n").length;
        const before = await connections();
        await alone.publisher.publish(rows);
        const seen = new Set<bigint>();
        await eventually(async () => {
          const hints = await worker.fetch("short", 200);
          for (const hint of hints) seen.add(hint.rowId);
          await worker.acknowledge(hints);
          return seen.size === rows.length || undefined;
        });
        expect(await connections()).toBe(before);
      } finally {
        await alone.stop();
        await server.stop();
      }
    });

    it("a worker that waits is woken by a publish", async () => {
      const worker = await world.worker();
      await world.publisher.publish(world.rows(1, 1));
      await worker.fetch("short", 1);
      const woken = new Promise<void>((resolve) => void worker.onReady("short", resolve));
      await world.publisher.publish(world.rows(2, 1));
      await woken;
      expect(await worker.fetch("short", 1)).toHaveLength(1);
    });
  });
}
