import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { mintKey } from "../../src/api/keys.ts";
import { sql } from "../../src/store/database.ts";
import { call, startTestServer, type TestServer } from "./server.ts";

let server: TestServer;
let tenantId: string;
beforeAll(async () => {
  server = await startTestServer();
  tenantId = await server.tenant("acme");
});
afterAll(() => server?.close());

const statusWith = async (authorization?: string) =>
  (await call(server.url, "GET", "/v1/me", authorization === undefined ? {} : { headers: { authorization } })).status;

describe("an API key", () => {
  it("says who its holder is", async () => {
    const key = await server.key(tenantId, "viewer");
    const answer = await call(server.url, "GET", "/v1/me", { key });
    expect(answer.body).toMatchObject({ tenant: { name: "acme" }, role: "viewer", key: { prefix: key.slice(0, 15) } });
    expect(answer.text).not.toContain(key.slice(16));
  });

  it("that is missing, malformed, unknown or has another secret is a 401 of one and the same sentence", async () => {
    const key = await server.key(tenantId, "owner");
    const forged = `${key.slice(0, 16)}${mintKey().key.slice(16)}`;
    for (const authorization of [
      undefined,
      "Bearer",
      "Bearer x",
      `Bearer ${mintKey().key}`,
      `Bearer ${forged}`,
      `bearer ${forged}x`,
    ]) {
      expect(await statusWith(authorization), authorization ?? "none").toBe(401);
    }
    expect(await statusWith(`Bearer ${key}`)).toBe(200);
    const answer = await call(server.url, "GET", "/v1/me", { key: forged });
    expect(answer.headers.get("www-authenticate")).toMatch(/^Bearer/);
  });

  it("is stored as a hash only", async () => {
    const key = await server.key(tenantId, "owner");
    const rows = await server.db.query(sql("test_keys", "select k::text as row from api_key k"));
    expect(JSON.stringify(rows)).not.toContain(key.slice(16));
  });

  it("that is revoked or expired stops working within five seconds", async () => {
    const [revoked, expired] = [await server.key(tenantId, "owner"), await server.key(tenantId, "owner")];
    await server.db.query(sql("test_revoke", "update api_key set revoked_at = clock_timestamp() where prefix = $1"), [
      revoked.slice(3, 15),
    ]);
    await server.db.query(sql("test_expire", "update api_key set expires_at = clock_timestamp() where prefix = $1"), [
      expired.slice(3, 15),
    ]);
    expect(await statusWith(`Bearer ${revoked}`)).toBe(401);
    expect(await statusWith(`Bearer ${expired}`)).toBe(401);
  });

  it("may do what its role may: viewers read, workers neither read nor write", async () => {
    const body = { rule: { kind: "interval", everyMs: 1000, anchorAt: 0 } };
    const viewer = await server.key(tenantId, "viewer");
    const worker = await server.key(tenantId, "worker");
    expect((await call(server.url, "GET", "/v1/runs", { key: viewer })).status).toBe(200);
    expect((await call(server.url, "POST", "/v1/schedules/preview", { key: viewer, body })).status).toBe(200);
    const refused = await call(server.url, "POST", "/v1/runs", { key: viewer, body: {} });
    expect([refused.status, refused.body.code, refused.body.role]).toEqual([403, "forbidden", "viewer"]);
    expect((await call(server.url, "GET", "/v1/runs", { key: worker })).status).toBe(403);
  });

  it("is asked for before a body is read", async () => {
    expect((await call(server.url, "POST", "/v1/runs", { body: "{not json" })).status).toBe(401);
  });
});
