import pg from "pg";
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { z } from "zod";
import { createJobCatalogue } from "../../src/api/job-catalogue.ts";
import { newMasterKey } from "../../src/app/secrets/key-list.ts";
import { createMasterKeys } from "../../src/app/secrets/master-keys.ts";
import { createVault } from "../../src/authority/secrets/vault.ts";
import { secret } from "../../src/domain/secrets/marks.ts";
import { call, startTestServer, type TestServer } from "../api/server.ts";

const JOB = { kind: "function", name: "test.marked", version: 1 };
const jobs = createJobCatalogue([
  {
    name: "test.marked",
    version: 1,
    input: z.looseObject({
      password: secret(z.string().min(3)).optional(),
      list: z.array(z.looseObject({ token: z.string().optional() })).optional(),
      url: z.url("must be a URL").optional(),
    }),
  },
]);

let server: TestServer;
let bare: TestServer;
let admin: pg.Pool;
let key: string;
let viewer: string;
let tenantId: string;

beforeAll(async () => {
  server = await startTestServer({ jobs }, 0, 4, createMasterKeys(newMasterKey("first")));
  bare = await startTestServer({ jobs });
  admin = new pg.Pool({ connectionString: server.databaseUrl, max: 1 });
  admin.on("error", () => undefined);
  tenantId = await server.tenant("acme");
  key = await server.key(tenantId, "admin");
  viewer = await server.key(tenantId, "viewer");
});

afterAll(async () => {
  await admin.end();
  await server.close();
  await bare.close();
});

const ask = (method: string, path: string, body?: unknown, headers: Record<string, string> = {}) =>
  call(server.url, method, path, { key, body, headers });

const scheduleOf = (payload: unknown) => ({
  name: "secretive",
  rule: { kind: "cron", expression: "0 0 1 1 *", zone: "Etc/UTC" },
  job: JOB,
  payload,
});

type Shown = { scheduleId: string; revision: number; payload: Record<string, never> };

async function create(payload: unknown, headers: Record<string, string> = {}): Promise<Shown> {
  const { status, body, text } = await ask("POST", "/v1/schedules", scheduleOf(payload), headers);
  expect(status, text).toBe(201);
  return body as Shown;
}

async function put({ scheduleId, revision }: Shown, payload: unknown) {
  return ask("PUT", `/v1/schedules/${scheduleId}`, { ...scheduleOf(payload), expectedRevision: revision });
}

async function stored(scheduleId: string, revision: number): Promise<Record<string, never>> {
  const { rows } = await admin.query(
    "select payload from schedule_revision r join schedule s on s.id = r.schedule_id where r.revision = $2 and s.id = $1",
    [await uuidOf(scheduleId), revision],
  );
  return rows[0].payload;
}

async function uuidOf(shown: string): Promise<string> {
  const { readId } = await import("../../src/kernel/ids.ts");
  return readId("sch", shown)!;
}

const SHOWN = { $secret: null, $version: expect.stringMatching(/^[0-9a-f]{16}$/) };
const SEALED = { $sealed: expect.stringMatching(/^v1\./) };

it("what is wrapped and what the job marks is stored sealed and shown as secret, in every answer", async () => {
  const made = await create({
    password: "plainly sent",
    list: [{ token: { $secret: "t-1" } }],
    url: "https://x.example",
  });
  expect(made.payload).toEqual({ password: SHOWN, list: [{ token: SHOWN }], url: "https://x.example" });
  expect(await stored(made.scheduleId, 1)).toEqual({
    password: SEALED,
    list: [{ token: SEALED }],
    url: "https://x.example",
  });
  expect((await ask("GET", `/v1/schedules/${made.scheduleId}`)).body.payload).toEqual(made.payload);
  const { rows } = await admin.query(
    "select after::text from audit_event where action = 'schedule.create' order by id desc",
  );
  expect(rows[0].after).not.toContain("plainly sent");
  const root = await create({ $secret: { password: "all of it" } });
  expect(root.payload).toEqual(SHOWN);
});

it("GET, edit, PUT keeps the secrets that are there, and what is stored of them stays the same to the letter", async () => {
  const made = await create({
    password: "kept",
    list: [
      { id: 1, token: { $secret: "one" } },
      { id: 2, token: { $secret: "two" } },
    ],
  });
  const before = await stored(made.scheduleId, 1);
  const { body } = await put(made, { ...made.payload, url: "https://y.example" });
  expect(body).toMatchObject({ revision: 2, payload: { ...(made.payload as object), url: "https://y.example" } });
  expect(await stored(made.scheduleId, 2)).toEqual({ ...before, url: "https://y.example" });

  // An item that moves takes its own secret along, not the one of whoever stood there before.
  const [, second] = made.payload.list as never as object[];
  const moved = await put(body as Shown, { ...made.payload, list: [second] });
  expect(moved.body.payload).toMatchObject({ list: [second] });
  expect(await stored(made.scheduleId, 3)).toMatchObject({ list: [before.list![1]] });
  const patched = await ask("PATCH", `/v1/schedules/${made.scheduleId}`, { expectedRevision: 3, notes: "no payload" });
  expect(patched.body.payload).toEqual(moved.body.payload);
});

