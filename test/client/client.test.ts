import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { afterEach, expect, expectTypeOf, test } from "vitest";
import type { z } from "zod";
import type { apiKeySchema } from "../../src/api/present/api-key.ts";
import type { calendarSchema, listedCalendarSchema } from "../../src/api/present/calendar.ts";
import type { ledgerSchema } from "../../src/api/present/ledger.ts";
import type { attemptSchema, runListItemSchema, runSchema } from "../../src/api/present/run.ts";
import type { scheduleSchema } from "../../src/api/present/schedule.ts";
import type { tenantSchema } from "../../src/api/present/tenant.ts";
import type { previewSchema } from "../../src/api/routes/schedules/preview/answer.ts";
import type { changePreviewSchema } from "../../src/api/routes/schedules/preview/preview-change.ts";
import type { revisionDiffSchema } from "../../src/api/routes/schedules/revision-diff.ts";
import { createClient } from "../../src/client/client.ts";
import { download } from "../../src/client/download.ts";
import type { ApiKey, Tenant } from "../../src/client/identity.ts";
import type { ChangePreview, Preview, RevisionDiff } from "../../src/client/previews.ts";
import type { Attempt, Calendar, Ledger, ListedCalendar, ListedRun, Run, Schedule } from "../../src/client/types.ts";

type Answer = (request: IncomingMessage, response: ServerResponse) => unknown;
const closing: (() => void)[] = [];
afterEach(() => {
  for (const close of closing.splice(0)) close();
});

/** A network that behaves as a test wants: every answer is a step. */
async function serverThat(...steps: Answer[]): Promise<string> {
  let step = 0;
  const server = createServer(
    (request, response) => void steps[Math.min(step++, steps.length - 1)]!(request, response),
  );
  await once(server.listen(0, "127.0.0.1"), "listening");
  closing.push(() => server.close());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const json =
  (status: number, body: unknown): Answer =>
  (_, response) =>
    response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));

function clientOf(url: string, naps: number[] = []) {
  const sleep = async (ms: number) => void naps.push(ms);
  return createClient({ url, key: "pk_test", sleep, timeoutMs: 5_000 });
}

const DRAFT = {
  name: "n",
  rule: { kind: "cron", expression: "@daily", zone: "Etc/UTC" },
  job: { kind: "function", name: "report.run-summary", version: 1 },
};

test("the types are what the API answers, though nothing of the server is imported", () => {
  expectTypeOf<z.output<typeof runSchema>>().toExtend<Run>();
  expectTypeOf<z.output<typeof runListItemSchema>>().toExtend<ListedRun>();
  expectTypeOf<z.output<typeof attemptSchema>>().toExtend<Attempt>();
  expectTypeOf<z.output<typeof scheduleSchema>>().toExtend<Schedule>();
  expectTypeOf<z.output<typeof calendarSchema>>().toExtend<Calendar>();
  expectTypeOf<z.output<typeof listedCalendarSchema>>().toExtend<ListedCalendar>();
  expectTypeOf<z.output<typeof ledgerSchema>>().toExtend<Ledger>();
  expectTypeOf<z.output<typeof previewSchema>>().toExtend<Preview>();
  expectTypeOf<z.output<typeof changePreviewSchema>>().toExtend<ChangePreview>();
  expectTypeOf<z.output<typeof revisionDiffSchema>>().toExtend<RevisionDiff>();
});

test("a create whose answer was lost is asked again under the same key, so it happens once", async () => {
  const keys: unknown[] = [];
  const keep = (request: IncomingMessage) => keys.push(request.headers["idempotency-key"]);
  const url = await serverThat(
    (request) => keep(request) && request.socket.destroy(),
    (request, response) =>
      keep(request) && json(503, { code: "outcome-unknown", detail: "d", retryable: true })(request, response),
    (request, response) => keep(request) && json(201, { scheduleId: "sch_1" })(request, response),
  );
  const naps: number[] = [];
  expect(await clientOf(url, naps).schedules.create(DRAFT)).toEqual({ scheduleId: "sch_1" });
  expect(keys).toHaveLength(3);
  expect(keys[0]).toMatch(/^[0-9a-f-]{36}$/);
  expect(new Set(keys).size).toBe(1);
  expect(naps).toEqual([250, 500]);
});

