import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { systemClock } from "../../../src/kernel/clock.ts";
import { sql } from "../../../src/store/database.ts";
import { call, SECRET, startTestServer, type TestServer } from "../server.ts";
import { cookieOf, signIn } from "./browser.ts";

const REVOKE = sql("test_revoke", "update api_key set revoked_at = clock_timestamp() where prefix = $1");
const EXPIRE = sql("test_expire", "update api_key set expires_at = $2 where prefix = $1");
const HOUR = 3_600_000;

let server: TestServer;
let tenantId: string;
let aheadMs = 0;
let passedMs = 0;
const clock = {
  ...systemClock,
  now: () => systemClock.now() + aheadMs,
  monotonic: () => systemClock.monotonic() + passedMs,
};
beforeAll(async () => {
  server = await startTestServer({ clock });
  tenantId = await server.tenant("acme");
});
afterAll(() => server?.close());

const prefixOf = (key: string) => key.slice(3, 15);
const who = (cookie: string, url = server.url) => call(url, "GET", "/v1/session", { headers: { cookie } });

describe("a session", () => {
  it("begins with a key, in the header or in the body, and says whose it is and until when", async () => {
    const key = await server.key(tenantId, "viewer");
    for (const options of [{ key }, { body: { key } }]) {
      const begun = await call(server.url, "POST", "/v1/session", options);
      expect(begun.status).toBe(201);
      expect(begun.body).toMatchObject({ tenant: { name: "acme" }, role: "viewer", csrfToken: expect.any(String) });
      const lasts = Date.parse(String(begun.body.endsAt)) - Date.now();
      expect(lasts).toBeGreaterThan(8 * HOUR - 60_000);
      expect(lasts).toBeLessThanOrEqual(8 * HOUR);
      const shown = await who(cookieOf(begun));
      expect([shown.status, shown.body]).toEqual([200, begun.body]);
    }
  });

  it("is a cookie that scripts cannot read and other sites cannot send, and that holds no secret", async () => {
    const key = await server.key(tenantId, "owner");
    const begun = await call(server.url, "POST", "/v1/session", { key });
    const [cookie] = begun.headers.getSetCookie();
    expect(cookie).toMatch(/^punctual_session=\S+; Path=\/; HttpOnly; SameSite=Strict; Max-Age=28(800|799)$/);
    const [payload] = cookie!.slice("punctual_session=".length).split(".");
    for (const text of [cookie!, Buffer.from(payload!, "base64url").toString()]) {
      expect(text).not.toContain(key.slice(16));
      expect(text).not.toContain(SECRET);
      expect(text).not.toContain(String(begun.body.csrfToken));
    }
    expect(begun.headers.get("cache-control")).toBe("no-store");
  });

  it("does not begin without a key, or with one that opens nothing", async () => {
    for (const options of [{}, { body: {} }, { body: { key: "pk_0" } }, { key: "pk_0", body: { key: "pk_0" } }]) {
      const refused = await call(server.url, "POST", "/v1/session", options);
      expect([refused.status, refused.body.code, refused.headers.getSetCookie()]).toEqual([401, "unauthenticated", []]);
    }
  });

  it("opens what its key opens, and no more", async () => {
    const viewer = await signIn(server.url, await server.key(tenantId, "viewer"));
    expect((await call(server.url, "GET", "/v1/runs", { headers: viewer.headers })).status).toBe(200);
    const refused = await call(server.url, "POST", "/v1/runs", { headers: viewer.headers, body: {} });
    expect([refused.status, refused.body.code]).toEqual([403, "forbidden"]);
  });

  it("ends within five seconds of its key being revoked", async () => {
    const key = await server.key(tenantId, "owner");
    const { cookie } = await signIn(server.url, key);
    expect((await who(cookie)).status).toBe(200);
    await server.db.query(REVOKE, [prefixOf(key)]);
    passedMs += 5_000;
    expect((await who(cookie)).status).toBe(401);
  });

  it("is never longer than its key, and ends with it", async () => {
    const key = await server.key(tenantId, "owner");
    const endsAt = new Date(Date.now() + HOUR);
    await server.db.query(EXPIRE, [prefixOf(key), endsAt]);
    const begun = await call(server.url, "POST", "/v1/session", { key });
    expect(Date.parse(String(begun.body.endsAt))).toBe(endsAt.getTime());
    expect(begun.headers.getSetCookie()[0]).toMatch(/Max-Age=(3600|359\d)$/);
    aheadMs = HOUR + 1_000;
    try {
      expect((await who(cookieOf(begun))).status).toBe(401);
    } finally {
      aheadMs = 0;
    }
  });

  it("ends after eight hours, whatever the browser keeps", async () => {
    const { cookie } = await signIn(server.url, await server.key(tenantId, "owner"));
    aheadMs = 8 * HOUR - 60_000;
    try {
      expect((await who(cookie)).status).toBe(200);
      aheadMs = 8 * HOUR + 1_000;
      expect((await who(cookie)).status).toBe(401);
    } finally {
      aheadMs = 0;
    }
  });

  it("cannot be made up, changed, or put together from two", async () => {
    const [one, two] = [
      (await signIn(server.url, await server.key(tenantId, "viewer"))).cookie,
      (await signIn(server.url, await server.key(tenantId, "admin"))).cookie,
    ];
    const value = one.slice(one.indexOf("=") + 1);
    const [payload = "", mac = ""] = value.split(".");
    const session = JSON.parse(Buffer.from(payload, "base64url").toString());
    const forged = (change: object) => Buffer.from(JSON.stringify({ ...session, ...change })).toString("base64url");
    const flipped = (text: string, at: number) =>
      `${text.slice(0, at)}${text[at] === "A" ? "B" : "A"}${text.slice(at + 1)}`;
    const forgeries = [
      "",
      ".",
      payload,
      `${payload}.`,
      `.${mac}`,
      `${payload}.${mac}.${mac}`,
      `${payload}.${mac}A`,
      `${forged({ endsAt: session.endsAt + 1 })}.${mac}`,
      `${forged({ standing: { kind: "key", prefix: "0123456789ab" } })}.${mac}`,
      `${payload}.${two.split(".")[1]}`,
      `${two.slice(two.indexOf("=") + 1).split(".")[0]}.${mac}`,
      "x".repeat(7_000),
      // Not the last character of 43: of that some bits say nothing.
      ...Array.from({ length: 42 }, (_, at) => `${payload}.${flipped(mac, at)}`),
      ...Array.from({ length: payload.length }, (_, at) => `${flipped(payload, at)}.${mac}`),
    ];
    for (const forgery of forgeries) {
      expect([forgery, (await who(`punctual_session=${forgery}`)).status]).toEqual([forgery, 401]);
    }
    expect((await who(one)).status).toBe(200);
  });

  it("of another installation opens nothing, though it has a key of the same prefix", async () => {
    const other = await startTestServer({ config: { secret: "the secret of another one", closeGraceMs: 2_000 } });
    try {
      const key = await server.key(tenantId, "owner");
      const { cookie } = await signIn(server.url, key);
      await other.db.query(sql("test_copy_key", "insert into tenant (id, name) values ($1, 'acme')"), [tenantId]);
      const copied = await other.key(tenantId, "owner");
      await other.db.query(sql("test_rename_key", "update api_key set prefix = $2 where prefix = $1"), [
        prefixOf(copied),
        prefixOf(key),
      ]);
      expect((await who(cookie, other.url)).status).toBe(401);
      expect((await who(cookie)).status).toBe(200);
    } finally {
      await other.close();
    }
  });

  it("is a new one each time, also in a browser that was given one before", async () => {
    const key = await server.key(tenantId, "owner");
    const planted = await signIn(server.url, await server.key(tenantId, "viewer"));
    const begun = await call(server.url, "POST", "/v1/session", {
      key,
      headers: { cookie: planted.cookie, origin: server.url },
    });
    const again = await call(server.url, "POST", "/v1/session", { key });
    expect(new Set([planted.cookie, cookieOf(begun), cookieOf(again)]).size).toBe(3);
    expect(new Set([planted.csrf, begun.body.csrfToken, again.body.csrfToken]).size).toBe(3);
    expect((await who(cookieOf(begun))).body.role).toBe("owner");
  });

  it("is not taken from two cookies of one name, of which one is somebody else's", async () => {
    const key = await server.key(tenantId, "owner");
    const [mine, planted] = [(await signIn(server.url, key)).cookie, (await signIn(server.url, key)).cookie];
    expect((await who(`${mine}; ${planted}`)).status).toBe(401);
    expect((await who(`other=1; ${mine}; x=2`)).status).toBe(200);
  });

  it("is forgotten by the browser that signs out; a copy lives until its end, or until the key is revoked", async () => {
    const key = await server.key(tenantId, "owner");
    const browser = await signIn(server.url, key);
    const ended = await call(server.url, "DELETE", "/v1/session", { headers: browser.headers });
    expect([ended.status, ended.body]).toEqual([200, { ended: true }]);
    expect(ended.headers.getSetCookie()).toEqual(["punctual_session=; Path=/; HttpOnly; SameSite=Strict; Max-Age=0"]);
    expect((await who(browser.cookie)).status).toBe(200);
    await server.db.query(REVOKE, [prefixOf(key)]);
    passedMs += 5_000;
    expect((await who(browser.cookie)).status).toBe(401);
  });

  it("gives way to a credential that came along", async () => {
    const viewer = await signIn(server.url, await server.key(tenantId, "viewer"));
    const other = await server.tenant("umbrella");
    const key = await server.key(other, "owner");
    const { cookie } = viewer;
    const both = await call(server.url, "GET", "/v1/session", { key, headers: { cookie } });
    expect(both.body).toMatchObject({ tenant: { name: "umbrella" }, role: "owner", endsAt: null, csrfToken: null });
    const body = { rule: { kind: "interval", everyMs: 60_000, anchorAt: 0 } };
    const posted = await call(server.url, "POST", "/v1/schedules/preview", { key, headers: { cookie }, body });
    expect(posted.status).toBe(200);
    // A bad one is not made good by the cookie.
    const headers = { cookie, authorization: "Bearer pk_0" };
    expect((await call(server.url, "GET", "/v1/session", { headers })).status).toBe(401);
  });
});

