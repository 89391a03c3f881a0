import { request as httpRequest } from "node:http";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import { findFaults } from "../../src/api/input/issues.ts";
import { sql } from "../../src/store/database.ts";
import { call, REPORT, startTestServer, type TestServer } from "./server.ts";

let server: TestServer;
let owner: string;
const post = (path: string, body: unknown, headers: Record<string, string> = {}) =>
  call(server.url, "POST", path, { key: owner, body, headers });
const get = (path: string, key: string | undefined = owner) => call(server.url, "GET", path, { key });

beforeAll(async () => {
  server = await startTestServer();
  owner = await server.key(await server.tenant("acme"), "owner");
});
afterAll(() => server?.close());

const rule = { kind: "cron", expression: "0 9 * * 1-5", zone: "America/New_York" };
const schedule = { name: "Sales", rule, job: REPORT };

describe("a body that cannot be accepted", () => {
  it("that is no JSON is answered with line and column", async () => {
    const answer = await post("/v1/schedules", '{"name": "x",\n  oops}');
    expect(answer.status).toBe(400);
    expect(answer.headers.get("content-type")).toMatch(/^application\/problem\+json/);
    expect(answer.body).toMatchObject({ code: "invalid-json", line: 2, column: 3, status: 400 });
  });

  it("that is empty, no object, or not UTF-8 is a 400", async () => {
    expect((await post("/v1/schedules", "")).body).toMatchObject({ code: "invalid-request" });
    expect((await post("/v1/schedules", "[]")).body).toMatchObject({
      code: "invalid-request",
      errors: [{ field: "body" }],
    });
    expect((await post("/v1/schedules", "null")).status).toBe(400);
    expect((await post("/v1/schedules", new Uint8Array([0x22, 0xff, 0x22]))).body).toMatchObject({
      code: "invalid-json",
    });
  });

  it("names an unknown field, what is allowed, and what was probably meant", async () => {
    const answer = await post("/v1/schedules", { ...schedule, lables: {} });
    expect(answer.status).toBe(400);
    expect(answer.body).toMatchObject({ code: "invalid-request" });
    const [fault] = answer.body.errors as { field: string; allowed: string; didYouMean: string }[];
    expect(fault).toMatchObject({ field: "lables", didYouMean: "labels" });
    expect(fault!.allowed).toContain("overlap");
    expect(answer.body.detail).toMatch(/^lables: is not a known field; allowed: .*; did you mean "labels"\?$/);
  });

  it("counts what is wrong beyond the fifty faults that it names, and finds no words for it", async () => {
    const many = Object.fromEntries(Array.from({ length: 10_000 }, (_, i) => [`lable${i}`, i]));
    const answer = await post("/v1/schedules", { ...schedule, ...many });
    expect(answer.body.errors).toHaveLength(50);
    expect(answer.body.detail).toMatch(/ \(and 9999 more\)$/);
    const wrong = z.object({ list: z.array(z.enum(["shown", "counted"])) });
    const faults = findFaults(wrong, { list: Array<string>(10_000).fill("showm") }, "payload");
    expect(faults).toHaveLength(10_000);
    expect(faults[49]).toMatchObject({ field: "payload.list[49]", didYouMean: "shown" });
    expect(faults[50]).toEqual({ field: "payload", message: "is not accepted" });
  });

  it("names unknown fields deep inside, wrong choices, wrong types and missing fields together", async () => {
    const answer = await post("/v1/schedules", {
      rule: { ...rule, tz: "UTC" },
      job: REPORT,
      overlap: { policy: "forbit" },
      retry: { maxAttempts: "3" },
      class: "shrot",
    });
    const errors = answer.body.errors as { field: string }[];
    expect(errors).toEqual(
      expect.arrayContaining([
        expect.objectContaining({ field: "name", message: "is missing" }),
        expect.objectContaining({ field: "rule.tz" }),
        expect.objectContaining({ field: "overlap.policy", found: '"forbit"', didYouMean: "forbid" }),
        expect.objectContaining({ field: "retry.maxAttempts", found: '"3"' }),
        expect.objectContaining({ field: "class", didYouMean: "short" }),
      ]),
    );
  });

  it("larger than 1 MiB is a 413, and a payload larger than 64 KiB too", async () => {
    const big = await post("/v1/schedules", { ...schedule, notes: "x".repeat(1_100_000) });
    expect([big.status, big.body.code]).toEqual([413, "body-too-large"]);
    const payload = await post("/v1/schedules", { ...schedule, payload: { text: "x".repeat(65_537) } });
    expect([payload.status, payload.body.code]).toEqual([413, "payload-too-large"]);
  });

  it("of another type or encoding is a 415", async () => {
    for (const headers of [
      { "content-type": "text/plain" },
      { "content-type": "application/json; charset=latin1" },
      { "content-encoding": "gzip" },
    ]) {
      const answer = await post("/v1/schedules", JSON.stringify(schedule), headers as Record<string, string>);
      expect([answer.status, answer.body.code], JSON.stringify(headers)).toEqual([415, "unsupported-media-type"]);
    }
  });

  it("B44 B46 with what PostgreSQL or a double cannot hold is a 400 naming the path", async () => {
    const cases: [string, string][] = [
      ['{"a":"x\\u0000y"}', "payload.a"],
      ['{"a":"\\ud800"}', "payload.a"],
      ['{"id":9007199254740993}', "payload.id"],
      ['{"big":1e400}', "payload.big"],
      ['{"neg":-0}', "payload.neg"],
      ['{"a":1,"a":2}', "payload.a"],
    ];
    for (const [payload, field] of cases) {
      const answer = await post("/v1/runs", `{"job":${JSON.stringify(REPORT)},"payload":${payload}}`);
      expect([answer.status, (answer.body.errors as { field: string }[])?.[0]?.field], payload).toEqual([400, field]);
    }
    expect((await post("/v1/runs", `{"job":${JSON.stringify(REPORT)},"payload":{"k\\u0000":1}}`)).status).toBe(400);
    expect((await post("/v1/schedules", { ...schedule, name: "n\u0000" })).body.errors).toMatchObject([
      { field: "name" },
    ]);
    expect((await post("/v1/schedules", { ...schedule, labels: { team: "a\u0000" } })).body.errors).toMatchObject([
      { field: "labels.team" },
    ]);
    const deep = `{"job":${JSON.stringify(REPORT)},"payload":{"a":${"[".repeat(20_000)}${"]".repeat(20_000)}}}`;
    expect((await post("/v1/runs", deep)).status).toBe(400);
  });

  it("names a job nobody registered, and a payload the job does not take", async () => {
    const unknown = await post("/v1/runs", { job: { ...REPORT, name: "report.run-sumary" } });
    expect(unknown.body).toMatchObject({ code: "unknown-job", errors: [{ didYouMean: "report.run-summary@1" }] });
    const types = await get("/v1/job-types");
    expect(types.body.items).toMatchObject([{ ...REPORT, input: { type: "object" }, description: expect.any(String) }]);
    expect((await post("/v1/runs", { job: REPORT, payload: { refuse: 1 } })).body.errors).toMatchObject([
      { field: "payload.refuse" },
    ]);
  });

  it("with a name of 201 characters, a blank one, or an end before its start is a 400", async () => {
    expect((await post("/v1/schedules", { ...schedule, name: "x".repeat(201) })).body.errors).toMatchObject([
      { field: "name", allowed: "at most 200 characters" },
    ]);
    expect((await post("/v1/schedules", { ...schedule, name: "  " })).status).toBe(400);
    const window = { startAt: "2026-10-02T00:00:00Z", endAt: "2026-10-01T00:00:00Z" };
    expect((await post("/v1/schedules", { ...schedule, ...window })).body.errors).toMatchObject([{ field: "endAt" }]);
  });
});

