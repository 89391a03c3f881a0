import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { scheduleSchema } from "../../src/api/present/schedule.ts";
import { readId } from "../../src/kernel/ids.ts";
import { sql } from "../../src/store/database.ts";
import { call, REPORT, startTestServer, type TestServer } from "./server.ts";

let server: TestServer;
let owner: string;
let stranger: string;
const send = (method: string, path: string, body?: unknown, headers: Record<string, string> = {}, key = owner) =>
  call(server.url, method, path, { key, ...(body === undefined ? {} : { body }), headers });

beforeAll(async () => {
  server = await startTestServer();
  owner = await server.key(await server.tenant("acme"), "owner");
  stranger = await server.key(await server.tenant("strangers"), "owner");
});
afterAll(() => server?.close());

const rule = { kind: "cron", expression: "0 9 * * 1-5", zone: "America/New_York" };
const definition = { name: "Sales report", rule, job: REPORT, payload: { period: "day" } };
const count = async () =>
  (await server.db.query<{ n: number }>(sql("test_count", "select count(*)::int as n from schedule")))[0]!.n;

describe("creating a schedule", () => {
  it("answers 201 with id, revision and the next instant in UTC and in its zone", async () => {
    const answer = await send("POST", "/v1/schedules", { ...definition, key: "sales", labels: { team: "emea" } });
    expect(answer.status, answer.text).toBe(201);
    scheduleSchema.parse(answer.body);
    expect(answer.body).toMatchObject({
      revision: 1,
      status: "active",
      overlap: { policy: "forbid" },
      labels: { team: "emea" },
    });
    expect(answer.body.scheduleId).toMatch(/^sch_[0-9a-z]{26}$/);
    expect(answer.body.nextRun).toMatchObject({
      at: answer.body.nextRunAt,
      local: expect.stringMatching(/T09:00:00-0[45]:00\[America\/New_York\]$/),
    });
    expect(answer.headers.get("location")).toBe(`/v1/schedules/${String(answer.body.scheduleId)}`);
  });

  it("keeps a payload exactly, strange keys and typed escapes included", async () => {
    const payload =
      '{"__proto__":{"x":1},"constructor":"c","a":"\\\\u0000","emoji":"😀","n":0.30000000000000004,"":null}';
    const made = await send(
      "POST",
      "/v1/schedules",
      `{"name":"exact","rule":${JSON.stringify(rule)},"job":${JSON.stringify(REPORT)},"payload":${payload}}`,
    );
    expect(made.status, made.text).toBe(201);
    const read = await send("GET", `/v1/schedules/${String(made.body.scheduleId)}`);
    const sorted = (value: object) => JSON.stringify(Object.entries(value).sort());
    expect(sorted(read.body.payload as object)).toBe(sorted(JSON.parse(payload)));
  });

  it("refuses a rule that cannot be, and leaves nothing", async () => {
    const before = await count();
    for (const bad of [
      { ...rule, zone: "PST" },
      { ...rule, expression: "0 0 31 2 *" },
      { ...rule, expression: "* * * *" },
      { kind: "once", at: "2001-01-01T00:00:00Z" },
    ]) {
      const answer = await send("POST", "/v1/schedules", { ...definition, rule: bad });
      expect([answer.status, answer.body.code], JSON.stringify(bad)).toEqual([400, "invalid-rule"]);
      expect(answer.body.errors).toMatchObject([{ field: expect.stringMatching(/^rule/) }]);
    }
    expect(await count()).toBe(before);
  });

  it("refuses a key that another schedule has, naming it", async () => {
    const answer = await send("POST", "/v1/schedules", { ...definition, key: "sales" });
    expect([answer.status, answer.body.code]).toEqual([409, "schedule-key-taken"]);
    expect(answer.body.scheduleId).toMatch(/^sch_/);
    expect((await send("POST", "/v1/schedules", { ...definition, key: "sales" }, {}, stranger)).status).toBe(201);
  });
});

