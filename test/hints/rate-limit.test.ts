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
      world.publisher.setRateLimits([rate(4, 500)]);
      const worker = await world.worker({ lookEveryMs: 60_000 });
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
      world.publisher.setRateLimits([rate(2, 60_000)]);
      await world.publisher.publish(world.rows(1, 5));
      await world.redis.client.flushall();
      await world.publisher.publish(world.rows(1, 5));
      const worker = await world.worker();
      expect(await worker.fetch("short", 10)).toHaveLength(2);
    });

    it("a limit that was lifted while this relay was away is gone with its first publish", async () => {
      world.publisher.setRateLimits([rate(1, 60_000)]);
      await world.publisher.publish(world.rows(1, 1));
      const other = await startHintWorld(server);
      await other.publisher.publish(world.rows(1, 5));
      const worker = await world.worker();
      expect(await worker.fetch("short", 10)).toHaveLength(6);
      await other.stop();
    });

    it("a changed limit counts from the next publish on", async () => {
      world.publisher.setRateLimits([rate(1, 60_000)]);
      await world.publisher.publish(world.rows(1, 3));
      world.publisher.setRateLimits([rate(3, 60_000)]);
      await world.publisher.publish(world.rows(1, 3));
      const worker = await world.worker();
      expect(await worker.fetch("short", 10)).toHaveLength(3);
      world.publisher.setRateLimits([{ tenantId: tenantId(1), class: "short", rate: undefined }]);
      await world.publisher.publish(world.rows(1, 1));
      worker.remind("short", [tenantId(1)]);
      await systemClock.sleep(0);
      const other = await world.worker();
      expect(await other.fetch("short", 10)).toHaveLength(4);
    });

    it("nonsense is refused", () => {
      expect(() => world.publisher.setRateLimits([rate(0, 1_000)])).toThrow(/at least 1/);
    });
  });
}