test("a run-now whose answer was lost is asked again under the same key; each change goes where it belongs", async () => {
  const seen: string[] = [];
  const keys = new Set<unknown>();
  const keep = ({ method, url, headers }: IncomingMessage) => {
    seen.push(`${method} ${url}`);
    keys.add(headers["idempotency-key"]);
  };
  const url = await serverThat(
    (request) => {
      keep(request);
      request.socket.destroy();
    },
    (request, response) => {
      keep(request);
      response.end("{}");
    },
  );
  const { schedules } = clientOf(url);
  await schedules.run("key:a");
  expect(keys.size).toBe(1);
  await schedules.pause("sch_1");
  await schedules.resume("sch_1");
  await schedules.delete("sch_1");
  expect(seen).toEqual([
    "POST /v1/schedules/key%3Aa/runs",
    "POST /v1/schedules/key%3Aa/runs",
    "POST /v1/schedules/sch_1/pause",
    "POST /v1/schedules/sch_1/resume",
    "DELETE /v1/schedules/sch_1",
  ]);
});

const tooMany =
  (retryAfter: string): Answer =>
  (_, response) =>
    response
      .writeHead(429, { "content-type": "application/json", "retry-after": retryAfter })
      .end(JSON.stringify({ code: "quota-exceeded", detail: "d", retryable: true }));

test("who is told to wait waits as long, and is given the refusal where that is long", async () => {
  const naps: number[] = [];
  const url = await serverThat(tooMany("2"), tooMany("0"), json(201, { scheduleId: "sch_1" }));
  expect(await clientOf(url, naps).schedules.create(DRAFT)).toEqual({ scheduleId: "sch_1" });
  expect(naps).toEqual([2_000, 500]);
  const later = await serverThat(tooMany("3600"));
  await expect(clientOf(later, naps).schedules.create(DRAFT)).rejects.toMatchObject({
    code: "quota-exceeded",
    retryAfterMs: 3_600_000,
  });
  expect(naps).toHaveLength(2);
  // An export is not repeated by itself; whoever does it hears when.
  await expect(clientOf(await serverThat(tooMany("2"))).audit.export()).rejects.toMatchObject({ retryAfterMs: 2_000 });
});

test("a refusal is not asked again, and keeps its code, fields and request id", async () => {
  const naps: number[] = [];
  const errors = [{ field: "rule.zone", message: "is not known" }];
  const url = await serverThat(
    json(400, {
      code: "invalid-rule",
      detail: "rule.zone: is not known",
      retryable: false,
      requestId: "req_1",
      errors,
      quota: "schedules",
    }),
  );
  await expect(clientOf(url, naps).schedules.create(DRAFT)).rejects.toMatchObject({
    name: "ApiProblem",
    status: 400,
    code: "invalid-rule",
    message: "rule.zone: is not known",
    requestId: "req_1",
    errors,
    more: { quota: "schedules" },
  });
  expect(naps).toEqual([]);
});

test("something else that answers there is not taken for the API", async () => {
  const page = await serverThat((_, response) => response.end("<html>hello</html>"));
  await expect(clientOf(page).runs.list()).rejects.toMatchObject({ name: "NoAnswer", message: /not the Punctual API/ });
  const gone = await serverThat((_, response) => response.writeHead(404).end("nginx"));
  await expect(clientOf(gone).runs.list()).rejects.toMatchObject({ name: "NoAnswer", message: /HTTP 404/ });
});

test("the key follows no redirect to another server", async () => {
  const asked: unknown[] = [];
  const other = await serverThat((request, response) => {
    asked.push(request.headers.authorization);
    return response.end("{}");
  });
  const url = await serverThat((_, response) => response.writeHead(302, { location: other }).end());
  await expect(clientOf(url).runs.list()).rejects.toMatchObject({ name: "NoAnswer" });
  expect(asked).toEqual([]);
});

