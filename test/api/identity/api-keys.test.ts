import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { createKeyUse } from "../../../src/api/identity/key-use.ts";
import { silentLog } from "../../../src/kernel/log.ts";
import { sql } from "../../../src/store/database.ts";
import { startTestServer, type TestServer } from "../server.ts";
import { callerOf, movableClock } from "./setting.ts";

const clock = movableClock();
let server: TestServer;
/** Another replica on the same database. */
let replica: TestServer;
let tenantId: string;
let owner: ReturnType<typeof callerOf>;
let admin: ReturnType<typeof callerOf>;

beforeAll(async () => {
  server = await startTestServer({ clock });
  replica = await startTestServer({ clock, authority: server.authority, db: server.db });
  tenantId = await server.tenant("acme");
  owner = callerOf(server, await server.key(tenantId, "owner"));
  admin = callerOf(server, await server.key(tenantId, "admin"));
});
afterAll(async () => {
  await replica?.close();
  await server?.close();
});

type Made = {
  key: string;
  apiKey: { keyId: string; expiresAt: string | null; state: string; replacedBy: string | null };
};
const make = async (body: object = {}): Promise<Made> =>
  (await owner("POST", "/v1/api-keys", { label: "CI", role: "operator", ...body })).body as Made;
const meOf = async (key: string, at: TestServer = server) => (await callerOf(at, key)("GET", "/v1/me")).status;

describe("an API key", () => {
  it("is made by an owner, shown once, and works at once", async () => {
    const answer = await owner("POST", "/v1/api-keys", { label: "CI", role: "operator", expiresInDays: 90 });
    expect([answer.status, answer.headers.get("location")]).toEqual([
      201,
      `/v1/api-keys/${(answer.body as Made).apiKey.keyId}`,
    ]);
    const { key, apiKey } = answer.body as Made;
    expect(apiKey).toMatchObject({
      label: "CI",
      role: "operator",
      state: "active",
      lastUsedAt: null,
      rotatedFrom: null,
    });
    expect(Date.parse(apiKey.expiresAt!) - clock.now()).toBeCloseTo(90 * 86_400_000, -5);
    expect(await meOf(key)).toBe(200);
    const shown = await owner("GET", `/v1/api-keys/${apiKey.keyId}`);
    expect(shown.body).toMatchObject({ keyId: apiKey.keyId, prefix: key.slice(0, 15) });
    expect(shown.text + (await owner("GET", "/v1/api-keys")).text).not.toContain(key.slice(16));
  });

  it("is listed page by page, newest first, with how it stands", async () => {
    const wanted = [await make({ label: "first" }), await make({ label: "second", expiresInDays: 3 })];
    const first = (await owner("GET", "/v1/api-keys?limit=1")).body as { items: object[]; next: string };
    expect(first.items).toMatchObject([{ keyId: wanted[1]!.apiKey.keyId, state: "expiring" }]);
    const second = (await owner("GET", `/v1/api-keys?limit=1&after=${first.next}`)).body as { items: object[] };
    expect(second.items).toMatchObject([{ keyId: wanted[0]!.apiKey.keyId, state: "active" }]);
  });

  it("is an owner's affair, and an admin's key an admin's", async () => {
    for (const role of ["operator", "viewer", "worker"] as const) {
      const other = callerOf(server, await server.key(tenantId, role));
      expect((await other("GET", "/v1/api-keys")).status, role).toBe(403);
      expect((await other("POST", "/v1/api-keys", { label: "x", role: "viewer" })).status, role).toBe(403);
    }
    expect((await owner("POST", "/v1/api-keys", { label: "x", role: "admin" })).body.code).toBe("forbidden");
    const made = (await admin("POST", "/v1/api-keys", { label: "x", role: "admin" })).body as Made;
    const path = `/v1/api-keys/${made.apiKey.keyId}`;
    expect((await owner("DELETE", path)).body.code).toBe("forbidden");
    expect((await owner("POST", `${path}/rotate`, {})).body.code).toBe("forbidden");
    expect((await admin("DELETE", path)).body).toMatchObject({ changed: true, apiKey: { state: "revoked" } });
  });

  it("of another tenant is unknown", async () => {
    const stranger = callerOf(server, await server.key(await server.tenant("stranger"), "owner"));
    const path = `/v1/api-keys/${(await make()).apiKey.keyId}`;
    for (const [method, at] of [
      ["GET", path],
      ["DELETE", path],
      ["POST", `${path}/rotate`],
    ] as const) {
      const answer = await stranger(method, at, method === "POST" ? {} : undefined);
      expect([answer.status, answer.body.code], `${method} ${at}`).toEqual([404, "not-found"]);
    }
  });

  it("with an end that has passed, or with two, is refused by name", async () => {
    const passed = await owner("POST", "/v1/api-keys", {
      label: "x",
      role: "viewer",
      expiresAt: "2020-01-01T00:00:00Z",
    });
    expect([passed.status, passed.body.detail]).toEqual([400, expect.stringMatching(/^expiresAt: found .*has passed/)]);
    const two = { label: "x", role: "viewer", expiresAt: "2040-01-01T00:00:00Z", expiresInDays: 1 };
    expect((await owner("POST", "/v1/api-keys", two)).body.detail).toMatch(/^expiresInDays: /);
  });
});

