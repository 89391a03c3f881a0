import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ROLES, type Role } from "../../../src/api/context.ts";
import type { Route } from "../../../src/api/route.ts";
import { ROUTES } from "../../../src/api/table.ts";
import { sql } from "../../../src/store/database.ts";
import { call, startTestServer, type TestServer } from "../server.ts";
import { signIn } from "../sessions/browser.ts";
import { nameOf } from "./samples.ts";

/** Which role opens which route is what the table says, and nothing else decides. */
let server: TestServer;
const keys: Partial<Record<Role, string>> = {};
const dead: Record<string, string> = {};
beforeAll(async () => {
  server = await startTestServer();
  const tenantId = await server.tenant("acme");
  for (const role of ROLES) keys[role] = await server.key(tenantId, role);
  for (const column of ["expires_at", "revoked_at"]) {
    dead[column] = await server.key(tenantId, "admin");
    await server.db.query(sql(`test_${column}`, `update api_key set ${column} = clock_timestamp() where prefix = $1`), [
      dead[column].slice(3, 15),
    ]);
  }
});
afterAll(() => server?.close());

/** A request of which nothing can come: its ids are of nobody, and its body is none. */
const ask = (route: Route, options: { key?: string | undefined; headers?: Record<string, string> }) =>
  call(server.url, route.method.toUpperCase(), route.path.replaceAll(/\{\w+\}/g, "nobodys"), {
    ...options,
    ...(route.body === undefined ? {} : { body: { "no field of anything": 1 } }),
  });

describe("every route", () => {
  it("is refused to exactly the roles that are not in its list", async () => {
    for (const route of ROUTES) {
      if (route.roles === "everybody") continue;
      for (const role of ROLES) {
        const answer = await ask(route, { key: keys[role] });
        const refused = answer.status === 403 && answer.body.code === "forbidden";
        expect([nameOf(route), role, refused]).toEqual([nameOf(route), role, !route.roles.includes(role)]);
        expect(answer.status).toBeLessThan(500);
      }
    }
  });

  it("asks for a credential that is good, but for a few that are everybody's", async () => {
    const open = new Set<string>();
    for (const route of ROUTES) {
      if (route.roles === "everybody") {
        open.add(nameOf(route));
        continue;
      }
      for (const key of [undefined, ...Object.values(dead), "pk_000000000000_x", `${keys.admin}x`]) {
        expect([nameOf(route), (await ask(route, { key })).status]).toEqual([nameOf(route), 401]);
      }
    }
    expect([...open].sort()).toEqual([
      "GET /healthz",
      "GET /metrics",
      "GET /readyz",
      // By a signed link.
      "GET /v1/objects/{run}",
      // With a key in its body.
      "POST /v1/session",
    ]);
  });

  it("is opened to a session as to its key, and changes nothing without the session's token", async () => {
    for (const role of ROLES) {
      const { headers, cookie } = await signIn(server.url, keys[role]!);
      for (const route of ROUTES) {
        if (route.roles === "everybody") continue;
        const withToken = await ask(route, { headers });
        const refused = withToken.status === 403 && withToken.body.code === "forbidden";
        expect([nameOf(route), role, refused]).toEqual([nameOf(route), role, !route.roles.includes(role)]);
        if (route.method === "get") continue;
        const without = await ask(route, { headers: { cookie, origin: server.url } });
        expect([nameOf(route), without.body.code]).toEqual([nameOf(route), "csrf-token"]);
        const elsewhere = await ask(route, { headers: { ...headers, origin: "https://evil.example" } });
        expect([nameOf(route), elsewhere.body.code]).toEqual([nameOf(route), "cross-origin"]);
      }
    }
  });
});