describe("B49 an idempotency key", () => {
  it("gives the same schedule for the same body, whatever the order of its keys, and 409 for another", async () => {
    const key = { "idempotency-key": "k-1" };
    const first = await send("POST", "/v1/schedules", { ...definition, name: "once" }, key);
    const again = await send("POST", "/v1/schedules", { ...definition, name: "once" }, key);
    const reordered = await send(
      "POST",
      "/v1/schedules",
      `{ "payload": {"period" : "day"}, "job": ${JSON.stringify(REPORT)}, "rule": ${JSON.stringify(rule)}, "name":"once" }`,
      key,
    );
    expect([first.status, again.status, reordered.status]).toEqual([201, 201, 201]);
    expect(new Set([first, again, reordered].map((one) => one.body.scheduleId)).size).toBe(1);
    expect([first.headers.get("idempotency-replayed"), again.headers.get("idempotency-replayed")]).toEqual([
      null,
      "true",
    ]);
    const other = await send("POST", "/v1/schedules", { ...definition, name: "other" }, key);
    expect([other.status, other.body.code]).toEqual([409, "request-key-reused"]);
    const found = await send("GET", "/v1/schedules?requestKey=k-1");
    expect(found.body.items).toMatchObject([{ scheduleId: first.body.scheduleId }]);
    const unknown = await send("GET", "/v1/schedules?requestKey=k-unknown");
    expect([unknown.status, unknown.body.code]).toEqual([404, "not-accepted"]);
  });

  it("used by twenty at once makes one schedule", async () => {
    const answers = await Promise.all(
      Array.from({ length: 20 }, () =>
        send("POST", "/v1/schedules", { ...definition, name: "twenty" }, { "idempotency-key": "k-20" }),
      ),
    );
    expect(new Set(answers.map((one) => one.status))).toEqual(new Set([201]));
    expect(new Set(answers.map((one) => one.body.scheduleId)).size).toBe(1);
  });

  it("is not used up by a refused request, and is its own for each tenant and each route", async () => {
    const key = { "idempotency-key": "k-6" };
    expect(
      (await send("POST", "/v1/schedules", { ...definition, rule: { ...rule, zone: "Mars/Olympus" } }, key)).status,
    ).toBe(400);
    const fixed = await send("POST", "/v1/schedules", definition, key);
    expect(fixed.status).toBe(201);
    const foreign = await send("POST", "/v1/schedules", definition, key, stranger);
    expect(foreign.status).toBe(201);
    expect(foreign.body.scheduleId).not.toBe(fixed.body.scheduleId);
    expect((await send("POST", "/v1/runs", { job: REPORT }, key)).status).toBe(201);
    expect((await send("POST", `/v1/schedules/${String(fixed.body.scheduleId)}/runs`, {}, key)).status).toBe(201);
  });

  it("outlives its schedule: used again after a delete it answers with that schedule, never with a second one", async () => {
    const key = { "idempotency-key": "k-8" };
    const made = await send("POST", "/v1/schedules", { ...definition, name: "short-lived" }, key);
    await send("DELETE", `/v1/schedules/${String(made.body.scheduleId)}`);
    const again = await send("POST", "/v1/schedules", { ...definition, name: "short-lived" }, key);
    expect(again.body).toMatchObject({ scheduleId: made.body.scheduleId, status: "deleted" });
  });
});