describe("a rotated key", () => {
  it("works beside the new one for the overlap, and then no more, on every replica", async () => {
    const old = await make({ expiresInDays: 90 });
    const answer = await owner("POST", `/v1/api-keys/${old.apiKey.keyId}/rotate`, { overlapSeconds: 3600 });
    const made = answer.body as Made & { replaced: Made["apiKey"] };
    expect(answer.status).toBe(201);
    expect(made.apiKey).toMatchObject({ label: "CI", role: "operator", rotatedFrom: old.apiKey.keyId });
    expect(made.replaced).toMatchObject({ state: "expiring", replacedBy: made.apiKey.keyId });
    // As long a life as the old one was made for.
    expect(Date.parse(made.apiKey.expiresAt!) - clock.now()).toBeCloseTo(90 * 86_400_000, -5);
    expect(Date.parse(made.replaced.expiresAt!) - clock.now()).toBeCloseTo(3_600_000, -5);
    for (const at of [server, replica]) expect([await meOf(old.key, at), await meOf(made.key, at)]).toEqual([200, 200]);
    clock.forward(3_600_000);
    for (const at of [server, replica]) expect([await meOf(old.key, at), await meOf(made.key, at)]).toEqual([401, 200]);
  });

  it("never lives longer than it would have", async () => {
    const old = await make({ expiresInDays: 1 });
    const body = { overlapSeconds: 30 * 86_400 };
    const made = (await owner("POST", `/v1/api-keys/${old.apiKey.keyId}/rotate`, body)).body as unknown as {
      replaced: Made["apiKey"];
    };
    expect(made.replaced.expiresAt).toBe(old.apiKey.expiresAt);
  });

  it("is not rotated again: the answer names its successor; nor is one that is over", async () => {
    const old = await make();
    const made = (await owner("POST", `/v1/api-keys/${old.apiKey.keyId}/rotate`, {})).body as Made;
    const again = await owner("POST", `/v1/api-keys/${old.apiKey.keyId}/rotate`, {});
    expect([again.status, again.body.code, again.body.replacedBy]).toEqual([409, "key-not-current", made.apiKey.keyId]);
    await owner("DELETE", `/v1/api-keys/${made.apiKey.keyId}`);
    const revoked = await owner("POST", `/v1/api-keys/${made.apiKey.keyId}/rotate`, {});
    expect([revoked.body.code, revoked.body.state]).toEqual(["key-not-current", "revoked"]);
  });

  it("twice at once has one successor", async () => {
    const { keyId } = (await make()).apiKey;
    const both = await Promise.all([1, 2].map(() => owner("POST", `/v1/api-keys/${keyId}/rotate`, {})));
    expect(both.map((answer) => answer.status).sort()).toEqual([201, 409]);
  });
});

