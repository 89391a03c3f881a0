import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { systemClock } from "../../src/kernel/clock.ts";
import { redisAvailable, startTestRedis } from "../support/redis.ts";
import { eventually, type HintWorld, startHintWorld, tenantId } from "./world.ts";

if (redisAvailable) {
  describe("start rates", () => {
    let server: Awaited<ReturnType<typeof startTestRedis>>;
    let world: HintWorld;
    const rate = (max: number, durationMs: number) => ({
      tenantId: tenantId(1),
      class: "short",
      rate: { max, durationMs },
    });
    beforeEach(async () => {
      server = await startTestRedis();
      world = await startHintWorld(server);
    });
    afterEach(async () => {
      await world.stop();
      await server.stop();
    });

    it("a limited queue gives no more than its rate, and is asked again when its window is over", async () => {
      await world.publisher.setRateLimits([rate(4, 500)]);
      const worker = await world.worker();
      await world.publisher.publish([...world.rows(1, 10), ...world.rows(2, 10)]);
      const woken = new Promise<void>((resolve) => void worker.onReady("short", resolve));

      const first = await worker.fetch("short", 20);
      expect(first.filter((hint) => hint.tenantId === tenantId(1))).toHaveLength(4);
      expect(first.filter((hint) => hint.tenantId === tenantId(2))).toHaveLength(10);
      expect(await worker.fetch("short", 20)).toEqual([]);

      await woken;
      const second = await eventually(async () => {
        const some = await worker.fetch("short", 20);
        return some.length > 0 ? some : undefined;
      });
      expect(second).toHaveLength(4);
    });

    it("after FLUSHALL the limit is in force with the very next publish", async () => {
      await world.publisher.setRateLimits([rate(2, 60_000)]);
      await world.publisher.publish(world.rows(1, 5));
      await world.redis.client.flushall();
      await world.publisher.publish(world.rows(1, 5));
      const worker = await world.worker();
      expect(await worker.fetch("short", 10)).toHaveLength(2);
    });

    it("a limit that was lifted while this relay was away is gone with its first publish", async () => {
      await world.publisher.setRateLimits([rate(1, 60_000)]);
      await world.publisher.publish(world.rows(1, 1));
      const other = await startHintWorld(server);
      await other.publisher.publish(world.rows(1, 5));
      const worker = await world.worker();
      expect(await worker.fetch("short", 10)).toHaveLength(6);
      await other.stop();
    });

    it("a changed limit counts from the next publish on", async () => {
      await world.publisher.setRateLimits([rate(1, 60_000)]);
      await world.publisher.publish(world.rows(1, 3));
      await world.publisher.setRateLimits([rate(3, 60_000)]);
      await world.publisher.publish(world.rows(1, 3));
      const worker = await world.worker();
      expect(await worker.fetch("short", 10)).toHaveLength(3);
      await world.publisher.setRateLimits([{ tenantId: tenantId(1), class: "short", rate: undefined }]);
      await world.publisher.publish(world.rows(1, 1));
      worker.remind("short", [tenantId(1)]);
      await systemClock.sleep(0);
      const other = await world.worker();
      expect(await other.fetch("short", 10)).toHaveLength(4);
    });

    it("a change holds at once for hints that stand there already: set, raised, lowered, removed", async () => {
      // Each step is fetched by a worker that has not heard of a limit yet, so what it gets is Redis' own answer.
      const fetched = async () => (await (await world.worker()).fetch("short", 30)).length;
      await world.publisher.publish(world.rows(1, 30));
      await world.publisher.setRateLimits([rate(2, 60_000)]);
      expect(await fetched()).toBe(2);
      await world.publisher.setRateLimits([rate(7, 60_000)]);
      expect(await fetched()).toBe(5);
      await world.publisher.setRateLimits([rate(3, 60_000)]);
      expect(await fetched()).toBe(0);
      await world.publisher.setRateLimits([{ tenantId: tenantId(1), class: "short", rate: undefined }]);
      expect(await fetched()).toBe(23);
    });

    it("after FLUSHALL a change is as good as a publish: what was told before is told again", async () => {
      await world.publisher.setRateLimits([rate(2, 60_000)]);
      await world.publisher.publish(world.rows(1, 5));
      await world.redis.client.flushall();
      await world.publisher.setRateLimits([rate(4, 60_000)]);
      await world.publisher.publish(world.rows(1, 9));
      const worker = await world.worker();
      expect(await worker.fetch("short", 30)).toHaveLength(4);
    });

    it("a limit that is set again and again, unchanged, is written once", async () => {
      await world.publisher.setRateLimits([rate(2, 60_000)]);
      const key = `${world.redis.names.prefix}:{${tenantId(1)}.short}:meta`;
      expect(await world.redis.client.hget(key, "max")).toBe("2");
      await world.redis.client.del(key);
      await world.publisher.setRateLimits([rate(2, 60_000)]);
      expect(await world.redis.client.exists(key)).toBe(0);
    });

    it("nonsense is refused", async () => {
      await expect(world.publisher.setRateLimits([rate(0, 1_000)])).rejects.toThrow(/at least 1/);
    });
  });
}
