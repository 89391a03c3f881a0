import { type JWTPayload, UnsecuredJWT } from "jose";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { TokenConfig } from "../../../src/api/identity/tokens.ts";
import { readConfig } from "../../../src/app/config.ts";
import { oidcOf } from "../../../src/app/oidc.ts";
import { updateTenant } from "../../../src/authority/tenants/update-tenant.ts";
import { showId } from "../../../src/kernel/ids.ts";
import { SECRET, startTestServer, type TestServer } from "../server.ts";
import { type Issuer, startIssuer } from "./issuer.ts";
import { callerOf, movableClock, SCHEDULE } from "./setting.ts";

const clock = movableClock();
let issuer: Issuer;
let server: TestServer;
let tenantId: string;

const settings = (more: Record<string, string> = {}): TokenConfig =>
  oidcOf(readConfig({ PUNCTUAL_OIDC_ISSUER: issuer.url, PUNCTUAL_OIDC_AUDIENCE: issuer.audience, ...more }))!;

/** An API that trusts the issuer, on the one database. */
async function serverWith(oidc: TokenConfig, more: object = {}): Promise<TestServer> {
  return startTestServer({ config: { secret: SECRET, closeGraceMs: 2000, oidc }, clock, ...more });
}

beforeAll(async () => {
  issuer = await startIssuer();
  server = await serverWith(settings());
  tenantId = await server.tenant("acme");
  CLAIMS.punctual_tenant = showId("ten", tenantId);
});
afterAll(async () => {
  await server?.close();
  await issuer?.close();
});

const CLAIMS = { sub: "alice@example.com", punctual_tenant: "", punctual_role: "operator" };
const nowS = () => Math.floor(clock.now() / 1000);
const ask = (token: string, at: TestServer = server) => callerOf(at, token)("GET", "/v1/me");
const codeOf = async (token: string, at?: TestServer) => {
  const { status, body } = await ask(token, at);
  return [status, body.code];
};
const BAD = [401, "unauthenticated"];

describe("a token of the issuer", () => {
  it("is who it says, in the tenant and the role it says", async () => {
    const answer = await ask(await issuer.token(CLAIMS));
    expect(answer.body).toEqual({
      tenant: { tenantId: showId("ten", tenantId), name: "acme", status: "active" },
      key: null,
      token: { issuer: issuer.url, subject: "alice@example.com" },
      role: "operator",
      actingFor: false,
    });
  });

  it("is the actor of what it does", async () => {
    const alice = callerOf(server, await issuer.token(CLAIMS));
    const made = await alice("POST", "/v1/schedules", SCHEDULE);
    expect(made.status, made.text).toBe(201);
    const revisions = (await alice("GET", `/v1/schedules/${made.body.scheduleId}/revisions`)).body;
    expect(revisions.items).toMatchObject([{ actor: "oidc:alice@example.com" }]);
  });

  it("may do what its role may, and no more", async () => {
    const viewer = callerOf(server, await issuer.token({ ...CLAIMS, punctual_role: "viewer" }));
    expect((await viewer("GET", "/v1/runs")).status).toBe(200);
    expect((await viewer("POST", "/v1/schedules", SCHEDULE)).body.code).toBe("forbidden");
    expect((await viewer("GET", "/v1/api-keys")).body.code).toBe("forbidden");
  });

  it("is signed by any of the usual kinds of key pairs", async () => {
    for (const alg of ["PS256", "ES256", "EdDSA", "RS512"]) {
      const other = await startIssuer(alg);
      const at = await serverWith(
        { ...settings(), issuer: other.url, jwksUrl: `${other.url}/keys` },
        {
          db: server.db,
          authority: server.authority,
        },
      );
      expect((await ask(await other.token(CLAIMS), at)).status, alg).toBe(200);
      await at.close();
      await other.close();
    }
  });
});