describe("a revoked key", () => {
  it("is refused within five seconds, on a replica that has just looked at it, too", async () => {
    const made = await make();
    expect([await meOf(made.key), await meOf(made.key, replica)]).toEqual([200, 200]);
    expect((await owner("DELETE", `/v1/api-keys/${made.apiKey.keyId}`)).body).toMatchObject({ changed: true });
    clock.forward(5_000);
    expect([await meOf(made.key), await meOf(made.key, replica)]).toEqual([401, 401]);
    expect((await owner("DELETE", `/v1/api-keys/${made.apiKey.keyId}`)).body).toMatchObject({ changed: false });
  });

  it("is never the last admin key that is meant to stay, whoever else is revoked at the same time", async () => {
    const alone = await startTestServer();
    const own = await alone.tenant("platform");
    const [first, second] = [await alone.key(own, "admin"), await alone.key(own, "admin")];
    const asFirst = callerOf(alone, first);
    const idOf = async (key: string) =>
      ((await callerOf(alone, key)("GET", "/v1/me")).body.key as { keyId: string }).keyId;
    const [firstId, secondId] = [await idOf(first), await idOf(second)];
    const both = await Promise.all([firstId, secondId].map((id) => asFirst("DELETE", `/v1/api-keys/${id}`)));
    expect(both.map((answer) => [answer.status, answer.body.code]).sort()).toEqual([
      [200, undefined],
      [409, "last-admin-key"],
    ]);
    const left = both[0]!.status === 409 ? { key: first, id: firstId } : { key: second, id: secondId };
    const asLeft = callerOf(alone, left.key);
    // Its successor is another: then it may go, and one that was replaced does not count as staying.
    const made = (await asLeft("POST", `/v1/api-keys/${left.id}/rotate`, {})).body as Made;
    expect((await asLeft("DELETE", `/v1/api-keys/${made.apiKey.keyId}`)).body.code).toBe("last-admin-key");
    expect((await asLeft("DELETE", `/v1/api-keys/${left.id}`)).body).toMatchObject({ changed: true });
    await alone.close();
  });
});

describe("the last use of a key", () => {
  it("is told within seconds", async () => {
    const made = await make();
    await meOf(made.key);
    const lastUsedAt = async () => (await owner("GET", `/v1/api-keys/${made.apiKey.keyId}`)).body.lastUsedAt;
    await vi.waitFor(async () => expect(await lastUsedAt()).not.toBeNull(), 10_000);
  });

  it("is written once a minute at most, and a write that fails harms nobody and is made up for", async () => {
    const writes: string[][] = [];
    let broken = true;
    const authority = {
      transact: async (_verb: string, work: (tx: unknown) => Promise<void>) => {
        if (broken) throw new Error("the database is away");
        await work({ query: async (_statement: unknown, [ids]: [string[]]) => void writes.push(ids) });
      },
    } as never;
    const own = movableClock();
    const keyUse = createKeyUse({ authority, clock: own, log: silentLog });
    keyUse.note("a");
    await keyUse.close();
    broken = false;
    for (const id of ["a", "b", "a"]) keyUse.note(id);
    await keyUse.close();
    own.forward(59_000);
    keyUse.note("a");
    await keyUse.close();
    own.forward(1_000);
    keyUse.note("a");
    await keyUse.close();
    expect(writes).toEqual([["a", "b"], ["a"]]);
  });
});

it("who made, rotated and revoked a key is on record, without its secret", async () => {
  const made = await make({ label: "watched" });
  const rotated = (await owner("POST", `/v1/api-keys/${made.apiKey.keyId}/rotate`, {})).body as Made;
  await owner("DELETE", `/v1/api-keys/${rotated.apiKey.keyId}`);
  const rows = await server.db.query<{ action: string; actor: string }>(
    sql(
      "test_key_audit",
      "select action, actor, to_jsonb(e)::text as row from audit_event e where subject = any($1::text[]) order by id",
    ),
    [[made.apiKey.keyId, rotated.apiKey.keyId]],
  );
  const { keyId } = (await owner("GET", "/v1/me")).body.key as { keyId: string };
  expect(rows.map(({ action, actor }) => [action, actor])).toEqual(
    ["api-key.create", "api-key.rotate", "api-key.revoke"].map((action) => [action, keyId]),
  );
  for (const key of [made.key, rotated.key]) expect(JSON.stringify(rows)).not.toContain(key.slice(16));
});
