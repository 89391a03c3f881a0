import { request } from "node:http";
import { appRoutes } from "@bull-board/api/dist/routes.js";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import type { Role } from "../../../src/api/context.ts";
import { createBoard } from "../../../src/hints/board.ts";
import { createCallLimits } from "../../../src/hints/call-limits.ts";
import { systemClock } from "../../../src/kernel/clock.ts";
import { readId } from "../../../src/kernel/ids.ts";
import { sql } from "../../../src/store/database.ts";
import { queuePath } from "../../hints/board-server.ts";
import { type HintWorld, startHintWorld } from "../../hints/world.ts";
import { redisAvailable, testRedis } from "../../support/redis.ts";
import { call, startTestServer, type TestServer } from "../server.ts";
import { cookieOf, signIn } from "../sessions/browser.ts";

const REVOKE = sql("test_revoke", "update api_key set revoked_at = clock_timestamp() where prefix = $1");
const SUSPEND = sql("test_suspend", "update tenant set status = 'suspended' where id = $1");
const AUDIT = sql(
  "test_audit",
  "select tenant_id, actor, action, subject, after, key_id from audit_event where action like 'hints.%'",
);
const USAGE = sql(
  "test_usage",
  `with made as (
     insert into tenant (id, name)
     select gen_random_uuid(), 'crowd ' || n from generate_series(1, 1000) n returning id)
   insert into usage (tenant_id, class, running) select id, 'short', 0 from made`,
);
const BUSY = sql("test_busy", "insert into usage (tenant_id, class, running) values ($1, 'short', $2)");

const HTML = { accept: "text/html,application/xhtml+xml" };
const VIEWED: readonly Role[] = ["owner", "operator", "viewer"];