test("a call for another tenant names it each time, and who calls is a key or a token", async () => {
  const seen: unknown[] = [];
  const url = await serverThat((request, response) => {
    seen.push([request.headers["punctual-tenant"], request.headers.authorization]);
    return response.writeHead(200, { "content-type": "application/json" }).end('{"items":[],"next":null}');
  });
  const tenant = "ten_01kct0v2mz8h3bmq5d0v5x2c9r";
  await createClient({ url, key: "a.b.c", tenant, sleep: async () => undefined }).apiKeys.list();
  await clientOf(url).apiKeys.list();
  expect(seen).toEqual([
    [tenant, "Bearer a.b.c"],
    [undefined, expect.stringMatching(/^Bearer /)],
  ]);
});

test("a key is made once: a call whose answer was lost is not repeated, for its key nobody could show again", async () => {
  let calls = 0;
  const url = await serverThat((request) => {
    calls++;
    request.socket.destroy();
  });
  const { apiKeys, tenants } = clientOf(url);
  const draft = { label: "CI", role: "operator" };
  await expect(apiKeys.create(draft)).rejects.toMatchObject({ name: "NoAnswer" });
  await expect(apiKeys.rotate("key_x")).rejects.toMatchObject({ name: "NoAnswer" });
  expect(calls).toBe(2);
  // A name makes it safe.
  await expect(tenants.create({ name: "Acme" })).rejects.toMatchObject({ name: "NoAnswer" });
  expect(calls).toBeGreaterThan(3);
});

test("what the client knows of keys, tenants and callers is what the API says", () => {
  expectTypeOf<z.output<typeof apiKeySchema>>().toExtend<ApiKey>();
  expectTypeOf<z.output<typeof tenantSchema>>().toExtend<Tenant>();
});

test("an identifier is one segment of the path, and a payload's text is sent as it is written", async () => {
  const seen: string[] = [];
  const url = await serverThat(async (request, response) => {
    seen.push(`${request.url} ${await text(request)}`);
    return response.end("{}");
  });
  await clientOf(`${url}/behind/a/proxy/`).runs.get("../../v1/me?x=1");
  await clientOf(url).schedules.create({ ...DRAFT, payloadJson: '{"n": 1.10, "n": 9007199254740993}' });
  expect(seen[0]).toBe("/behind/a/proxy/v1/runs/..%2F..%2Fv1%2Fme%3Fx%3D1 ");
  expect(seen[1]).toMatch(/"payload":\{"n": 1\.10, "n": 9007199254740993\}\}$/);
});

test("previews and differences are asked of their own routes", async () => {
  const seen: string[] = [];
  const url = await serverThat(async (request, response) => {
    seen.push(`${request.method} ${request.url} ${await text(request)}`);
    return response.end("{}");
  });
  const { schedules } = clientOf(url);
  await schedules.preview({ rule: DRAFT.rule, count: 3, windowMs: 60_000 });
  await schedules.previewChange("key:a", { rule: DRAFT.rule });
  await schedules.previewChange("key:a");
  await schedules.diff("key:a", 3);
  await schedules.diff("key:a", 3, 1);
  expect(seen).toEqual([
    `POST /v1/schedules/preview ${JSON.stringify({ rule: DRAFT.rule, count: 3, windowMs: 60_000 })}`,
    `POST /v1/schedules/key%3Aa/preview ${JSON.stringify({ rule: DRAFT.rule })}`,
    "POST /v1/schedules/key%3Aa/preview {}",
    "GET /v1/schedules/key%3Aa/revisions/3/diff ",
    "GET /v1/schedules/key%3Aa/revisions/3/diff?against=1 ",
  ]);
});

test("a result that arrives damaged is never given out whole", async () => {
  const bytes = "the report".repeat(20_000);
  const url = await serverThat((_, response) => response.end(`${bytes.slice(0, -1)}!`));
  const link = { runId: "run_1", url, expiresAt: "", sha256: "0".repeat(64), size: bytes.length, mediaType: null };
  let received = "";
  await expect(
    (async () => {
      for await (const chunk of download(link)) received += Buffer.from(chunk).toString();
    })(),
  ).rejects.toThrow(/damaged/);
  expect(received.length).toBeLessThan(bytes.length);
});
