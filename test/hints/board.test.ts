import { once } from "node:events";
import type { AddressInfo } from "node:net";
import express from "express";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createBoard } from "../../src/hints/board.ts";
import { redisAvailable, testRedis } from "../support/redis.ts";
import { type HintWorld, startHintWorld, tenantId } from "./world.ts";

type Listing = {
  queues: { name: string; displayName: string; counts: Record<string, number>; readOnlyMode: boolean }[];
};

if (redisAvailable) {
  describe("Bull Board", () => {
    let world: HintWorld;
    beforeEach(async () => {
      world = await startHintWorld(testRedis());
    });
    afterEach(() => world.stop());

    it("shows what waits in the queues it was given, and only those", async () => {
      const board = createBoard({ redis: world.redis, basePath: "/hints" });
      const app = express().use("/hints", board.router as express.RequestHandler);
      const server = app.listen(0, "127.0.0.1");
      await once(server, "listening");
      const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}/hints`;
      const list = async () => ((await (await fetch(`${base}/api/queues`)).json()) as Listing).queues;
      await world.publisher.publish([...world.rows(1, 3), ...world.rows(2, 1), ...world.rows(3, 2, { lane: 0 })]);

      expect(await list()).toEqual([]);
      await board.show([1, 3].map((n) => ({ tenantId: tenantId(n), class: "short", title: `tenant ${n}` })));

      const queues = await list();
      expect(queues.map((queue) => queue.displayName)).toEqual(["tenant 1", "tenant 3"]);
      expect(queues.map((queue) => queue.readOnlyMode)).toEqual([true, true]);
      expect(queues.map(({ counts }) => (counts.waiting ?? 0) + (counts.prioritized ?? 0))).toEqual([3, 2]);
      expect((await fetch(base)).status).toBe(200);

      await board.show([]);
      expect(await list()).toEqual([]);
      await board.stop();
      server.close();
      await once(server, "close");
    });
  });
}