it("the same secret sent anew is no change, another one is, and the diff says so without saying more", async () => {
  const made = await create({ password: "first value" });
  const same = await put(made, { password: { $secret: "first value" } });
  expect(await stored(made.scheduleId, 2)).toEqual(await stored(made.scheduleId, 1));
  const other = await put(same.body as Shown, { password: "second value" });
  expect(other.body.payload).not.toEqual(made.payload);
  const diff = async (n: number) =>
    (await ask("GET", `/v1/schedules/${made.scheduleId}/revisions/${n}/diff`)).body.fields;
  expect(await diff(2)).toEqual([]);
  expect(await diff(3)).toEqual([
    { field: "payload.password", from: made.payload.password, to: (other.body.payload as Shown["payload"]).password },
  ]);
});

it("a secret that is to stay where there is none is refused by its field; so is one from another field or revision", async () => {
  const none = await ask("POST", "/v1/runs", { job: JOB, payload: { a: { b: { $secret: null } } } });
  expect(none.body).toMatchObject({
    status: 400,
    errors: [{ field: "payload.a.b", message: "has no secret to keep" }],
  });
  const made = await create({ password: "mine alone" });
  const elsewhere = await put(made, { title: made.payload.password });
  expect(elsewhere.body).toMatchObject({ status: 400, errors: [{ field: "payload.title" }] });
  const wrong = await put(made, { password: { $secret: null, $version: "0123456789abcdef" } });
  expect(wrong.body).toMatchObject({
    errors: [{ field: "payload.password", message: "is not the version that is there" }],
  });
  const stale = await ask("PATCH", `/v1/schedules/${made.scheduleId}`, { expectedRevision: 9, payload: made.payload });
  expect(stale.body).toMatchObject({ code: "revision-conflict", current: { payload: made.payload } });
});

it("nobody sends a sealed value, and what is refused is not said again", async () => {
  const made = await create({ password: "to be copied" });
  const sealed = await stored(made.scheduleId, 1);
  expect((await ask("POST", "/v1/runs", { job: JOB, payload: sealed })).body).toMatchObject({
    errors: [{ field: "payload.password", found: "$sealed" }],
  });
  const wrong = await ask("POST", "/v1/runs", {
    job: JOB,
    payload: { url: { $secret: "hunter2 is no url" }, password: "zz" },
  });
  expect(wrong.status).toBe(400);
  expect(wrong.body.errors).toEqual([
    { field: "payload.password", message: "is too small", found: "a secret", allowed: "at least 3 characters" },
    { field: "payload.url", message: "must be a URL", found: "a secret" },
  ]);
  expect(wrong.text).not.toMatch(/hunter2|zz/);
});

it("a preview says that a secret is new, whatever it is: nobody tries guesses with it", async () => {
  const made = await create({ password: "guess me" });
  for (const password of ["guess me", "wrong", { $secret: "guess me" }]) {
    const seen = await call(server.url, "POST", `/v1/schedules/${made.scheduleId}/preview`, {
      key: viewer,
      body: { payload: { password } },
    });
    expect((seen.body.diff as { fields: unknown }).fields).toEqual([
      { field: "payload.password", from: made.payload.password, to: { $secret: null } },
    ]);
  }
  const kept = await ask("POST", `/v1/schedules/${made.scheduleId}/preview`, { payload: made.payload });
  expect((kept.body.diff as { fields: unknown }).fields).toEqual([]);
});

it("what is refused of a plain field is said as it was sent, also where it is the secret that stays: nobody tries guesses with it", async () => {
  const made = await create({ password: "4711" });
  for (const guess of ["4710", "4711"]) {
    const seen = await call(server.url, "POST", `/v1/schedules/${made.scheduleId}/preview`, {
      key: viewer,
      body: { payload: { password: { $secret: null }, url: guess, list: [guess] } },
    });
    expect(seen.body.errors).toEqual([
      {
        field: "payload.list[0]",
        message: "must be an object of token",
        found: `"${guess}"`,
        allowed: "an object of token",
      },
      { field: "payload.url", message: "must be a URL", found: `"${guess}"` },
    ]);
  }
});

it("a payload is as large as it was sent, for its limits and for quotas, and a secret that is to stay in many places counts in each", async () => {
  const large = await create({ list: [{ token: { $secret: "x".repeat(60_000) } }] });
  const [item] = large.payload.list as never as object[];
  const copies = (length: number) => ({ list: Array.from({ length }, () => item) });
  const opening = vi.spyOn(server.authority.vault, "open");
  expect((await put(large, copies(1_001))).status).toBe(400);
  const { status, body } = await put(large, copies(1_000));
  expect(opening).not.toHaveBeenCalled();
  opening.mockRestore();
  expect({ status, code: body.code }).toEqual({ status: 413, code: "payload-too-large" });
  expect(body.detail).toContain("found 60013010 bytes");

  const tenant = await server.tenant("measured");
  const own = await server.key(tenant, "admin");
  const post = (payload: unknown) => call(server.url, "POST", "/v1/schedules", { key: own, body: scheduleOf(payload) });
  const quota = Buffer.byteLength(JSON.stringify({ password: "Ä".repeat(300), list: [{ token: "abc" }] }));
  await call(server.url, "PUT", "/v1/quotas", { key: own, body: { payloadBytes: quota } });
  const sent = (token: string) => ({ password: "Ä".repeat(300), list: [{ token: { $secret: token } }] });
  expect((await post(sent("abc"))).status).toBe(201);
  expect((await post(sent("abcd"))).body).toMatchObject({ status: 413, limit: quota, found: quota + 1 });
});

