import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import {
  letterDetailSchema,
  letterGroupSchema,
  letterSchema,
  lettersPlanSchema,
} from "../../src/api/present/dead-letter.ts";
import { createOperationsDriver } from "../../src/loops/operations.ts";
import { sql } from "../../src/store/database.ts";
import { giveUp } from "./letters.ts";
import { call, REPORT, startTestServer, type TestServer } from "./server.ts";

let server: TestServer;
let tenant: string;
let owner: string;
let viewer: string;
let stranger: string;
type Headers = Record<string, string>;
const send = (method: string, path: string, body?: unknown, headers: Headers = {}, key = owner) =>
  call(server.url, method, path, { key, ...(body === undefined ? {} : { body }), headers });

beforeAll(async () => {
  server = await startTestServer();
  stranger = await server.key(await server.tenant("strangers"), "owner");
});
/** Each story has a tenant of its own, and so its own dead letters. */
beforeEach(async () => {
  tenant = await server.tenant(`acme ${Math.floor(performance.now() * 1000)}`);
  owner = await server.key(tenant, "owner");
  viewer = await server.key(tenant, "viewer");
});
afterAll(() => server?.close());

const rule = { kind: "cron", expression: "0 0 1 1 *", zone: "Etc/UTC" };

async function schedule(): Promise<string> {
  const made = await send("POST", "/v1/schedules", { name: "yearly", rule, job: REPORT, overlap: { policy: "allow" } });
  expect(made.status, made.text).toBe(201);
  return String(made.body.scheduleId);
}
async function given(scheduleId: string, failure?: Parameters<typeof giveUp>[2]): Promise<string> {
  const runId = String((await send("POST", `/v1/schedules/${scheduleId}/runs`, {})).body.runId);
  await giveUp(server, runId, failure);
  return runId;
}
const pass = () => createOperationsDriver({ authority: server.authority }).pass(new AbortController().signal);
const hurry = () => server.db.query(sql("test_hurry_letters", "update operation set next_step_at = clock_timestamp()"));
const items = (answer: { body: Record<string, unknown> }) => answer.body.items as Record<string, unknown>[];