describe("over https", () => {
  it("the cookie is Secure and bound to the very host; the plain name is nobody's", async () => {
    const publicUrl = "https://punctual.example";
    const secure = await startTestServer({ config: { secret: SECRET, closeGraceMs: 2_000, publicUrl } });
    try {
      const key = await secure.key(await secure.tenant("acme"), "owner");
      const begun = await call(secure.url, "POST", "/v1/session", { key });
      const [cookie] = begun.headers.getSetCookie();
      expect(cookie).toMatch(/^__Host-punctual_session=\S+; Path=\/; HttpOnly; SameSite=Strict; Secure; Max-Age=\d+$/);
      expect(cookie).not.toMatch(/Domain/i);
      const value = cookieOf(begun);
      expect((await who(value, secure.url)).status).toBe(200);
      expect((await who(value.replace("__Host-", ""), secure.url)).status).toBe(401);
      const headers = { cookie: value, "x-csrf-token": String(begun.body.csrfToken), origin: publicUrl };
      expect((await call(secure.url, "DELETE", "/v1/session", { headers })).headers.getSetCookie()).toEqual([
        "__Host-punctual_session=; Path=/; HttpOnly; SameSite=Strict; Secure; Max-Age=0",
      ]);
    } finally {
      await secure.close();
    }
  });

  it("that ends at a proxy counts where the proxy is one of ours, and is nobody's word otherwise", async () => {
    const proxied = await startTestServer({ config: { secret: SECRET, closeGraceMs: 2_000, trustProxy: 1 } });
    try {
      const headers = { "x-forwarded-proto": "https" };
      const key = await proxied.key(await proxied.tenant("acme"), "owner");
      const begun = await call(proxied.url, "POST", "/v1/session", { key, headers });
      expect(begun.headers.getSetCookie()[0]).toMatch(/^__Host-.*; Secure;/);
      const own = await server.key(tenantId, "owner");
      const direct = await call(server.url, "POST", "/v1/session", { key: own, headers });
      expect(direct.headers.getSetCookie()[0]).toMatch(/^punctual_session=(?!.*Secure)/);
    } finally {
      await proxied.close();
    }
  });
});