describe("a request that cannot be accepted", () => {
  it("with junk in its query or path is a 400 or 404, never a 500", async () => {
    for (const path of [
      "/v1/runs?limit=0",
      "/v1/runs?limit=1e3",
      "/v1/runs?limit=1&limit=2",
      "/v1/runs?stat=failed",
      "/v1/runs?state=lost",
      "/v1/runs?from=yesterday",
      "/v1/schedules?label=%00=x",
      "/v1/runs?from=%ff",
      "/v1/schedules?label=x",
      "/v1/schedules/x%00y",
    ]) {
      const answer = await get(path);
      expect([answer.status, answer.body.code], path).toEqual([400, "invalid-request"]);
    }
    for (const path of [
      "/v1/runs/run_1",
      "/v1/runs/..%2f",
      "/v1/schedules/sch_zzzzzzzzzzzzzzzzzzzzzzzzzz",
      "/v1/schedules/key:nobody",
      "/v1/schedules/%ff",
      "/v1/nothing",
      "/v2/runs",
      "/favicon.ico",
    ]) {
      const answer = await get(path);
      expect(answer.status, path).toBe(404);
      expect(answer.headers.get("content-type"), path).toMatch(/problem\+json/);
    }
    expect((await get("/v1/runs?stat=failed")).body.errors).toMatchObject([{ field: "stat", didYouMean: "state" }]);
  });

  it("with a cursor this list did not give out is a 400", async () => {
    for (const after of ["junk", "%20", "AAAA".repeat(20), "x".repeat(900)]) {
      const answer = await get(`/v1/runs?after=${after}`);
      expect([answer.status, answer.body.code], after).toEqual([400, "invalid-cursor"]);
    }
  });

  it("with an idempotency key that is none is a 400", async () => {
    const answer = await post("/v1/runs", { job: REPORT }, { "idempotency-key": "k".repeat(201) });
    expect(answer.body).toMatchObject({ code: "invalid-request", errors: [{ field: "Idempotency-Key" }] });
  });

  it("with another method is a 405 that says which are answered", async () => {
    const answer = await call(server.url, "PUT", "/v1/runs", { key: owner, body: {} });
    expect([answer.status, answer.body.code, answer.headers.get("allow")]).toEqual([
      405,
      "method-not-allowed",
      "POST, GET",
    ]);
  });

  it("whose body ends early leaves the server well", async () => {
    const port = Number(new URL(server.url).port);
    await new Promise<void>((resolve) => {
      const request = httpRequest({
        port,
        method: "POST",
        path: "/v1/runs",
        headers: { authorization: `Bearer ${owner}`, "content-type": "application/json", "content-length": "100" },
      });
      request.on("error", () => resolve());
      request.write("{", () => request.destroy());
      request.on("close", () => resolve());
    });
    expect((await get("/healthz")).status).toBe(200);
  });

  it("is known by its request id, its own when that is sane", async () => {
    const given = await call(server.url, "GET", "/v1/nothing", { headers: { "x-request-id": "trace-1.a:b" } });
    expect([given.headers.get("x-request-id"), given.body.requestId]).toEqual(["trace-1.a:b", "trace-1.a:b"]);
    const odd = await call(server.url, "GET", "/healthz", { headers: { "x-request-id": "no spaces, please" } });
    expect(odd.headers.get("x-request-id")).toMatch(/^req_[0-9a-z]{26}$/);
  });
});