describe("GET /v1/dead-letters", () => {
  it("lists the latest failure first, page by page, and only those that fit", async () => {
    const [one, two] = [await schedule(), await schedule()];
    const runs = [
      await given(one),
      await given(one, { transient: false, code: "odd", message: "7 odd things" }),
      await given(two),
    ];
    const all = await send("GET", "/v1/dead-letters", undefined, {}, viewer);
    expect(all.status, all.text).toBe(200);
    expect(items(all).map((item) => letterSchema.parse(item).runId)).toEqual(runs.toReversed());
    expect(items(all)[0]).toMatchObject({
      scheduleId: two,
      state: "open",
      reason: "permanent",
      attempts: 1,
      replays: 0,
      error: { code: "broken", message: "no use" },
      job: { kind: "function", name: "report.run-summary", version: 1 },
    });
    const first = await send("GET", "/v1/dead-letters?limit=2");
    const second = await send("GET", `/v1/dead-letters?limit=2&after=${String(first.body.next)}`);
    expect([...items(first), ...items(second)].map((item) => item.runId)).toEqual(runs.toReversed());
    expect(second.body.next).toBeNull();
    const ids = async (query: string) => items(await send("GET", query)).map((item) => item.runId);
    expect(await ids(`/v1/dead-letters?scheduleId=${one}`)).toEqual([runs[1], runs[0]]);
    expect(await ids(`/v1/schedules/${two}/dead-letters`)).toEqual([runs[2]]);
    const { fingerprint, failedAt } = items(first)[1] as { fingerprint: string; failedAt: string };
    expect(await ids(`/v1/dead-letters?fingerprint=${fingerprint}`)).toEqual([runs[1]]);
    expect(await ids(`/v1/dead-letters?to=${failedAt}`)).toEqual([runs[0]]);
    expect(await ids("/v1/dead-letters?reason=crash-loop")).toEqual([]);
    expect(await ids("/v1/dead-letters?class=long")).toEqual([]);
    await send("POST", `/v1/dead-letters/${runs[0]}/dismiss`, {});
    expect(await ids(`/v1/dead-letters?scheduleId=${one}`)).toEqual([runs[1]]);
    expect(await ids("/v1/dead-letters?state=dismissed")).toEqual([runs[0]]);
    expect(await ids("/v1/dead-letters?state=any")).toHaveLength(3);
  });

  it("refuses what it does not know, by name, and other people's schedules", async () => {
    const id = await schedule();
    const codes = async (query: string, key = owner) => {
      const answer = await send("GET", query, undefined, {}, key);
      return [answer.status, answer.body.code, (answer.body.errors as { field: string }[] | undefined)?.[0]?.field];
    };
    expect(await codes("/v1/dead-letters?state=opne")).toEqual([400, "invalid-request", "state"]);
    expect(await codes("/v1/dead-letters?shedule=x")).toEqual([400, "invalid-request", "shedule"]);
    expect(await codes("/v1/dead-letters?from=2026-01-02T00:00:00Z&to=2026-01-01T00:00:00Z")).toEqual([
      400,
      "invalid-request",
      "to",
    ]);
    expect(await codes("/v1/dead-letters?after=abc")).toEqual([400, "invalid-cursor", "after"]);
    for (const path of [`/v1/schedules/${id}/dead-letters`]) expect((await codes(path, stranger))[0]).toBe(404);
    const foreign = await send("GET", `/v1/dead-letters?scheduleId=${id}`, undefined, {}, stranger);
    expect(items(foreign)).toEqual([]);
  });

  it("groups what failed alike, with counts and a sample", async () => {
    const id = await schedule();
    for (const n of [1, 2]) await given(id, { transient: false, code: "odd", message: `${n} odd things` });
    const latest = await given(id, { transient: false, code: "odd", message: "3 odd things" });
    await given(id);
    const answer = await send("GET", "/v1/dead-letters/groups", undefined, {}, viewer);
    expect(items(answer).map((item) => letterGroupSchema.parse(item))).toMatchObject([
      {
        count: { value: 3, capped: false },
        schedules: 1,
        sampleRunId: latest,
        error: { code: "odd" },
        job: { kind: "function" },
      },
      { count: { value: 1, capped: false }, error: { code: "broken" } },
    ]);
    const { fingerprint } = items(answer)[0] as { fingerprint: string };
    expect(
      items(await send("GET", `/v1/dead-letters/groups?fingerprint=${fingerprint}&scheduleId=${id}`)),
    ).toHaveLength(1);
  });

  it("are counted on their schedule, and shown on their run", async () => {
    const id = await schedule();
    const run = await given(id);
    await given(id);
    expect((await send("GET", `/v1/schedules/${id}`)).body.deadLetters).toEqual({ value: 2, capped: false });
    expect((await send("GET", `/v1/runs/${run}`)).body.deadLetter).toMatchObject({
      state: "open",
      reason: "permanent",
    });
    await send("POST", `/v1/dead-letters/${run}/replay`, {});
    expect((await send("GET", `/v1/schedules/${id}`)).body.deadLetters).toEqual({ value: 1, capped: false });
    expect((await send("GET", `/v1/runs/${run}`)).body).toMatchObject({
      state: "queued",
      deadLetter: { state: "replayed" },
    });
    const ordinary = String((await send("POST", `/v1/schedules/${id}/runs`, {})).body.runId);
    expect((await send("GET", `/v1/runs/${ordinary}`)).body.deadLetter).toBeNull();
  });
});