it("a payload holds a thousand secrets at most, and keeping all of them takes no time to speak of", async () => {
  const listOf = (n: number) => ({ list: Array.from({ length: n }, (_, i) => ({ token: { $secret: `${i}` } })) });
  const most = await create(listOf(1_000));
  const kept = await put(most, most.payload);
  expect(kept.body.payload).toEqual(most.payload);
  const more = await put(kept.body as Shown, listOf(1_001));
  expect(more.body).toMatchObject({ status: 400, errors: [{ field: "payload", found: "1001 secrets" }] });
});

it("a repeated request is known although its secret is sealed anew, another secret is another request, and the hash is keyed", async () => {
  const body = { job: JOB, payload: { password: "1234" } };
  const first = await ask("POST", "/v1/runs", body, { "idempotency-key": "again" });
  const repeat = await ask("POST", "/v1/runs", body, { "idempotency-key": "again" });
  expect([repeat.body.runId, repeat.headers.get("idempotency-replayed")]).toEqual([first.body.runId, "true"]);
  const other = await ask(
    "POST",
    "/v1/runs",
    { ...body, payload: { password: "1235" } },
    { "idempotency-key": "again" },
  );
  expect(other.body.code).toBe("request-key-reused");
  const { createHash } = await import("node:crypto");
  const canonical = `{"job":{"kind":"function","name":"test.marked","version":1},"payload":{"password":"1234"}}`;
  const plain = createHash("sha256").update(canonical).digest();
  const { rows } = await admin.query("select request_sha256 from request_key where key = 'run:again'");
  expect(plain.equals(rows[0].request_sha256)).toBe(false);

  // As an older program has written it down.
  await admin.query("update request_key set request_sha256 = $1 where key = 'run:again'", [plain]);
  expect((await ask("POST", "/v1/runs", body, { "idempotency-key": "again" })).body.runId).toBe(first.body.runId);
});

it("run-now takes what was shown of its schedule, and keeps what it sealed", async () => {
  const made = await create({ password: "for now" });
  const { body } = await ask("POST", `/v1/schedules/${made.scheduleId}/runs`, {
    payload: { ...made.payload, url: "https://z.example" },
  });
  const run = await ask("GET", `/v1/runs/${body.runId}`);
  expect(run.body.payload).toEqual({ ...(made.payload as object), url: "https://z.example" });
});

it("a sealed value in another tenant's payload does not open there", async () => {
  const made = await create({ password: "acme's own" });
  const { $sealed } = (await stored(made.scheduleId, 1)).password as never as { $sealed: string };
  const { vault } = server.authority;
  expect([...(await vault.open(tenantId, [$sealed])).values()]).toEqual(["acme's own"]);
  const rival = await server.tenant("rival");
  await expect(vault.open(rival, [$sealed])).rejects.toMatchObject({ code: "secret-unavailable" });
  // Nor does the key open that was copied along with it.
  await admin.query(
    `insert into tenant_data_key (tenant_id, id, wrapped, master_key_id)
     select $1, id, wrapped, master_key_id from tenant_data_key where tenant_id = $2`,
    [rival, tenantId],
  );
  await expect(vault.open(rival, [$sealed])).rejects.toMatchObject({ code: "secret-unavailable" });
});

it("without master keys a secret is refused and nothing is stored; everything else goes on", async () => {
  const own = await bare.key(await bare.tenant("bare"), "admin");
  const post = (payload: unknown, headers = {}) =>
    call(bare.url, "POST", "/v1/schedules", { key: own, body: scheduleOf(payload), headers });
  for (const payload of [{ password: "marked" }, { a: { $secret: "wrapped" } }]) {
    for (const headers of [{}, { "idempotency-key": "k" }]) {
      expect((await post(payload, headers)).body).toMatchObject({ status: 503, code: "secrets-unavailable" });
    }
  }
  expect((await bare.db.query({ name: "none", text: "select id from schedule", arrays: new Map() })).length).toBe(0);
  expect((await post({ url: "https://plain.example" })).status).toBe(201);
});

it("the first key of a tenant is made once, however many ask for it at the same time", async () => {
  const tenant = await server.tenant("sudden");
  const { authority } = server;
  const keys = createMasterKeys(newMasterKey("other"));
  const texts = await Promise.all(
    Array.from({ length: 6 }, async () => (await createVault(authority, keys).sealer(tenant))("quiet")),
  );
  expect(new Set(texts.map((text) => text.split(".")[1])).size).toBe(1);
  expect(new Set(texts).size).toBe(6);
});