describe("changing a schedule", () => {
  const make = async (name: string) =>
    String((await send("POST", "/v1/schedules", { ...definition, name })).body.scheduleId);

  it("needs the revision it was made for, in the body or as If-Match, and answers 409 with the current one otherwise", async () => {
    const id = await make("to change");
    expect((await send("PATCH", `/v1/schedules/${id}`, { name: "x" })).body.errors).toMatchObject([
      { field: "expectedRevision" },
    ]);
    expect((await send("PATCH", `/v1/schedules/${id}`, { name: "x" }, { "if-match": "W/abc" })).status).toBe(400);
    const second = await send("PATCH", `/v1/schedules/${id}`, { name: "changed" }, { "if-match": '"1"' });
    expect(second.body).toMatchObject({ revision: 2, name: "changed", payload: { period: "day" } });
    expect(second.headers.get("etag")).toBe('"2"');
    const late = await send("PATCH", `/v1/schedules/${id}`, { name: "too late", expectedRevision: 1 });
    expect([late.status, late.body.code]).toEqual([409, "revision-conflict"]);
    expect(late.body.current).toMatchObject({ revision: 2, rule });
  });

  it("by PATCH leaves what was not sent, and takes away what is null", async () => {
    const made = await send("POST", "/v1/schedules", {
      ...definition,
      retry: { maxAttempts: 7 },
      notes: "old",
      endAt: "2090-01-01T00:00:00Z",
    });
    const path = `/v1/schedules/${String(made.body.scheduleId)}`;
    const patched = await send("PATCH", path, {
      rule: { ...rule, expression: "0 10 * * *" },
      notes: null,
      endAt: null,
      expectedRevision: 1,
    });
    expect(patched.status, patched.text).toBe(200);
    expect(patched.body).toMatchObject({ retry: { maxAttempts: 7 }, notes: null, rule: { expression: "0 10 * * *" } });
    expect(patched.body).not.toHaveProperty("endAt");
  });

  it("may not bring a bound that no schedule reaches, and is not refused for one that was there before", async () => {
    const made = await send("POST", "/v1/schedules", definition);
    const path = `/v1/schedules/${String(made.body.scheduleId)}`;
    const far = { startAt: "9999-12-31T23:59:59Z" };
    for (const [at, body] of [
      [path, { expectedRevision: 1, ...far }],
      [`${path}/preview`, far],
    ] as const) {
      const answer = await send(at === path ? "PATCH" : "POST", at, body);
      expect(answer.status, answer.text).toBe(400);
      expect(answer.body.errors).toMatchObject([{ field: "startAt" }]);
    }
    // As an earlier release has accepted it.
    await server.db.query(
      sql(
        "test_far_bound",
        `with c as (update schedule_cursor set content = null where schedule_id = $1)
         update schedule_revision set definition = jsonb_set(definition::jsonb, '{startAt}', $2), content = null where schedule_id = $1`,
      ),
      [readId("sch", String(made.body.scheduleId)), JSON.stringify(far.startAt)],
    );
    const renamed = await send("PATCH", path, { expectedRevision: 1, name: "Another" });
    expect(renamed.status, renamed.text).toBe(200);
    expect(renamed.body).toMatchObject({ name: "Another", ...far, status: "active" });
  });

  it("may bring an end beyond all reach, which is none", async () => {
    const made = await send("POST", "/v1/schedules", { ...definition, endAt: "9999-12-31T23:59:59-23:59" });
    expect([made.status, made.body.endAt], made.text).toEqual([201, "9999-12-31T23:59:59-23:59"]);
    expect(made.body.nextRunAt).not.toBeNull();
  });

  it("by PUT puts what was left out back to its default, and keeps the key", async () => {
    const made = await send("POST", "/v1/schedules", { ...definition, key: "put-me", retry: { maxAttempts: 7 } });
    const replaced = await send("PUT", "/v1/schedules/key:put-me", {
      ...definition,
      key: "put-me",
      name: "replaced",
      expectedRevision: 1,
    });
    expect(replaced.body).toMatchObject({
      scheduleId: made.body.scheduleId,
      revision: 2,
      key: "put-me",
      retry: { maxAttempts: 3 },
    });
    const moved = await send("PUT", "/v1/schedules/key:put-me", { ...definition, key: "moved", expectedRevision: 2 });
    expect(moved.body.errors).toMatchObject([{ field: "key", message: "cannot be changed" }]);
  });

  it("is kept revision by revision, newest first, in pages", async () => {
    const id = await make("many revisions");
    for (const expectedRevision of [1, 2])
      await send("PATCH", `/v1/schedules/${id}`, { payload: { expectedRevision }, expectedRevision });
    const first = await send("GET", `/v1/schedules/${id}/revisions?limit=2`);
    expect((first.body.items as { revision: number }[]).map((one) => one.revision)).toEqual([3, 2]);
    const second = await send("GET", `/v1/schedules/${id}/revisions?limit=2&after=${String(first.body.next)}`);
    expect(second.body).toMatchObject({ items: [{ revision: 1, payload: { period: "day" } }], next: null });
  });

  it("by pause, resume and delete says what happened, and may be repeated", async () => {
    const id = await make("to pause");
    const paused = await send("POST", `/v1/schedules/${id}/pause`, { note: "holidays" });
    expect(paused.body).toMatchObject({ changed: true, schedule: { status: "paused", nextDueAt: null } });
    expect((await send("POST", `/v1/schedules/${id}/pause`)).body).toMatchObject({ changed: false });
    const resumed = await send("POST", `/v1/schedules/${id}/resume`, { misfire: "skip" });
    expect(resumed.body).toMatchObject({
      changed: true,
      schedule: { status: "active" },
      plan: { runs: 0, skipped: 0 },
    });
    expect((await send("POST", `/v1/schedules/${id}/resume`)).body).toMatchObject({ changed: false });
    expect((await send("DELETE", `/v1/schedules/${id}`)).body).toEqual({ scheduleId: id, canceled: 0 });
    expect((await send("DELETE", `/v1/schedules/${id}`)).status).toBe(404);
    expect((await send("GET", `/v1/schedules/${id}`)).body).toMatchObject({ status: "deleted", nextRunAt: null });
  });
});

