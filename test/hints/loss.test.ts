import { afterEach, beforeEach, describe, expect, inject, it, onTestFailed, vi } from "vitest";
import { startRedis } from "../../src/app/embedded/redis.ts";
import { establishRedisEpoch, readRedisEpoch } from "../../src/hints/epoch.ts";
import { readRedisFindings } from "../../src/hints/findings.ts";
import { createInspector } from "../../src/hints/inspector.ts";
import { createPublisher } from "../../src/hints/publisher.ts";
import { systemClock } from "../../src/kernel/clock.ts";
import { silentLog } from "../../src/kernel/log.ts";
import { redisAvailable, startTestRedis } from "../support/redis.ts";
import { addressOf, eventually, type HintWorld, startHintWorld, tenantId } from "./world.ts";

if (redisAvailable) {
  describe("losing Redis, or what it held", () => {
    let server: Awaited<ReturnType<typeof startTestRedis>>;
    let world: HintWorld;
    beforeEach(async () => {
      server = await startTestRedis();
      world = await startHintWorld(server, { commandTimeoutMs: 1_000, pingEveryMs: 100 });
    });
    afterEach(async () => {
      await world.stop();
      await server.stop();
    });

    it("the sweeper sees a hint wait, be fetched, end, and go missing", async () => {
      const inspector = createInspector({ redis: world.redis });
      const worker = await world.worker();
      const rows = world.rows(1, 3);
      const addresses = rows.map(addressOf);
      await world.publisher.publish(rows.slice(0, 2));
      const states = async () => (await inspector.look(addresses)).map(({ state }) => state);
      expect(await states()).toEqual(["waiting", "waiting", "missing"]);

      const before = Date.now();
      const hints = await worker.fetch("short", 1);
      const [first] = await inspector.look(addresses);
      expect(first!.fetchedAt).toBeGreaterThanOrEqual(before);
      await worker.acknowledge(hints);
      expect(await states()).toEqual(["finished", "waiting", "missing"]);

      await world.redis.client.flushall();
      expect(await states()).toEqual(["missing", "missing", "missing"]);
    });

    it("a hint whose fetcher died is retired, and acknowledging it later is harmless", async () => {
      const inspector = createInspector({ redis: world.redis });
      const worker = await world.worker();
      await world.publisher.publish(world.rows(1, 2));
      const hints = await worker.fetch("short", 2);
      const fetched = await inspector.fetched(tenantId(1), "short", 10);
      expect(fetched.map(({ hintId }) => hintId)).toEqual(hints.map(({ hintId }) => hintId));
      await inspector.retire(fetched);
      expect(await inspector.fetched(tenantId(1), "short", 10)).toEqual([]);
      await worker.acknowledge(hints);
      expect((await inspector.look(hints)).map(({ state }) => state)).toEqual(["finished", "finished"]);
    });

    it("FLUSHALL ends the epoch, and exactly one of many begins the next", async () => {
      const { epoch, isNew } = await establishRedisEpoch(world.redis);
      expect(isNew).toBe(true);
      expect(await establishRedisEpoch(world.redis)).toEqual({ epoch, isNew: false });
      await world.redis.client.flushall();
      expect(await readRedisEpoch(world.redis)).toBeUndefined();
      const all = await Promise.all(Array.from({ length: 10 }, () => establishRedisEpoch(world.redis)));
      expect(all.filter((one) => one.isNew)).toHaveLength(1);
      expect(new Set(all.map((one) => one.epoch)).size).toBe(1);
      expect(all[0]!.epoch).not.toBe(epoch);
    });

    it("a worker goes on after FLUSHALL as if nothing had been", async () => {
      const worker = await world.worker();
      await world.publisher.publish(world.rows(1, 3));
      const hints = await eventually(async () => {
        const some = await worker.fetch("short", 10);
        return some.length > 0 ? some : undefined;
      });
      expect(hints).toHaveLength(3);
      await worker.acknowledge(hints);
      await world.redis.client.flushall();
      await world.publisher.publish(world.rows(1, 3));
      await eventually(async () => (await worker.fetch("short", 3)).length > 0 || undefined);
    });

    it("while Redis is stopped, publishing and fetching fail in bounded time; when it goes on, so do they", async () => {
      const worker = await world.worker({ lookEveryMs: 100 });
      await world.publisher.publish(world.rows(1, 10));
      const held = await worker.fetch("short", 5);
      process.kill(server.pid, "SIGSTOP");
      onTestFailed(() => void process.kill(server.pid, "SIGCONT"));

      const rows = world.rows(1, 2_000);
      const sent = vi.spyOn(world.redis.client, "sendCommand");
      const namesOf = () => sent.mock.calls.map(([command]) => command.name).filter((name) => name !== "ping");
      expect(await world.publisher.publish(rows)).toEqual({ published: [], failed: rows });
      // The first of four pipelines, each of which would be waited for.
      expect(namesOf().length).toBeLessThan(600);
      expect(world.redis.health().available).toBe(false);
      expect(await worker.fetch("short", 5)).toEqual([]);
      await worker.acknowledge(held);
      sent.mockClear();
      expect((await world.publisher.publish(rows)).failed).toHaveLength(2_000);
      expect(namesOf()).toEqual([]);
      sent.mockRestore();

      process.kill(server.pid, "SIGCONT");
      await eventually(() => world.redis.health().available || undefined);
      const later = world.rows(2, 5);
      expect((await world.publisher.publish(later)).published).toEqual(later);
      await eventually(async () => {
        const hints = await worker.fetch("short", 500);
        return hints.some((hint) => hint.tenantId === tenantId(2)) || undefined;
      });
      const inspector = createInspector({ redis: world.redis });
      await eventually(
        async () => (await inspector.look(held)).every(({ state }) => state === "finished") || undefined,
      );
    });

    it("a Redis that dies and comes back empty is used again without a restart of ours", async () => {
      const worker = await world.worker();
      const { port } = server;
      const changes: boolean[] = [];
      world.redis.onHealth(({ available }) => changes.push(available));
      process.kill(server.pid, "SIGKILL");
      await server.exited;
      await eventually(() => !world.redis.health().available || undefined);
      const rows = world.rows(1, 1);
      expect((await world.publisher.publish(rows)).failed).toEqual(rows);

      const settings = { requirepass: new URL(server.url).password };
      server = await startRedis({ binary: inject("redisBinary"), port, settings, log: () => undefined });
      await eventually(() => world.redis.health().available || undefined);
      await world.publisher.publish(world.rows(1, 1));
      await eventually(async () => (await worker.fetch("short", 1)).length > 0 || undefined);
      expect(changes).toEqual([false, true]);
    });

    it("a lost wake-up costs a moment, not a queue", async () => {
      const worker = await world.worker({ lookEveryMs: 50 });
      const names = { ...world.redis.names, wakeChannel: () => "nobody-listens" };
      const publisher = createPublisher({ redis: { ...world.redis, names }, clock: systemClock, log: silentLog });
      await worker.fetch("short", 1);
      const woken = new Promise<void>((resolve) => void worker.onReady("short", resolve));
      await publisher.publish(world.rows(1, 1));
      await woken;
      expect(await worker.fetch("short", 1)).toHaveLength(1);
    });

    it("a queue that the ready set forgot is looked at when PostgreSQL reminds of it", async () => {
      const worker = await world.worker();
      await world.publisher.publish(world.rows(1, 1));
      await world.redis.client.del(world.redis.names.readyKey("short"));
      expect(await worker.fetch("short", 1)).toEqual([]);
      worker.remind("short", [tenantId(1)]);
      expect(await worker.fetch("short", 1)).toHaveLength(1);
    });

    it("a Redis that may evict hints is found out", async () => {
      expect(await readRedisFindings(world.redis)).toMatchObject({ policy: "noeviction", mayEvict: false });
      await world.redis.client.config("SET", "maxmemory-policy", "allkeys-lru");
      expect(await readRedisFindings(world.redis)).toMatchObject({ policy: "allkeys-lru", mayEvict: true });
    });

    it("a process starts without Redis and stops without waiting for it", async () => {
      await server.stop();
      const alone = await startHintWorld({ url: "redis://127.0.0.1:1" });
      expect(alone.redis.health().available).toBe(false);
      const worker = await alone.worker();
      expect(await worker.fetch("short", 1)).toEqual([]);
      await expect(createInspector({ redis: alone.redis }).look(world.rows(1, 1).map(addressOf))).rejects.toThrow();
      await alone.stop();
    });
  });
}