describe("one dead letter", () => {
  it("is shown with its run, its attempts, where its payload stands, and what was decided", async () => {
    const id = await schedule();
    const run = await given(id);
    await send("POST", `/v1/dead-letters/${run}/replay`, { reason: "a timeout" });
    await giveUp(server, run);
    const answer = await send("GET", `/v1/dead-letters/${run}`, undefined, {}, viewer);
    expect(answer.status, answer.text).toBe(200);
    expect(letterDetailSchema.parse(answer.body)).toMatchObject({
      letter: { runId: run, state: "open", attempts: 2, replays: 1 },
      run: { runId: run, state: "failed" },
      payload: { kind: "revision", scheduleId: id, revision: 1 },
      attempts: [
        { attempt: 1, outcome: "failed" },
        { attempt: 2, outcome: "failed" },
      ],
      history: [{ resolution: "replayed", reason: "a timeout", failure: "permanent", attempts: 1, operationId: null }],
    });
    const adHoc = String((await send("POST", "/v1/runs", { job: REPORT, payload: { a: 1 } })).body.runId);
    await giveUp(server, adHoc);
    expect((await send("GET", `/v1/dead-letters/${adHoc}`)).body).toMatchObject({
      payload: { kind: "own", runId: adHoc },
    });
    expect((await send("GET", `/v1/dead-letters/${run}`, undefined, {}, stranger)).status).toBe(404);
    expect((await send("GET", "/v1/dead-letters/run_nonsense")).status).toBe(404);
  });

  it("is replayed once, by those who may, and says how its run stands otherwise", async () => {
    const run = await given(await schedule());
    const path = `/v1/dead-letters/${run}/replay`;
    expect((await send("POST", path, {}, {}, viewer)).status).toBe(403);
    expect((await send("POST", path, {}, {}, stranger)).status).toBe(404);
    const key = { "idempotency-key": "r-1" };
    const made = await send("POST", path, { reason: "mended" }, key);
    expect([made.status, made.body]).toEqual([200, { runId: run, state: "queued" }]);
    const again = await send("POST", path, { reason: "mended" }, key);
    expect([again.status, again.headers.get("idempotency-replayed")]).toEqual([200, "true"]);
    expect((await send("POST", path, { reason: "other" }, key)).body.code).toBe("request-key-reused");
    expect((await send("POST", path, {})).body).toMatchObject({ status: 409, code: "run-not-failed", state: "queued" });
    expect((await send("POST", `/v1/dead-letters/${run}/dismiss`, {})).body.code).toBe("dead-letter-replayed");
    expect((await send("POST", path, { why: "x" })).body.code).toBe("invalid-request");
  });

  it("is dismissed, with the reason; of a deleted schedule that is all that can be done", async () => {
    const id = await schedule();
    const run = await given(id);
    await send("DELETE", `/v1/schedules/${id}`);
    const refused = await send("POST", `/v1/dead-letters/${run}/replay`, {});
    expect([refused.status, refused.body.code]).toEqual([409, "schedule-not-active"]);
    const path = `/v1/dead-letters/${run}/dismiss`;
    expect((await send("POST", path, {}, {}, viewer)).status).toBe(403);
    expect((await send("POST", path, {}, {}, stranger)).status).toBe(404);
    expect((await send("POST", path, { reason: "old" })).body).toEqual({
      runId: run,
      state: "dismissed",
      changed: true,
    });
    expect((await send("POST", path, {})).body).toMatchObject({ changed: false });
    expect((await send("GET", `/v1/dead-letters/${run}`)).body).toMatchObject({
      letter: { state: "dismissed" },
      history: [{ resolution: "dismissed", reason: "old", resolvedByLabel: expect.any(String) }],
    });
  });

  it("below the history that is kept is a 410", async () => {
    const run = await given(await schedule());
    const floor = sql("test_floor", "update history_floor set floor_at = $1::timestamptz returning 1");
    const [{ at }] = (await server.db.query<{ at: string }>(
      sql("test_read_floor", "select floor_at::text as at from history_floor"),
    )) as [{ at: string }];
    await server.db.query(floor, ["2999-01-01Z"]);
    const refused = await send("POST", `/v1/dead-letters/${run}/replay`, {});
    expect([refused.status, refused.body.code]).toEqual([410, "history-removed"]);
    await server.db.query(floor, [at]);
  });
});