if (redisAvailable) {
  describe("the board", () => {
    let hints: HintWorld;
    let server: TestServer;
    const tenants: Record<string, { id: string; shown: string; keys: Record<string, string> }> = {};
    let admin: string;

    beforeAll(async () => {
      hints = await startHintWorld(testRedis());
      const callLimits = createCallLimits({ redis: undefined, clock: systemClock });
      server = await startTestServer({ board: createBoard({ redis: hints.redis }), callLimits });
      for (const name of ["acme", "umbrella"]) {
        const id = await server.tenant(name);
        const keys: Record<string, string> = {};
        for (const role of [...VIEWED, "worker"] as const) keys[role] = await server.key(id, role);
        const me = await call(server.url, "GET", "/v1/me", { key: keys.viewer });
        const { tenantId: shown } = me.body.tenant as { tenantId: string };
        tenants[name] = { id: readId("ten", shown)!, shown, keys };
        await hints.publisher.publish(hints.rows(1, name === "acme" ? 1 : 2, { tenantId: tenants[name]!.id }));
      }
      admin = await server.key(await server.tenant("platform"), "admin");
    });
    afterAll(async () => {
      await server?.close();
      await hints?.stop();
    });

    const of = (name: string) => tenants[name]!;
    const get = (path: string, key: string, headers: Record<string, string> = {}) =>
      call(server.url, "GET", path, { key, headers });
    const waiting = async (name: string) => {
      const answer = await get(`/queues/${of(name).shown}/api/queues`, admin);
      const [short] = answer.body.queues as { counts: Record<string, number> }[];
      return (short!.counts.waiting ?? 0) + (short!.counts.prioritized ?? 0);
    };

    it("asks a browser to sign in, there and then, and everybody else for a key", async () => {
      const page = await call(server.url, "GET", "/queues?tenant=acme", { headers: HTML });
      expect([page.status, page.headers.get("www-authenticate")]).toEqual([401, null]);
      expect(page.text).toContain('value="/queues?tenant=acme"');
      expect(page.text).not.toContain("<script");
      const asked = await call(server.url, "GET", "/queues");
      expect([asked.status, asked.headers.get("www-authenticate")]).toEqual([401, expect.stringMatching(/^Basic/)]);
      const basic = { authorization: `Basic ${Buffer.from(`any:${admin}`).toString("base64")}` };
      expect((await call(server.url, "GET", "/queues", { headers: basic })).status).toBe(200);
    });

    it("trades ?key= for the session and takes the key out of the address", async () => {
      const traded = await call(server.url, "GET", `/queues?key=${of("acme").keys.viewer}`);
      expect([traded.status, traded.headers.get("location")]).toEqual([303, "/queues"]);
      const cookie = cookieOf(traded);
      const opened = await call(server.url, "GET", "/queues", { headers: { cookie } });
      expect([opened.status, opened.headers.get("location")]).toEqual([303, `/queues/${of("acme").shown}`]);
      expect((await call(server.url, "GET", "/v1/session", { headers: { cookie } })).status).toBe(200);
    });

    it("asks a browser again for a key that opens nothing", async () => {
      const refused = await call(server.url, "GET", "/queues?key=pk_0", { headers: HTML });
      expect([refused.status, refused.headers.getSetCookie()]).toEqual([401, []]);
      expect(refused.text).toContain('role="alert"');
      expect(refused.text).not.toContain("pk_0");
    });

    it("takes no ?key= from another site's link, which could sign people in as somebody else", async () => {
      const headers = { ...HTML, "sec-fetch-site": "cross-site" };
      const followed = await call(server.url, "GET", `/queues?key=${admin}`, { headers });
      expect([followed.status, followed.headers.getSetCookie()]).toEqual([200, []]);
      expect(followed.text).not.toContain(admin);
      // Without an address of its own the page would ask for the one of the link again, key and all.
      expect(followed.text).toContain('http-equiv="refresh" content="0;url=/queues"');
    });

    it("leads nobody away, whatever stands between its address and the key", async () => {
      const { hostname, port } = new URL(server.url);
      const location = await new Promise<string | undefined>((resolve, reject) => {
        // As it is: fetch would put the path in order first.
        const path = `/queues/..//evil.example?key=${admin}`;
        request({ hostname, port, path }, (answer) => resolve(answer.resume().headers.location))
          .on("error", reject)
          .end();
      });
      expect(location).toBe("/");
    });

    it("asks a visitor from elsewhere again from a page of its own, for the cookie comes along only then", async () => {
      const headers = { ...HTML, "sec-fetch-site": "cross-site" };
      const followed = await call(server.url, "GET", "/queues", { headers });
      expect([followed.status, followed.text]).toEqual([200, expect.stringContaining('http-equiv="refresh"')]);
      const again = await call(server.url, "GET", "/queues", { headers: { ...HTML, "sec-fetch-site": "same-origin" } });
      expect(again.status).toBe(401);
    });

    it("shows everybody the own tenant without being told, and says so in the address", async () => {
      for (const role of VIEWED) {
        const key = of("acme").keys[role]!;
        for (const path of ["/queues", "/queues?tenant=acme", `/queues?tenant=${of("acme").shown}`]) {
          const led = await get(path, key);
          expect([role, path, led.headers.get("location")]).toEqual([role, path, `/queues/${of("acme").shown}`]);
        }
        const page = await get(`/queues/${of("acme").shown}`, key, HTML);
        expect([page.status, page.text]).toEqual([200, expect.stringContaining(`href="/queues/${of("acme").shown}/"`)]);
        expect(page.headers.get("content-security-policy")).toMatch(/default-src 'self'.*frame-ancestors 'none'/);
        const listed = await get(`/queues/${of("acme").shown}/api/queues`, key);
        const queues = listed.body.queues as { name: string; readOnlyMode: boolean }[];
        expect(queues.map(({ name }) => name.includes(of("acme").id))).toEqual([true, true, true]);
        expect(queues.map(({ readOnlyMode }) => readOnlyMode)).toEqual(Array(3).fill(role === "viewer"));
      }
    });

    it("knows no other tenant: neither by name nor by id, in its address or as a queue", async () => {
      const other = of("umbrella");
      const queue = queuePath(other.id, "short");
      for (const role of VIEWED) {
        const key = of("acme").keys[role]!;
        for (const path of [
          "/queues?tenant=umbrella",
          `/queues?tenant=${other.shown}`,
          `/queues/${other.shown}`,
          `/queues/${other.shown}/`,
          `/queues/${other.shown}/api/queues`,
          `/queues/${other.shown}/static/favicon.ico`,
          "/queues/umbrella",
          `/queues/${other.id}`,
          `/queues/${of("acme").shown}/api/queues/${queue}/metrics`,
          `/queues/${of("acme").shown}/api/queues/${queue}/workers`,
          `/queues/api/queues/${queue}/metrics`,
          "/queues/api/queues",
        ]) {
          const answer = await get(path, key);
          expect([role, path, answer.status]).toEqual([role, path, 404]);
          // What was asked for may be said again, and nothing else.
          if (!path.includes(other.id)) expect(answer.text).not.toContain(other.id);
        }
        const listed = await get(`/queues/${of("acme").shown}/api/queues?activeQueue=${queue}`, key);
        expect(listed.text).not.toContain(other.id);
      }
    });

    it("says of what can be no tenant that it is none, to admins too", async () => {
      for (const ref of ["nobody", "%00", "ten_0", "%ED%95%9C".repeat(300)]) {
        const { status, body } = await get(`/queues/${ref}`, admin);
        expect([ref, status, body.code]).toEqual([ref, 404, "tenant-not-found"]);
      }
    });

    it("counts as calls of the visitor's own tenant, pages and all that they ask for", async () => {
      const key = await server.key(await server.tenant("eager"), "admin");
      const set = { key, body: { apiRatePerSecond: 1, apiBurst: 2 } };
      expect((await call(server.url, "PUT", "/v1/quotas", set)).status).toBe(200);
      const answers = [];
      for (let n = 0; n < 8; n++) answers.push(await get(`/queues/${of("acme").shown}/api/queues`, key));
      const refused = answers.filter(({ status }) => status === 429);
      expect(refused.length).toBeGreaterThan(0);
      expect(refused[0]!.body).toMatchObject({ code: "quota-exceeded", quota: "apiRatePerSecond" });
      expect((await get(`/queues/${of("acme").shown}/api/queues`, of("acme").keys.viewer!)).status).toBe(200);
    });

    it("is no business of workers, and nobody's without a key", async () => {
      for (const path of ["/queues", `/queues/${of("acme").shown}`, `/queues/${of("acme").shown}/api/queues`]) {
        expect((await get(path, of("acme").keys.worker!)).status).toBe(403);
        expect((await call(server.url, "GET", path)).status).toBe(401);
      }
    });

    it("has no route of Bull Board's that reaches into another tenant", async () => {
      const [mine, other] = [of("acme"), of("umbrella")];
      const before = await waiting("umbrella");
      for (const { method, route } of appRoutes.api) {
        const filled = String(route)
          .replace(":queueName", queuePath(other.id, "short"))
          .replace(":jobId", "s0e1o1p1")
          .replace(":queueStatus", "prioritized")
          .replace(":schedulerId", "any");
        // By the other's address with every queue; by one's own with the other's queue, where the route takes one.
        const paths = [`/queues/${other.shown}${filled}`, `/queues${filled}`];
        if (String(route).includes(":queueName")) paths.push(`/queues/${mine.shown}${filled}`);
        for (const path of paths) {
          for (const role of VIEWED) {
            const options = { key: mine.keys[role], ...(method === "get" ? {} : { body: {} }) };
            const answer = await call(server.url, String(method).toUpperCase(), path, options);
            const wanted =
              role === "viewer" && method !== "get" && path.startsWith(`/queues/${mine.shown}`) ? 403 : 404;
            expect([method, path, role, answer.status]).toEqual([method, path, role, wanted]);
          }
        }
      }
      expect(await waiting("umbrella")).toBe(before);
      expect(await server.db.query(AUDIT)).toEqual([]);
    });

    it("of a suspended tenant is looked at, and acted on by admins only", async () => {
      const id = await server.tenant("hooli");
      const key = await server.key(id, "operator");
      await server.db.query(SUSPEND, [id]);
      const landed = await get("/queues", key);
      const address = String(landed.headers.get("location"));
      expect((await get(address, key)).status).toBe(200);
      const path = `${address}/api/queues/${queuePath(id, "short")}/retry/failed`;
      const refused = await call(server.url, "PUT", path, { key, body: {} });
      expect([refused.status, refused.body.code]).toEqual([403, "tenant-suspended"]);
    });

    it("lets viewers look and refuses them everything else", async () => {
      const path = `/queues/${of("acme").shown}/api/queues/${queuePath(of("acme").id, "short")}`;
      const before = await waiting("acme");
      for (const [method, action] of [
        ["PUT", "empty"],
        ["PUT", "pause"],
        ["POST", "add"],
        ["PATCH", "anything"],
        ["DELETE", "anything"],
      ] as const) {
        const key = of("acme").keys.viewer!;
        const answer = await call(server.url, method, `${path}/${action}`, { key, body: {} });
        expect([action, answer.status, answer.body.code]).toEqual([action, 403, "forbidden"]);
      }
      expect(await waiting("acme")).toBe(before);
      expect(await server.db.query(AUDIT)).toEqual([]);
    });

    it("lets an operator empty a queue from its own page, on record, and from no other page", async () => {
      const { headers } = await signIn(server.url, of("acme").keys.operator!);
      const path = `/queues/${of("acme").shown}/api/queues/${queuePath(of("acme").id, "short")}/empty`;
      const empty = (more: Record<string, string>) =>
        call(server.url, "PUT", path, { headers: { cookie: headers.cookie!, ...more }, body: {} });
      // Bull Board's page sends no token of ours: that it is our page is asked of the browser.
      for (const more of [{}, { origin: "https://evil.example" }, { "sec-fetch-site": "same-site" }]) {
        expect((await empty(more)).body.code).toBe("cross-origin");
      }
      expect(await waiting("acme")).toBe(1);
      expect((await empty({ origin: server.url, "sec-fetch-site": "same-origin" })).status).toBe(200);
      expect([await waiting("acme"), await waiting("umbrella")]).toEqual([0, 2]);
      const [event, ...more] = await server.db.query<Record<string, unknown>>(AUDIT);
      expect(more).toEqual([]);
      expect(event).toMatchObject({ tenant_id: of("acme").id, action: "hints.empty", subject: "short" });
      expect(event!.actor).toMatch(/^key_/);
      expect(event!.key_id).not.toBeNull();
    });

    it("is not acted on behind PostgreSQL's back: pausing is refused to everybody", async () => {
      for (const key of [of("umbrella").keys.owner!, admin]) {
        const path = `/queues/${of("umbrella").shown}/api/queues/${queuePath(of("umbrella").id, "short")}/pause`;
        const answer = await call(server.url, "PUT", path, { key, body: {} });
        expect([answer.status, answer.text]).toEqual([403, expect.stringContaining("hints are transport")]);
      }
    });

    it("gives admins a page of the busiest tenants, and finds any by a part of its name", async () => {
      await server.db.query(USAGE);
      await server.db.query(BUSY, [of("umbrella").id, 7]);
      const hostile = await server.tenant(`<script>alert("x")</script>`);
      await server.db.query(BUSY, [readId("ten", hostile) ?? hostile, 3]);
      const front = await get("/queues", admin, HTML);
      expect(front.status).toBe(200);
      expect(front.text.indexOf("umbrella")).toBeLessThan(front.text.indexOf("crowd"));
      expect(front.text).toContain("7 short");
      expect(front.text).not.toContain("<script");
      expect(front.text.split("<tr>").length).toBeLessThan(60);
      const found = await get("/queues?search=MBREL", admin, HTML);
      expect(found.text).toContain(`/queues/${of("umbrella").shown}`);
      expect(found.text).not.toContain("crowd");
      expect((await get("/queues?search=crowd", admin, HTML)).text.split("<tr>").length).toBe(52);
      expect((await get("/queues?search=%25", admin, HTML)).text).toContain("No tenant");
      const named = await get("/queues?tenant=umbrella", admin);
      expect(named.headers.get("location")).toBe(`/queues/${of("umbrella").shown}`);
      expect((await get("/queues?tenant=nobody", admin)).status).toBe(404);
      expect((await get(`/queues/${of("acme").shown}/api/redis/stats`, admin)).status).toBe(200);
      expect((await get(`/queues/${of("acme").shown}/api/redis/stats`, of("acme").keys.owner!)).status).toBe(403);
    });

    it("closes when the key that opened it is revoked, as soon as the API does", async () => {
      const key = await server.key(of("acme").id, "owner");
      const { cookie } = await signIn(server.url, key);
      const at = async () =>
        (await call(server.url, "GET", `/queues/${of("acme").shown}`, { headers: { cookie } })).status;
      expect(await at()).toBe(200);
      await server.db.query(REVOKE, [key.slice(3, 15)]);
      await vi.waitFor(async () => expect(await at()).toBe(401), { timeout: 60_000, interval: 100 });
    });
  });
}
