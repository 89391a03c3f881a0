import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { readConfig } from "../../../src/app/config.ts";
import { oidcOf } from "../../../src/app/oidc.ts";
import { showId } from "../../../src/kernel/ids.ts";
import { sql } from "../../../src/store/database.ts";
import { type Issuer, startIssuer } from "../identity/issuer.ts";
import { movableClock } from "../identity/setting.ts";
import { call, SECRET, startTestServer, type TestServer } from "../server.ts";
import { cookieOf, signIn } from "./browser.ts";

const MINUTE = 60_000;
const clock = movableClock();
const config = { secret: SECRET, closeGraceMs: 2_000 };
let issuer: Issuer;
let server: TestServer;
let tenantId: string;
beforeAll(async () => {
  issuer = await startIssuer();
  const env = { PUNCTUAL_OIDC_ISSUER: issuer.url, PUNCTUAL_OIDC_AUDIENCE: issuer.audience };
  server = await startTestServer({ clock, config: { ...config, oidc: oidcOf(readConfig(env))! } });
  tenantId = await server.tenant("acme");
});
afterAll(async () => {
  await server?.close();
  await issuer?.close();
});

const token = (more: object = {}, inMs = 10 * MINUTE) =>
  issuer.token(
    { sub: "alice@example.com", punctual_tenant: showId("ten", tenantId), punctual_role: "operator", ...more },
    { expiresAt: Math.floor((clock.now() + inMs) / 1000) },
  );
const who = (cookie: string, url = server.url) => call(url, "GET", "/v1/session", { headers: { cookie } });

describe("a session that began with a token", () => {
  it("is whose the token was, and never longer than that", async () => {
    const begun = await call(server.url, "POST", "/v1/session", { key: await token() });
    expect(begun.status, begun.text).toBe(201);
    expect(begun.body).toMatchObject({
      tenant: { name: "acme" },
      role: "operator",
      actor: "oidc:alice@example.com",
      label: "alice@example.com",
    });
    expect(Date.parse(String(begun.body.endsAt)) - clock.now()).toBeLessThanOrEqual(10 * MINUTE);
    const cookie = cookieOf(begun);
    expect((await who(cookie)).body).toEqual(begun.body);
    clock.forward(10 * MINUTE + 1_000);
    expect((await who(cookie)).status).toBe(401);
  });

  it("does not begin with one that has just ended, though a call may still be made with it", async () => {
    const key = await token({}, -10_000);
    expect((await call(server.url, "GET", "/v1/me", { key })).status).toBe(200);
    const refused = await call(server.url, "POST", "/v1/session", { key });
    expect([refused.status, refused.headers.getSetCookie()]).toEqual([401, []]);
  });

  it("may what the token's role may, with the session's token of its own", async () => {
    const { headers } = await signIn(server.url, await token({ punctual_role: "viewer" }));
    expect((await call(server.url, "GET", "/v1/runs", { headers })).status).toBe(200);
    expect((await call(server.url, "POST", "/v1/runs", { headers, body: {} })).body.code).toBe("forbidden");
  });

  it("sees the tenant as it is now", async () => {
    const { headers } = await signIn(server.url, await token());
    await server.db.query(sql("test_suspend", "update tenant set status = 'suspended' where id = $1"), [tenantId]);
    try {
      clock.forward(6_000);
      const rule = { kind: "interval", everyMs: 60_000, anchorAt: 0 };
      const body = { name: "x", rule, job: { kind: "function", name: "report.run-summary", version: 1 } };
      const refused = await call(server.url, "POST", "/v1/schedules", { headers, body });
      expect([refused.status, refused.body.code]).toEqual([403, "tenant-suspended"]);
      expect((await call(server.url, "DELETE", "/v1/session", { headers })).status).toBe(200);
    } finally {
      await server.db.query(sql("test_activate", "update tenant set status = 'active' where id = $1"), [tenantId]);
      clock.forward(6_000);
    }
  });

  it("ends where its issuer is not trusted any more", async () => {
    const { cookie } = await signIn(server.url, await token());
    for (const issuerUrl of [undefined, "https://other.example.com"]) {
      const env = { PUNCTUAL_OIDC_ISSUER: issuerUrl, PUNCTUAL_OIDC_AUDIENCE: issuer.audience };
      const oidc = issuerUrl === undefined ? {} : { oidc: oidcOf(readConfig(env))! };
      const later = await startTestServer({ clock, config: { ...config, ...oidc } });
      try {
        expect([issuerUrl, (await who(cookie, later.url)).status]).toEqual([issuerUrl, 401]);
      } finally {
        await later.close();
      }
    }
    expect((await who(cookie)).status).toBe(200);
  });
});
