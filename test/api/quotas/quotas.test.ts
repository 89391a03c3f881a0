import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { showId, type Uuid } from "../../../src/kernel/ids.ts";
import { call, REPORT, startTestServer, type TestServer } from "../server.ts";

let server: TestServer;
let admin: string;
let owner: string;
let tenantId: string;
beforeAll(async () => {
  server = await startTestServer();
});
afterAll(() => server?.close());

/** A tenant of its own for each story. */
async function newTenant(name: string): Promise<void> {
  tenantId = await server.tenant(name);
  [admin, owner] = [await server.key(tenantId, "admin"), await server.key(tenantId, "owner")];
}
const as = (key: string) => (method: string, path: string, body?: unknown, headers?: Record<string, string>) =>
  call(server.url, method, path, { key, body, ...(headers === undefined ? {} : { headers }) });
const put = async (body: object) => {
  const { body: current } = await as(admin)("GET", "/v1/quotas");
  const answer = await as(admin)("PUT", "/v1/quotas", { ...body, expectedVersion: current.version });
  expect(answer.status, answer.text).toBe(200);
  return answer.body;
};
const rule = { kind: "interval", everyMs: 3_600_000, anchorAt: 0 };
const schedule = (change: object = {}) => ({ name: "s", rule, job: REPORT, payload: {}, ...change });
const create = (change: object = {}, headers?: Record<string, string>) =>
  as(owner)("POST", "/v1/schedules", schedule(change), headers);
const run = (headers?: Record<string, string>) => as(owner)("POST", "/v1/runs", { job: REPORT, payload: {} }, headers);

const NO_LIMITS = {
  schedules: null,
  minIntervalMs: null,
  payloadBytes: null,
  queuedRuns: null,
  requestedRunsPerDay: null,
};

describe("quotas", () => {
  it("of a new tenant are the defaults, at version 0; every reader sees them", async () => {
    await newTenant("defaults");
    const answer = await as(owner)("GET", "/v1/quotas");
    expect(answer.headers.get("etag")).toBe('"0"');
    const unset = { maxRunning: null, startRatePerSecond: null, weight: 1, onInfeasible: "warn", version: 0 };
    expect(answer.body).toEqual({
      ...NO_LIMITS,
      apiRatePerSecond: 200,
      apiBurst: 2_000,
      version: 0,
      classes: { short: unset, long: unset, memory: unset, remote: unset },
    });
  });

  it("are set by admins alone, against the version that was read", async () => {
    await newTenant("setting");
    const forbidden = await as(owner)("PUT", "/v1/quotas", { schedules: 3 });
    expect([forbidden.status, forbidden.body.code]).toEqual([403, "forbidden"]);
    const first = await as(admin)("PUT", "/v1/quotas", { schedules: 3 });
    expect(first.body).toEqual({ ...NO_LIMITS, schedules: 3, apiRatePerSecond: 200, apiBurst: 2_000, version: 1 });
    expect(first.headers.get("etag")).toBe('"1"');
    const stale = await as(admin)("PUT", "/v1/quotas", { schedules: 4 }, { "if-match": '"0"' });
    expect([stale.status, stale.body.code, stale.body.current]).toMatchObject([
      409,
      "quota-conflict",
      { schedules: 3 },
    ]);
    const second = await as(admin)("PUT", "/v1/quotas", { schedules: 4 }, { "if-match": '"1"' });
    expect(second.body).toMatchObject({ schedules: 4, version: 2 });
    const wrong = await as(admin)("PUT", "/v1/quotas", { payloadBytes: 65_537, apiRatePerSecond: 0 });
    expect(wrong.status).toBe(400);
    expect((wrong.body.errors as { field: string }[]).map((one) => one.field)).toEqual([
      "payloadBytes",
      "apiRatePerSecond",
    ]);
  });

  it("of a class are set the same way, and claims go by them", async () => {
    await newTenant("classes");
    const set = (body: object, version: number) =>
      as(admin)("PUT", "/v1/quotas/long", body, { "if-match": `"${version}"` });
    const made = await set({ maxRunning: 5, onInfeasible: "refuse" }, 0);
    expect(made.body).toEqual({
      maxRunning: 5,
      startRatePerSecond: null,
      weight: 1,
      onInfeasible: "refuse",
      version: 1,
    });
    expect((await set({ maxRunning: 6 }, 0)).body).toMatchObject({
      code: "quota-conflict",
      current: { maxRunning: 5 },
    });
    expect((await set({ maxRunning: 5, onInfeasible: "refuse" }, 0)).body).toMatchObject({ version: 1 });
    expect((await as(owner)("PUT", "/v1/quotas/long", {})).status).toBe(403);
    expect((await as(admin)("PUT", "/v1/quotas/huge", {})).status).toBe(400);
    const { body } = await as(owner)("GET", "/v1/quotas");
    expect(body.classes).toMatchObject({ long: { maxRunning: 5, version: 1 }, short: { version: 0 } });
    expect((await as(owner)("GET", "/v1/usage")).body.classes).toMatchObject({ long: { maxRunning: 5, running: 0 } });
  });
});

it("an admin of the platform sets those of another tenant, and is not held to them", async () => {
  await newTenant("the platform");
  const platform = admin;
  const own = tenantId;
  await newTenant("a customer");
  const header = { "punctual-tenant": showId("ten", tenantId as Uuid) };
  const set = await as(platform)("PUT", "/v1/quotas", { schedules: 0 }, header);
  expect(set.body).toMatchObject({ schedules: 0, version: 1 });
  expect((await create()).body.code).toBe("quota-exceeded");
  expect((await as(platform)("GET", "/v1/quotas")).body).toMatchObject({ schedules: null, version: 0 });
  expect((await as(platform)("GET", "/v1/usage", undefined, header)).body).toMatchObject({ schedules: { limit: 0 } });
  const theirs = await as(owner)("GET", "/v1/quotas", undefined, { "punctual-tenant": showId("ten", own as Uuid) });
  expect(theirs.status).toBe(403);
});