describe("a preview", () => {
  it("says when a rule would run, in UTC and in its zone, and marks a clock change", async () => {
    const answer = await post("/v1/schedules/preview", { rule, from: "2026-10-29T00:00:00Z", count: 3 });
    expect(answer.status).toBe(200);
    expect(answer.body).toMatchObject({
      description: expect.stringContaining("09:00"),
      instants: [
        { at: "2026-10-29T13:00:00Z", local: "2026-10-29T09:00:00-04:00[America/New_York]", offset: "-04:00" },
        { at: "2026-10-30T13:00:00Z", offset: "-04:00" },
        { at: "2026-11-02T14:00:00Z", offset: "-05:00", label: expect.stringContaining("-04:00 → -05:00") },
      ],
    });
  });

  it("keeps to the window: its start may run, its end may not", async () => {
    const daily = { kind: "cron", expression: "0 0 * * *", zone: "UTC" };
    const answer = await post("/v1/schedules/preview", {
      rule: daily,
      startAt: "2030-01-01T00:00:00Z",
      endAt: "2030-01-03T00:00:00Z",
    });
    expect((answer.body.instants as { at: string }[]).map((one) => one.at)).toEqual([
      "2030-01-01T00:00:00Z",
      "2030-01-02T00:00:00Z",
    ]);
  });

  it("refuses a rule that cannot be, naming field, found and allowed", async () => {
    for (const bad of [
      { ...rule, zone: "America/New_Yrok" },
      { ...rule, expression: "61 * * * *" },
      { ...rule, expression: "0 0 31 2 *" },
    ]) {
      const answer = await post("/v1/schedules/preview", { rule: bad });
      expect([answer.status, answer.body.code], JSON.stringify(bad)).toEqual([400, "invalid-rule"]);
      expect(answer.body.errors).toMatchObject([
        { field: expect.stringMatching(/^rule\./), found: expect.any(String), allowed: expect.any(String) },
      ]);
    }
  });

  it("says in one sentence what was found, and both what is wrong with the zone and with the expression", async () => {
    const answer = await post("/v1/schedules/preview", {
      rule: { kind: "cron", expression: "61 * * * *", zone: "Europe/Berln" },
    });
    expect(answer.body.errors).toMatchObject([
      { field: "rule.zone", found: '"Europe/Berln"', didYouMean: "Europe/Berlin" },
      { field: "rule.minute", found: '"61"' },
    ]);
    expect(answer.body.detail).toMatch(
      /^rule\.zone: found "Europe\/Berln"; the time zone database \(\d{4}[a-z]+\) has no zone of this name; allowed: [^;]+; did you mean "Europe\/Berlin"\? \(and 1 more\)$/,
    );
  });
});