describe("a token is refused", () => {
  it("after its end, and without one", async () => {
    expect(await codeOf(await issuer.token(CLAIMS, { expiresAt: nowS() - 61 }))).toEqual(BAD);
    expect((await ask(await issuer.token(CLAIMS, { expiresAt: nowS() - 10 }))).status, "clocks differ a little").toBe(
      200,
    );
    const endless = await ask(await issuer.token(CLAIMS, { expiresAt: null }));
    expect([endless.status, endless.body.detail]).toEqual([401, expect.stringContaining('"exp"')]);
    expect(endless.headers.get("www-authenticate")).toContain("invalid_token");
  });

  it("of another audience or issuer, or from the future", async () => {
    expect(await codeOf(await issuer.token(CLAIMS, { audience: "another" }))).toEqual(BAD);
    expect(await codeOf(await issuer.token(CLAIMS, { issuer: "https://evil.example" }))).toEqual(BAD);
    expect(await codeOf(await issuer.token({ ...CLAIMS, nbf: nowS() + 300 }))).toEqual(BAD);
  });

  it("that nobody signed, or everybody could have", async () => {
    const unsigned = new UnsecuredJWT(CLAIMS)
      .setIssuer(issuer.url)
      .setAudience(issuer.audience)
      .setExpirationTime("1h");
    // A token of three parts, as one that is signed has.
    expect(await codeOf(unsigned.encode())).toEqual(BAD);
    const secret = new TextEncoder().encode(await issuer.publicPem());
    expect(await codeOf(await issuer.token(CLAIMS, { header: { alg: "HS256" }, key: secret }))).toEqual(BAD);
    const stranger = await startIssuer();
    // Another's key, under the name of ours.
    const forged = await stranger.token(CLAIMS, { issuer: issuer.url });
    expect(await codeOf(forged)).toEqual(BAD);
    const [head, , signature] = (await issuer.token(CLAIMS)).split(".");
    const [, body] = (await stranger.token({ ...CLAIMS, punctual_role: "owner" }, { issuer: issuer.url })).split(".");
    expect(await codeOf(`${head}.${body}.${signature}`)).toEqual(BAD);
    await stranger.close();
  });

  it("that is none: rubbish with two dots, or far too long", async () => {
    for (const text of ["a.b.c", "..", `${"a".repeat(12_000)}.b.c`, "eyJhbGciOiJSUzI1NiJ9.e30.AAAA"]) {
      expect(await codeOf(text), text.slice(0, 20)).toEqual(BAD);
    }
  });

  it("without a tenant, a role or a subject that we can use, naming the claim", async () => {
    for (const [claims, status, words] of [
      [{ punctual_tenant: undefined }, 403, '"punctual_tenant" is missing'],
      [{ punctual_tenant: ["acme"] }, 403, '"punctual_tenant" is missing'],
      [{ punctual_tenant: "nobody" }, 403, '"punctual_tenant" is no id of a tenant of this installation: "nobody"'],
      [{ punctual_tenant: "acme" }, 403, '"punctual_tenant" is no id of a tenant'],
      [{ punctual_tenant: "a\u0000b" }, 403, '"punctual_tenant" is no id of a tenant'],
      [{ punctual_role: undefined }, 403, '"punctual_role" gives no role'],
      [{ punctual_role: "king" }, 403, '"punctual_role" gives no role'],
      [{ sub: undefined }, 401, '"sub"'],
      [{ sub: "a\u0000b" }, 401, '"sub"'],
      [{ sub: "a".repeat(256) }, 401, '"sub"'],
    ] as const) {
      const answer = await ask(await issuer.token({ ...CLAIMS, ...claims } as JWTPayload));
      expect([answer.status, answer.body.detail], JSON.stringify(claims).slice(0, 60)).toEqual([
        status,
        expect.stringContaining(words),
      ]);
    }
  });

  it("where no issuer is trusted, and keys go on as they were", async () => {
    const plain = await startTestServer();
    expect(await codeOf(await issuer.token(CLAIMS), plain)).toEqual(BAD);
    expect((await ask(await plain.key(await plain.tenant("acme"), "viewer"), plain)).status).toBe(200);
    await plain.close();
    expect((await ask(await server.key(tenantId, "viewer"))).status).toBe(200);
  });
});

describe("the role of a token", () => {
  it("is never admin by the issuer's word alone", async () => {
    expect(await codeOf(await issuer.token({ ...CLAIMS, punctual_role: "admin" }))).toEqual([403, "forbidden"]);
    const both = await ask(await issuer.token({ ...CLAIMS, punctual_role: ["admin", "viewer"] }));
    expect(both.body).toMatchObject({ role: "viewer" });
  });

  it("is the highest that its groups are mapped to, and nothing else where there is a mapping", async () => {
    const at = await serverWith(
      settings({
        PUNCTUAL_OIDC_ROLE_CLAIM: "realm_access.roles",
        PUNCTUAL_OIDC_ROLES: "cn=ops,dc=example=operator, staff=viewer, root=admin",
      }),
      { db: server.db, authority: server.authority },
    );
    const roleOf = async (roles: unknown) => {
      const { status, body } = await ask(await issuer.token({ ...CLAIMS, realm_access: { roles } }), at);
      return status === 200 ? body.role : body.code;
    };
    expect(await roleOf(["staff", "cn=ops,dc=example", "other"])).toBe("operator");
    expect(await roleOf("staff")).toBe("viewer");
    expect(await roleOf(["root", "staff"])).toBe("admin");
    expect(await roleOf(["owner", 7, null])).toBe("forbidden");
    await at.close();
  });

  it.each(["ops", "ops=king", "ops=operator;staff=viewer", "=viewer"])("cannot be mapped by %j", (text) => {
    expect(() => settings({ PUNCTUAL_OIDC_ROLES: text })).toThrow(/^PUNCTUAL_OIDC_ROLES: found/);
  });
});