describe("many dead letters", () => {
  it("are only counted by default; then an operation replays them at the pace", async () => {
    const id = await schedule();
    const runs = [await given(id), await given(id), await given(id)];
    const body = { filter: { scheduleId: id, reason: "permanent" }, pacePerSecond: 2, reason: "mended" };
    const dry = await send("POST", "/v1/dead-letters/replay", body);
    expect(dry.status, dry.text).toBe(200);
    expect(dry.body).toMatchObject({ dryRun: true, operation: null });
    expect(lettersPlanSchema.parse(dry.body.plan)).toMatchObject({
      letters: { value: 3, capped: false },
      counts: { replayed: 3 },
      estimatedSeconds: 2,
      sample: [{ runId: runs[0] }, { runId: runs[1] }, { runId: runs[2] }],
    });
    expect(items(await send("GET", "/v1/dead-letters"))).toHaveLength(3);
    const key = { "idempotency-key": "many-1" };
    const made = await send("POST", "/v1/dead-letters/replay", { ...body, dryRun: false }, key);
    expect(made.body.operation, made.text).toMatchObject({
      kind: "replay",
      scheduleId: id,
      total: 3,
      pacePerSecond: 2,
      reason: "mended",
      arguments: { scheduleId: id, reason: "permanent", until: expect.stringMatching(/^20.*Z$/) },
    });
    const { operationId } = made.body.operation as { operationId: string };
    expect(made.headers.get("location")).toBe(`/v1/operations/${operationId}`);
    expect((await send("POST", "/v1/dead-letters/replay", { ...body, dryRun: false }, key)).body).toMatchObject({
      plan: null,
      operation: { operationId },
    });
    await pass();
    expect((await send("GET", `/v1/operations/${operationId}`)).body).toMatchObject({ state: "working", done: 2 });
    await hurry();
    await pass();
    const ended = await send("GET", `/v1/operations/${operationId}`);
    expect(ended.body).toMatchObject({ state: "done", done: 3, counts: { replayed: 3 } });
    expect((await send("GET", `/v1/dead-letters/${runs[0]}`)).body.history).toMatchObject([
      { operationId, reason: "mended" },
    ]);
    expect(items(await send("GET", "/v1/dead-letters"))).toEqual([]);
  });

  it("are dismissed the same way", async () => {
    const id = await schedule();
    await given(id);
    const dry = await send("POST", "/v1/dead-letters/dismiss", { filter: {} });
    expect(dry.body.plan).toMatchObject({ counts: { dismissed: 1 }, estimatedSeconds: 0 });
    const made = await send("POST", "/v1/dead-letters/dismiss", { filter: {}, dryRun: false, reason: "old" });
    const { operationId } = made.body.operation as { operationId: string };
    await pass();
    expect((await send("GET", `/v1/operations/${operationId}`)).body).toMatchObject({
      kind: "dismiss",
      state: "done",
      done: 1,
    });
  });

  it.each([
    [{}, "filter"],
    [{ filter: { shedule: "x" } }, "filter.shedule"],
    [{ filter: { from: "yesterday" } }, "filter.from"],
    [{ filter: { from: "2026-01-02T00:00:00Z", to: "2026-01-01T00:00:00Z" } }, "filter.to"],
    [{ filter: {}, pacePerSecond: 0 }, "pacePerSecond"],
    [{ filter: {}, pacePerSecond: 1001 }, "pacePerSecond"],
  ])("refuses %j, naming %s", async (body, field) => {
    const answer = await send("POST", "/v1/dead-letters/replay", body);
    expect([answer.status, answer.body.code], answer.text).toEqual([400, "invalid-request"]);
    expect(answer.body.errors).toMatchObject([{ field }]);
  });

  it("are for those who may change things, and a foreign schedule does not exist", async () => {
    expect((await send("POST", "/v1/dead-letters/replay", { filter: {} }, {}, viewer)).status).toBe(403);
    const foreign = { filter: { scheduleId: "key:nobodys" } };
    expect((await send("POST", "/v1/dead-letters/replay", foreign)).body.code).toBe("not-found");
  });
});