describe("the work that a schedule or a run asks for", () => {
  const send = (method: string, path: string, body: unknown) => call(server.url, method, path, { key: owner, body });
  const daily = { name: "S", rule: { kind: "cron", expression: "0 9 * * *", zone: "UTC" }, job: REPORT };
  const QUARTER = 15 * 60_000;

  it("an attempt of class short takes 15 minutes at most: more is refused with what is allowed, for schedules and single runs", async () => {
    for (const [path, body] of [
      ["/v1/schedules", daily],
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
      expect(
        (await send("POST", path, { ...body, attemptTimeoutMs: 86_400_000, class: "memory" })).body.errors,
      ).toEqual([expect.objectContaining({ allowed: "at most 21600000, or class long" })]);
    }
  });

  it("a change that would make an attempt too long for its class is refused; any other change of what was accepted is not", async () => {
    const made = await send("POST", "/v1/schedules", { ...daily, class: "long", attemptTimeoutMs: 86_400_000 });
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
    const made = await send("POST", "/v1/schedules", { ...daily, retry });
    expect(made.body.retry).toMatchObject({ maxAttempts: 3, ...retry });
    for (const bad of [[""], ["a b"], [], ["x".repeat(101)], "smtp-550"]) {
      const answer = await send("POST", "/v1/schedules", { ...daily, retry: { nonRetryable: bad } });
      expect([answer.status, answer.body.errors], JSON.stringify(bad)).toMatchObject([
        400,
        [{ field: expect.stringMatching(/^retry\.nonRetryable/) }],
      ]);
    }
  });

  it("B44 what PostgreSQL cannot hold is refused alike by an edit, a replacement, a preview and a run, and nothing is half-written", async () => {
    const made = await send("POST", "/v1/schedules", { ...daily, payload: { period: "day" } });
    const path = `/v1/schedules/${String(made.body.scheduleId)}`;
    const rest = JSON.stringify({ ...daily, expectedRevision: 1 }).slice(1);
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
});