describe("more than a quota allows", () => {
  it("schedules: the limit is taken, one more is refused with what is used and when to ask again", async () => {
    await newTenant("many schedules");
    await put({ schedules: 2 });
    expect((await create()).status).toBe(201);
    const last = await create({}, { "idempotency-key": "last" });
    expect(last.status).toBe(201);
    const refusals = async () =>
      (await server.metrics.quotaRefusals.get()).values.find((one) => one.labels.quota === "schedules")?.value ?? 0;
    const refusedBefore = await refusals();
    const refused = await create();
    expect(refused.status).toBe(429);
    expect(refused.headers.get("retry-after")).toBe("60");
    expect(refused.body).toMatchObject({
      code: "quota-exceeded",
      retryable: true,
      quota: "schedules",
      limit: 2,
      used: 2,
    });
    const again = await create({}, { "idempotency-key": "last" });
    expect([again.status, again.headers.get("idempotency-replayed")]).toEqual([201, "true"]);
    expect(again.body.scheduleId).toBe(last.body.scheduleId);
    expect(await refusals()).toBe(refusedBefore + 1);
    expect((await as(owner)("GET", "/v1/usage")).body).toMatchObject({
      schedules: { used: { value: 2, capped: false }, limit: 2 },
    });
    await newTenant("somebody else");
    expect((await create()).status).toBe(201);
  });

  it("payloads and intervals: no waiting helps, so it is not 429", async () => {
    await newTenant("large and often");
    await put({ payloadBytes: 10, minIntervalMs: 60_000 });
    const large = await create({ payload: { a: "12345" } });
    expect([large.status, large.headers.get("retry-after")]).toEqual([413, null]);
    expect(large.body).toMatchObject({
      code: "payload-too-large",
      retryable: false,
      quota: "payloadBytes",
      limit: 10,
      found: 13,
    });
    const often = await create({ rule: { ...rule, everyMs: 59_000 } });
    expect(often.status).toBe(403);
    expect(often.body).toMatchObject({
      code: "interval-below-quota",
      retryable: false,
      quota: "minIntervalMs",
      limit: 60_000,
      found: 59_000,
    });
    const made = await create();
    const path = `/v1/schedules/${made.body.scheduleId}`;
    const patch = (body: object) => as(owner)("PATCH", path, { expectedRevision: 1, ...body });
    expect((await patch({ rule: { ...rule, everyMs: 59_000 } })).body.code).toBe("interval-below-quota");
    expect((await patch({ payload: { a: "12345" } })).body.code).toBe("payload-too-large");
    expect((await as(owner)("POST", `${path}/runs`, { payload: { a: "12345" } })).status).toBe(413);
    expect((await as(owner)("POST", "/v1/runs", { job: REPORT, payload: { a: "12345" } })).status).toBe(413);
    expect((await as(owner)("PUT", path, { ...schedule(), payload: { a: "12345" }, expectedRevision: 1 })).status).toBe(
      413,
    );
  });

  it("runs that wait, and runs of a day: until when is said, and is so", async () => {
    await newTenant("many runs");
    await put({ queuedRuns: 1 });
    expect((await run()).status).toBe(201);
    const waiting = await run();
    expect([waiting.status, waiting.headers.get("retry-after"), waiting.body.quota]).toEqual([429, "5", "queuedRuns"]);

    await put({ requestedRunsPerDay: 1 });
    expect((await run({ "idempotency-key": "one" })).status).toBe(201);
    const before = Date.now();
    const refused = await run();
    expect(refused.body).toMatchObject({ code: "quota-exceeded", quota: "requestedRunsPerDay", limit: 1, used: 1 });
    const seconds = Number(refused.headers.get("retry-after"));
    // That many seconds from the answer lies in the next day, and not more than a second into it.
    const day = (at: number) => Math.floor(at / 86_400_000);
    expect(day(before + seconds * 1000 + (Date.now() - before))).toBe(day(before) + 1);
    expect(day(before + (seconds - 1) * 1000)).toBe(day(before));
    expect((await run({ "idempotency-key": "one" })).headers.get("idempotency-replayed")).toBe("true");

    const made = await create();
    const path = `/v1/schedules/${made.body.scheduleId}`;
    expect((await as(owner)("POST", `${path}/runs`, {})).body.quota).toBe("requestedRunsPerDay");
    const to = new Date(Date.now() - 1000).toISOString();
    const from = new Date(Date.now() - 7_200_000).toISOString();
    const backfill = await as(owner)("POST", `${path}/backfill`, { from, to, dryRun: false });
    expect([backfill.status, backfill.body.quota]).toEqual([429, "requestedRunsPerDay"]);
    const replay = await as(owner)("POST", "/v1/dead-letters/replay", { filter: {}, dryRun: false });
    expect([replay.status, replay.body.quota]).toEqual([429, "requestedRunsPerDay"]);
    const usage = await as(owner)("GET", "/v1/usage");
    expect(usage.body.requestedRunsPerDay).toMatchObject({ used: 1, limit: 1 });
    expect(usage.body.queuedRuns).toMatchObject({ used: { value: 2, capped: false }, limit: null });
    expect(usage.body.classes).toMatchObject({ short: { waiting: { value: 2 }, running: 0 } });
    // Looking costs nothing of it.
    expect((await as(owner)("POST", `${path}/backfill`, { from, to })).status).toBe(200);
  });
});