describe("another tenant's schedule", () => {
  it("is a 404 to every verb, by id and by key", async () => {
    const made = await send("POST", "/v1/schedules", { ...definition, key: "private" });
    for (const ref of [String(made.body.scheduleId), "key:private"]) {
      const calls: [string, string, unknown?][] = [
        ["GET", ""],
        ["GET", "/revisions"],
        ["GET", "/runs"],
        ["DELETE", ""],
        ["POST", "/pause", {}],
        ["POST", "/resume", {}],
        ["POST", "/runs", {}],
        ["POST", "/runs", { payload: {} }],
        ["PATCH", "", { name: "mine", expectedRevision: 1 }],
        ["PUT", "", { ...definition, expectedRevision: 1 }],
      ];
      for (const [method, rest, body] of calls) {
        const answer = await send(method, `/v1/schedules/${ref}${rest}`, body, {}, stranger);
        expect([answer.status, answer.body.code], `${method} ${rest}`).toEqual([404, "not-found"]);
      }
    }
    expect((await send("GET", `/v1/schedules/${String(made.body.scheduleId)}`)).body).toMatchObject({
      revision: 1,
      status: "active",
    });
  });
});

describe("the list of schedules", () => {
  it("is walked in pages without loss or repetition, and filtered by label and status", async () => {
    const key = await server.key(await server.tenant("lister"), "owner");
    const made: string[] = [];
    for (let i = 0; i < 5; i++) {
      const labels = { parity: i % 2 === 0 ? "even" : "odd" };
      made.push(
        String(
          (await send("POST", "/v1/schedules", { ...definition, name: `s${i}`, labels }, {}, key)).body.scheduleId,
        ),
      );
    }
    await send("DELETE", `/v1/schedules/${made[4]!}`, undefined, {}, key);
    const seen: string[] = [];
    let next: unknown = "";
    for (let pages = 0; next !== null && pages < 9; pages++) {
      const page = await send(
        "GET",
        `/v1/schedules?limit=2${next === "" ? "" : `&after=${String(next)}`}`,
        undefined,
        {},
        key,
      );
      seen.push(...(page.body.items as { scheduleId: string }[]).map((one) => one.scheduleId));
      next = page.body.next;
    }
    expect(seen.toSorted()).toEqual(made.slice(0, 4).toSorted());
    const even = await send("GET", "/v1/schedules?label=parity=even", undefined, {}, key);
    expect((even.body.items as unknown[]).length).toBe(2);
    const deleted = await send("GET", "/v1/schedules?status=deleted", undefined, {}, key);
    expect(deleted.body.items).toMatchObject([{ scheduleId: made[4] }]);
  });
});
