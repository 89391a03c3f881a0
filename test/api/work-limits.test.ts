import { afterAll, beforeAll, expect, it } from "vitest";
import { sql } from "../../src/store/database.ts";
import { call, REPORT, startTestServer, type TestServer } from "./server.ts";

let server: TestServer;
let owner: string;
const send = (method: string, path: string, body: unknown) => call(server.url, method, path, { key: owner, body });

beforeAll(async () => {
  server = await startTestServer();
  owner = await server.key(await server.tenant("acme"), "owner");
});
afterAll(() => server?.close());

const schedule = { name: "S", rule: { kind: "cron", expression: "0 9 * * *", zone: "UTC" }, job: REPORT };
const QUARTER = 15 * 60_000;

it("an attempt of class short takes 15 minutes at most: more is refused with what is allowed, for schedules and single runs", async () => {
  for (const [path, body] of [
    ["/v1/schedules", schedule],
    ["/v1/runs", { job: REPORT }],
  ] as const) {
    const answer = await send("POST", path, { ...body, attemptTimeoutMs: QUARTER + 1 });
    expect([answer.status, answer.body.code]).toEqual([400, "invalid-request"]);
    expect(answer.body.errors).toEqual([
      {
        field: "attemptTimeoutMs",
        message: "is longer than an attempt of class short may take",
        found: "900001",
        allowed: "at most 900000, or class long or memory",
      },
    ]);
    expect((await send("POST", path, { ...body, attemptTimeoutMs: QUARTER })).status).toBe(201);
    expect((await send("POST", path, { ...body, attemptTimeoutMs: QUARTER + 1, class: "long" })).status).toBe(201);
    expect((await send("POST", path, { ...body, attemptTimeoutMs: 86_400_000, class: "memory" })).body.errors).toEqual([
      expect.objectContaining({ allowed: "at most 21600000, or class long" }),
    ]);
  }
});

it("a change that would make an attempt too long for its class is refused; any other change of what was accepted is not", async () => {
  const made = await send("POST", "/v1/schedules", { ...schedule, class: "long", attemptTimeoutMs: 86_400_000 });
  const path = `/v1/schedules/${String(made.body.scheduleId)}`;
  const refused = await send("PATCH", path, { expectedRevision: 1, class: "short" });
  expect([refused.status, refused.body.errors]).toMatchObject([400, [{ field: "attemptTimeoutMs" }]]);
  // Accepted under a higher limit, as an installation may have had it.
  await server.db.query(
    sql(
      "test_older_limit",
      `update schedule_revision set definition = jsonb_set(definition::jsonb, '{class}', '"short"')::json, content = null`,
    ),
  );
  await server.db.query(sql("test_older_limit_cursor", "update schedule_cursor set content = null"));
  expect((await send("POST", `${path}/runs`, { payload: {} })).status).toBe(201);
  const patched = await send("PATCH", path, { expectedRevision: 1, notes: "still accepted" });
  expect([patched.status, patched.body.class]).toEqual([200, "short"]);
});

it("error codes that no retry mends are declared with the retries, and checked", async () => {
  const retry = { nonRetryable: ["smtp-550", "no-such-account"] };
  const made = await send("POST", "/v1/schedules", { ...schedule, retry });
  expect(made.body.retry).toMatchObject({ maxAttempts: 3, ...retry });
  for (const bad of [[""], ["a b"], [], ["x".repeat(101)], "smtp-550"]) {
    const answer = await send("POST", "/v1/schedules", { ...schedule, retry: { nonRetryable: bad } });
    expect([answer.status, answer.body.errors], JSON.stringify(bad)).toMatchObject([
      400,
      [{ field: expect.stringMatching(/^retry\.nonRetryable/) }],
    ]);
  }
});

it("B44 what PostgreSQL cannot hold is refused alike by an edit, a replacement, a preview and a run, and nothing is half-written", async () => {
  const made = await send("POST", "/v1/schedules", { ...schedule, payload: { period: "day" } });
  const path = `/v1/schedules/${String(made.body.scheduleId)}`;
  const rest = JSON.stringify({ ...schedule, expectedRevision: 1 }).slice(1);
  const routes: [string, string, string][] = [
    ["POST", "/v1/schedules", rest.replace(',"expectedRevision":1', "")],
    ["POST", "/v1/runs", `"job":${JSON.stringify(REPORT)}}`],
    ["PATCH", path, '"expectedRevision":1}'],
    ["PUT", path, rest],
    ["POST", `${path}/preview`, '"count":1}'],
    ["POST", `${path}/runs`, ""],
  ];
  const counted = async () =>
    server.db.query(
      sql(
        "test_counts",
        `select (select count(*) from schedule) as schedules, (select count(*) from schedule_revision) as revisions,
                (select count(*) from run) as runs, (select count(*) from request_key) as keys,
                (select count(*) from audit_event) as events`,
      ),
    );
  const before = await counted();
  for (const [method, to, others] of routes) {
    for (const [payload, field] of [
      ['{"a":"x\\u0000y"}', "payload.a"],
      ['{"k\\u0000":1}', "payload"],
      ['{"a":"\\ud800"}', "payload.a"],
    ] as const) {
      const body = `{"payload":${payload}${others === "" ? "}" : `,${others}`}`;
      const answer = await call(server.url, method, to, { key: owner, body, headers: { "idempotency-key": "b44" } });
      const fields = (answer.body.errors as { field: string }[]).map((one) => one.field);
      expect([method, to, answer.status, fields[0]]).toEqual([method, to, 400, expect.stringContaining(field)]);
    }
  }
  expect(await counted()).toEqual(before);

  // The six characters, typed: kept as they are.
  const typed = '{"a":"\\\\u0000"}';
  const patched = await call(server.url, "PATCH", path, {
    key: owner,
    body: `{"payload":${typed},"expectedRevision":1}`,
  });
  expect([patched.status, patched.body.payload]).toEqual([200, { a: "\\u0000" }]);
  const run = await call(server.url, "POST", `${path}/runs`, { key: owner, body: `{"payload":${typed}}` });
  const read = await call(server.url, "GET", `/v1/runs/${String(run.body.runId)}`, { key: owner });
  expect(read.body.payload).toEqual({ a: "\\u0000" });
});
