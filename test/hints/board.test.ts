import { appRoutes } from "@bull-board/api/dist/routes.js";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { createBoard } from "../../src/hints/board.ts";
import type { BoardAction } from "../../src/hints/board-actions.ts";
import { queueName } from "../../src/hints/names.ts";
import { redisAvailable, startTestRedis, testRedis } from "../support/redis.ts";
import { queuePath, serveBoards } from "./board-server.ts";
import { type HintWorld, startHintWorld, tenantId } from "./world.ts";

const short = (n: number) => queuePath(tenantId(n), "short");
const waiting = ({ counts }: { counts: Record<string, number> }) => (counts.waiting ?? 0) + (counts.prioritized ?? 0);

if (redisAvailable) {
  describe("Bull Board", () => {
    // Its connections and keys are counted: a server that nobody else uses.
    let server: Awaited<ReturnType<typeof startTestRedis>>;
    beforeAll(async () => {
      server = await startTestRedis();
    });
    afterAll(() => server.stop());
    let world: HintWorld;
    let actions: BoardAction[];
    let at: Awaited<ReturnType<typeof serveBoards>>;
    beforeEach(async () => {
      world = await startHintWorld({ ...testRedis(), url: server.url });
      actions = [];
      at = await serveBoards(createBoard({ redis: world.redis }), actions);
    });
    afterEach(async () => {
      await at.close();
      await world.stop();
    });

    it("shows what waits in one tenant's queues, of each class one, and no others", async () => {
      await world.publisher.publish([...world.rows(1, 3), ...world.rows(2, 1), ...world.rows(3, 2, { lane: 0 })]);
      for (const [n, count] of [
        [1, 3],
        [2, 1],
        [3, 2],
      ] as const) {
        const queues = await at.list(tenantId(n));
        expect(queues.map((queue) => queue.displayName)).toEqual(["short", "long", "memory"]);
        expect(queues.map((queue) => queue.readOnlyMode)).toEqual([true, true, true]);
        expect(queues.map(waiting)).toEqual([count, 0, 0]);
      }
    });

    it("answers a page of the tenant's own address, into which its name does not break out", async () => {
      const page = await at.get(`/${tenantId(1)}`);
      expect(page.status).toBe(200);
      const text = await page.text();
      expect(text).toContain(`<base href="/${tenantId(1)}/"`);
      expect(text).not.toContain("tenant </script>");
      expect((await at.get(`/${tenantId(1)}/static/favicon.ico`)).status).toBe(200);
    });

    it("knows no queue of another tenant, whatever is asked of it", async () => {
      await world.publisher.publish([...world.rows(1, 1), ...world.rows(2, 1)]);
      const [job] = (await at.list(tenantId(2), `?activeQueue=${short(2)}`))[0]!.jobs;
      expect(job!.id).toMatch(/^s0/);
      const asked: string[] = [];
      for (const { method, route } of appRoutes.api) {
        const path = String(route);
        if (!path.includes(":queueName")) continue;
        const filled = path
          .replace(":queueName", short(2))
          .replace(":jobId", job!.id)
          .replace(":queueStatus", "completed")
          .replace(":schedulerId", "any");
        const answer =
          method === "get"
            ? await at.get(`/${tenantId(1)}${filled}`)
            : await at.put(`/${tenantId(1)}${filled}`, String(method).toUpperCase());
        expect([filled, answer.status]).toEqual([filled, 404]);
        asked.push(path);
      }
      expect(asked.length).toBeGreaterThan(25);
      expect(actions).toEqual([]);
      expect((await at.list(tenantId(2))).map(waiting)).toEqual([1, 0, 0]);
      // Of queues that are asked for by query it shows those that it has.
      expect(JSON.stringify(await at.list(tenantId(1), `?activeQueue=${short(2)}`))).not.toContain(tenantId(2));
      const schedulers = await at.get(`/${tenantId(1)}/api/job-schedulers?queueName=${short(2)}`);
      expect(await schedulers.json()).toEqual({ schedulers: [] });
    });

    it("answers two tenants side by side without mixing them up", async () => {
      await world.publisher.publish([...world.rows(1, 1), ...world.rows(2, 2)]);
      const answers = await Promise.all(Array.from({ length: 40 }, (_, i) => at.list(tenantId(1 + (i % 2)))));
      answers.forEach((queues, i) => {
        const owner = 1 + (i % 2);
        expect(queues.map((queue) => queue.name)).toEqual(
          ["short", "long", "memory"].map((class_) => queueName(tenantId(owner), class_)),
        );
        expect(queues.map(waiting)).toEqual([owner, 0, 0]);
      });
    });

    it("lets hints be emptied, retried, promoted and removed, and writes down each", async () => {
      await world.publisher.publish(world.rows(1, 2));
      const [job] = (await at.list(tenantId(1), `?activeQueue=${short(1)}`))[0]!.jobs;
      expect((await at.put(`/${tenantId(1)}/api/queues/${short(1)}/${job!.id}/clean`)).status).toBe(204);
      expect((await at.list(tenantId(1))).map(waiting)).toEqual([1, 0, 0]);
      expect((await at.put(`/${tenantId(1)}/api/queues/${short(1)}/empty`)).status).toBe(200);
      expect((await at.list(tenantId(1))).map(waiting)).toEqual([0, 0, 0]);
      for (const path of ["retry/completed", "retry/failed", "promote", "clean/completed", "resume"]) {
        expect([path, (await at.put(`/${tenantId(1)}/api/queues/${short(1)}/${path}`)).status]).toEqual([path, 200]);
      }
      expect(actions.map(({ action }) => action)).toEqual([
        "remove",
        "empty",
        "retry-all",
        "retry-all",
        "promote-all",
        "clean",
        "resume",
      ]);
      expect(actions[0]).toEqual({ action: "remove", class: "short", hintId: job!.id });
    });

    it("refuses what would park a tenant, jump its lanes or name rows of others, also to who may act", async () => {
      await world.publisher.publish(world.rows(1, 1));
      const [job] = (await at.list(tenantId(1), `?activeQueue=${short(1)}`))[0]!.jobs;
      const allowed = ["retry/", "/retry", "/promote", "/clean", "/empty", "/:queueName/resume"];
      const refused: string[] = [];
      for (const { method, route } of appRoutes.api) {
        const path = String(route);
        if (method === "get" || allowed.some((part) => path.includes(part))) continue;
        const filled = path.replace(":queueName", short(1)).replace(":jobId", job!.id).replace(":schedulerId", "any");
        const answer = await at.put(`/${tenantId(1)}${filled}`, String(method).toUpperCase());
        expect([filled, answer.status]).toEqual([filled, 403]);
        refused.push(path);
      }
      for (const path of ["pause", "concurrency", "rate-limit", "add", "obliterate"]) {
        expect(refused.join()).toContain(`:queueName/${path}`);
      }
      expect(actions).toEqual([]);
      expect((await at.list(tenantId(1))).map(waiting)).toEqual([1, 0, 0]);
    });

    it("refuses everything to who may only look", async () => {
      const server = await fetch(`${(await at.get(`/${tenantId(1)}`)).url}/api/queues/${short(1)}/empty`, {
        method: "PUT",
      });
      expect(server.status).toBe(405);
      expect(actions).toEqual([]);
    });

    it("takes no other key of a queue for a hint", async () => {
      await world.publisher.publish(world.rows(1, 1));
      for (const key of ["meta", "wait", "events", "prioritized"]) {
        expect((await at.get(`/${tenantId(1)}/api/queues/${short(1)}/${key}`)).status).toBe(404);
        expect((await at.put(`/${tenantId(1)}/api/queues/${short(1)}/${key}/clean`)).status).toBe(404);
        expect((await at.put(`/${tenantId(1)}/api/queues/${short(1)}/clean/${key}`)).status).toBe(
          key === "wait" || key === "prioritized" ? 200 : 404,
        );
      }
    });

    it("shows the figures of the Redis server, which is everybody's, to nobody who should not see them", async () => {
      expect((await at.get(`/${tenantId(1)}/api/redis/stats`)).status).toBe(403);
    });

    it("opens nothing until somebody looks, and nothing that stays, with a thousand tenants' queues there", async () => {
      const rows = Array.from({ length: 1_000 }, (_, i) => world.rows(i + 1, 1)).flat();
      await world.publisher.publish(rows);
      const { client } = world.redis;
      const clients = async () =>
        String(await client.client("LIST"))
          .trim()
          .split("\n").length;
      const keys = async () => client.dbsize();
      await at.list(tenantId(1));
      const [clientsBefore, keysBefore] = [await clients(), await keys()];
      const listeners = client.eventNames().map((name) => client.listenerCount(name));
      for (let n = 1; n <= 1_000; n += 9) expect((await at.list(tenantId(n))).map(waiting)).toEqual([1, 0, 0]);
      expect(await clients()).toBe(clientsBefore);
      expect(await keys()).toBe(keysBefore);
      expect(client.eventNames().map((name) => client.listenerCount(name))).toEqual(listeners);
    });
  });
}