it("a suspended tenant's tokens read and change nothing, within five seconds", async () => {
  const own = await server.tenant("late payer");
  const bob = callerOf(server, await issuer.token({ ...CLAIMS, sub: "bob", punctual_tenant: showId("ten", own) }));
  expect((await bob("POST", "/v1/schedules", SCHEDULE)).status).toBe(201);
  await updateTenant(server.authority, { tenantId: own, actor: "test", change: { status: "suspended" } });
  clock.forward(5_000);
  expect((await bob("GET", "/v1/schedules")).status).toBe(200);
  expect((await bob("POST", "/v1/schedules", SCHEDULE)).body.code).toBe("tenant-suspended");
});

describe("the issuer's keys", () => {
  it("may change: a token with a new one is known at once, unless keys were asked for just now", async () => {
    const own = await startIssuer();
    const at = await serverWith({ ...settings(), issuer: own.url }, { db: server.db, authority: server.authority });
    const old = await own.token(CLAIMS);
    expect((await ask(old, at)).status).toBe(200);
    await own.rotate();
    const renewed = await own.token(CLAIMS);
    // Anybody can write down an unknown key's name: not each of these makes us ask.
    for (let i = 0; i < 3; i++) expect(await codeOf(renewed, at)).toEqual(BAD);
    expect(own.asked()).toBe(1);
    clock.forward(10_000);
    expect((await ask(renewed, at)).status).toBe(200);
    expect(own.asked()).toBe(2);
    expect(await codeOf(old, at), "its key is published no more").toEqual(BAD);
    await at.close();
    await own.close();
  });

  it("that cannot be read make it a 503, never the token's fault; keys of ours go on", async () => {
    for (const how of ["refuses", "breaks"] as const) {
      const own = await startIssuer();
      const at = await serverWith({ ...settings(), issuer: own.url }, { db: server.db, authority: server.authority });
      const token = await own.token(CLAIMS);
      await own.shut(how);
      const answer = await ask(token, at);
      expect([answer.status, answer.body.code, answer.body.retryable], how).toEqual([503, "issuer-unreachable", true]);
      expect(answer.headers.get("retry-after")).toBe("5");
      expect((await ask(await server.key(tenantId, "viewer"), at)).status).toBe(200);
      await own.shut("open");
      clock.forward(10_000);
      expect((await ask(token, at)).status, how).toBe(200);
      await at.close();
      await own.close();
    }
  });

  it("are good for an hour without the issuer, and no longer", async () => {
    const own = await startIssuer();
    const at = await serverWith({ ...settings(), issuer: own.url }, { db: server.db, authority: server.authority });
    const lasting = await own.token(CLAIMS, { expiresAt: nowS() + 86_400 });
    expect((await ask(lasting, at)).status).toBe(200);
    await own.shut("refuses");
    clock.forward(59 * 60_000);
    expect((await ask(lasting, at)).status).toBe(200);
    clock.forward(60_000);
    expect((await ask(lasting, at)).body.code).toBe("issuer-unreachable");
    await at.close();
    await own.close();
  });

  it("are those of the issuer that was named: another's discovery document is not believed", async () => {
    const at = await serverWith(
      { ...settings(), issuer: `${issuer.url}/`, jwksUrl: undefined },
      {
        db: server.db,
        authority: server.authority,
      },
    );
    const token = await issuer.token(CLAIMS, { issuer: `${issuer.url}/` });
    expect((await ask(token, at)).body.code).toBe("issuer-unreachable");
    await at.close();
  });
});

it("an issuer and an audience are configured together", () => {
  expect(() => readConfig({ PUNCTUAL_OIDC_ISSUER: "https://id.example" })).toThrow(
    /^PUNCTUAL_OIDC_AUDIENCE: is not set/,
  );
  expect(() => readConfig({ PUNCTUAL_OIDC_AUDIENCE: "x" })).toThrow(/^PUNCTUAL_OIDC_ISSUER: is not set/);
});
