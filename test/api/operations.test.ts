import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { backfillPlanSchema, operationSchema } from "../../src/api/present/operation.ts";
import { createOperationsDriver } from "../../src/loops/operations.ts";
import { sql } from "../../src/store/database.ts";
import { call, REPORT, startTestServer, type TestServer } from "./server.ts";

const DAY = 86_400_000;
const HOUR = 3_600_000;

let server: TestServer;
let owner: string;
let viewer: string;
let stranger: string;
const send = (method: string, path: string, body?: unknown, headers: Record<string, string> = {}, key = owner) =>
  call(server.url, method, path, { key, ...(body === undefined ? {} : { body }), headers });

beforeAll(async () => {
  server = await startTestServer();
  const acme = await server.tenant("acme");
  owner = await server.key(acme, "owner");
  viewer = await server.key(acme, "viewer");
  stranger = await server.key(await server.tenant("strangers"), "owner");
});
afterAll(() => server?.close());

/** Whole hours, long past: nothing here moves while a test runs. */
const fromAt = Math.floor(Date.now() / DAY) * DAY - 3 * DAY;
const iso = (at: number) => new Date(at).toISOString().replace(".000Z", "Z");
const pass = () => createOperationsDriver({ authority: server.authority }).pass(new AbortController().signal);
const hurry = () => server.db.query(sql("test_hurry", "update operation set next_step_at = clock_timestamp()"));

async function hourly(): Promise<string> {
  const rule = { kind: "cron", expression: "0 * * * *", zone: "Etc/UTC" };
  const made = await send("POST", "/v1/schedules", { name: "hourly", rule, job: REPORT, overlap: { policy: "allow" } });
  expect(made.status, made.text).toBe(201);
  return String(made.body.scheduleId);
}
const backfill = (schedule: string, body: object, headers: Record<string, string> = {}, key = owner) =>
  send("POST", `/v1/schedules/${schedule}/backfill`, body, headers, key);
const day = { from: iso(fromAt), to: iso(fromAt + DAY) };

describe("POST /v1/schedules/:id/backfill", () => {
  it("says by default what it would do, and changes nothing", async () => {
    const schedule = await hourly();
    const answer = await backfill(schedule, { ...day, pacePerSecond: 5 });
    expect(answer.status, answer.text).toBe(200);
    expect(answer.body).toMatchObject({ dryRun: true, operation: null });
    expect(backfillPlanSchema.parse(answer.body.plan)).toMatchObject({
      revision: 1,
      instants: { value: 24, capped: false },
      runs: { value: 24, capped: false },
      counts: { unrecorded: 24 },
      firstAt: iso(fromAt),
      lastAt: iso(fromAt + 23 * HOUR),
      estimatedSeconds: 5,
    });
    const { sample } = answer.body.plan as { sample: object[] };
    expect(sample).toHaveLength(5);
    expect(sample[0]).toEqual({ at: iso(fromAt), dueAt: iso(fromAt), was: "unrecorded", reason: null });
    expect((await send("GET", `/v1/schedules/${schedule}/runs`)).body.items).toEqual([]);
    expect((await send("GET", `/v1/operations?scheduleId=${schedule}`)).body.items).toEqual([]);
  });

  it("is an operation that can be followed to its end, and its runs can be found", async () => {
    const schedule = await hourly();
    const made = await backfill(schedule, { ...day, dryRun: false, pacePerSecond: 20, reason: "a lost day" });
    expect(made.status, made.text).toBe(200);
    const operation = operationSchema.parse(made.body.operation);
    expect(operation).toMatchObject({ state: "pending", total: 24, done: 0, reason: "a lost day", kind: "backfill" });
    expect(operation.arguments).toEqual({ ...day, policy: "missing" });
    expect(made.headers.get("location")).toBe(`/v1/operations/${operation.operationId}`);
    await pass();
    const path = `/v1/operations/${operation.operationId}`;
    expect((await send("GET", path)).body).toMatchObject({ state: "working", done: 20 });
    await hurry();
    await pass();
    const ended = await send("GET", path, undefined, {}, viewer);
    expect(ended.body).toMatchObject({ state: "done", done: 24, counts: { unrecorded: 24 }, nextStepAt: null });
    const counted = await server.db.query<{ n: number }>(
      sql("test_backfilled", "select count(*)::int as n from run where trigger = 'backfill' and state = 'open'"),
    );
    expect(counted[0]!.n).toBe(24);
    const again = await backfill(schedule, day);
    expect(again.body.plan).toMatchObject({ runs: { value: 0 }, counts: { "existing:queued": 24 }, firstAt: null });
  });

  it("with an idempotency key is begun once", async () => {
    const schedule = await hourly();
    const key = { "idempotency-key": "b-1" };
    const body = { ...day, dryRun: false };
    const first = await backfill(schedule, body, key);
    const again = await backfill(schedule, body, key);
    expect((again.body.operation as { operationId: string }).operationId).toBe(
      (first.body.operation as { operationId: string }).operationId,
    );
    expect(again.headers.get("idempotency-replayed")).toBe("true");
    expect(again.body.plan).toBeNull();
    const other = await backfill(schedule, { ...body, pacePerSecond: 1 }, key);
    expect([other.status, other.body.code]).toEqual([409, "request-key-reused"]);
    // The key is this schedule's, and a dry run uses none.
    expect((await backfill(schedule, { ...day, dryRun: true }, key)).status).toBe(200);
    expect((await backfill(await hourly(), body, key)).headers.get("idempotency-replayed")).toBeNull();
  });

  it.each([
    [{ from: day.to, to: day.from }, "to", /is not after from/],
    [{ from: "2001-01-01T00:00:00Z", to: day.to }, "from", /further back than history is kept; allowed: 20/],
    [{ from: day.from, to: "2099-01-01T00:00:00Z" }, "to", /does not lie in the past; allowed: 20/],
    [{ ...day, policy: "al-skipped" }, "policy", /did you mean "all-skipped"/],
    [{ ...day, pacePerSecond: 0 }, "pacePerSecond", /too small/],
    [{ ...day, pace: 5 }, "pace", /not a known field/],
    [{ from: day.from }, "to", /./],
  ])("refuses %j, naming %s", async (body, field, message) => {
    const schedule = await hourly();
    for (const dryRun of [true, false]) {
      const answer = await backfill(schedule, { ...body, dryRun });
      expect([answer.status, answer.body.code], answer.text).toEqual([400, "invalid-request"]);
      expect(answer.body.errors).toMatchObject([{ field }]);
      expect(answer.body.detail).toMatch(message);
    }
  });

  it("is for those who may change things, on their own schedules, until these are deleted", async () => {
    const schedule = await hourly();
    expect((await backfill(schedule, day, {}, viewer)).status).toBe(403);
    expect((await backfill(schedule, day, {}, stranger)).status).toBe(404);
    await send("DELETE", `/v1/schedules/${schedule}`);
    for (const dryRun of [true, false]) {
      const refused = await backfill(schedule, { ...day, dryRun });
      expect([refused.status, refused.body.code, refused.body.status]).toEqual([409, "schedule-not-active", "deleted"]);
    }
  });
});

describe("GET /v1/operations", () => {
  it("lists the newest first, page by page, by state and by schedule; a foreign one does not exist", async () => {
    const schedule = await hourly();
    const ids: string[] = [];
    for (let n = 0; n < 3; n++) {
      const made = await backfill(schedule, { ...day, dryRun: false });
      ids.push((made.body.operation as { operationId: string }).operationId);
    }
    const first = await send("GET", `/v1/operations?scheduleId=${schedule}&limit=2`);
    const shown = (answer: typeof first) =>
      (answer.body.items as { operationId: string }[]).map((one) => one.operationId);
    expect(shown(first)).toEqual([ids[2], ids[1]]);
    const second = await send("GET", `/v1/operations?scheduleId=${schedule}&limit=2&after=${String(first.body.next)}`);
    expect(shown(second)).toEqual([ids[0]]);
    expect(second.body.next).toBeNull();
    expect(shown(await send("GET", `/v1/operations?scheduleId=${schedule}&state=done`))).toEqual([]);
    expect((await send("GET", "/v1/operations?state=open")).body.code).toBe("invalid-request");
    expect((await send("GET", `/v1/operations/${ids[0]}`, undefined, {}, stranger)).status).toBe(404);
    expect((await send("GET", "/v1/operations/op_nonsense")).status).toBe(404);
  });

  it("an open one can be canceled, once; an ended one cannot", async () => {
    const schedule = await hourly();
    const made = await backfill(schedule, { ...day, dryRun: false, pacePerSecond: 1 });
    const path = `/v1/operations/${(made.body.operation as { operationId: string }).operationId}`;
    expect((await send("POST", `${path}/cancel`, {}, {}, viewer)).status).toBe(403);
    expect((await send("POST", `${path}/cancel`, {}, {}, stranger)).status).toBe(404);
    expect((await send("POST", `${path}/cancel`)).body).toMatchObject({
      changed: true,
      operation: { state: "canceled" },
    });
    expect((await send("POST", `${path}/cancel`)).body).toMatchObject({ changed: false });
    const small = await backfill(schedule, { from: day.from, to: iso(fromAt + HOUR), dryRun: false });
    const other = `/v1/operations/${(small.body.operation as { operationId: string }).operationId}`;
    for (let n = 0; n < 50 && (await send("GET", other)).body.state !== "done"; n++) {
      await hurry();
      await pass();
    }
    const late = await send("POST", `${other}/cancel`);
    expect([late.status, late.body.code, late.body.state]).toEqual([409, "operation-ended", "done"]);
  });

  it("a tenant may have a hundred open ones", async () => {
    const schedule = await hourly();
    await server.db.query(
      sql(
        "test_many",
        `insert into operation (id, tenant_id, kind, arguments, actor)
         select gen_random_uuid(), tenant_id, 'of-tomorrow', '{}', 'test' from operation, generate_series(1, 100)
          where schedule_id is not null limit 100`,
      ),
    );
    const key = { "idempotency-key": "many" };
    const refused = await backfill(schedule, { ...day, dryRun: false }, key);
    expect([refused.status, refused.body.code, refused.body.retryable]).toEqual([429, "too-many-operations", true]);
    expect(refused.headers.get("retry-after")).toBe("60");
    await server.db.query(sql("test_fewer", "delete from operation where kind = 'of-tomorrow'"));
    expect((await backfill(schedule, { ...day, dryRun: false }, key)).status).toBe(200);
  });
});
