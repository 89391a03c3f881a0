import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import pg from "pg";
import { afterAll, beforeAll, expect, it } from "vitest";
import { mintKey } from "../../src/api/keys.ts";
import { newMasterKey } from "../../src/app/secrets/key-list.ts";
import { mintId, readId } from "../../src/kernel/ids.ts";
import { type Answer, call } from "../api/server.ts";
import { createTestDatabase, type TestDatabase } from "../support/postgres.ts";
import { type WebhookReceiver, webhookReceiver } from "../support/receivers.ts";
import { redisAvailable, startTestRedis } from "../support/redis.ts";
import { until } from "../support/system.ts";
import { makeTemporaryFolder } from "../support/temporary-folder.ts";
import { allOfRedis, allTables, findIn } from "./sight.ts";

const JOB = { kind: "function", name: "test.tell", version: 1 };
const WAYS = ["throw", "log", "progress", "permanent", "transient", "output", "media", "detach", "stray", "succeed"];

/** One for each way, so that what is found says where it came from. */
const secretOf = (what: string) =>
  // An output can only be called by letters and digits.
  what.includes("output") ? `kept${what}Quiet` : `"é/ kept${what}Quiet&+\\`;
/** JSON numbers are secrets too. */
const PIN = 918_273_645;

let database: TestDatabase;
let admin: pg.Pool;
let redis: Awaited<ReturnType<typeof startTestRedis>> | undefined;
let receiver: WebhookReceiver;
let child: ChildProcess;
let url = "";
let key = "";
let logged = "";
const directory = makeTemporaryFolder("punctual-secrets-");
/** Every answer of the API, refusals too. */
const answers: string[] = [];

beforeAll(async () => {
  database = await createTestDatabase();
  admin = new pg.Pool({ connectionString: database.url, max: 2 });
  admin.on("error", () => undefined);
  redis = redisAvailable ? await startTestRedis() : undefined;
  receiver = await webhookReceiver();
  const { PATH } = process.env;
  child = spawn(process.execPath, [fileURLToPath(new URL("child.ts", import.meta.url))], {
    stdio: ["ignore", "pipe", "pipe", "ipc"],
    env: {
      PATH,
      PUNCTUAL_TEST_CONFIG: JSON.stringify({
        DATABASE_URL: database.url,
        ...(redis === undefined ? {} : { REDIS_URL: redis.url }),
        PUNCTUAL_DIR: directory,
        PUNCTUAL_OBJECTS_DIR: join(directory, "objects"),
        PUNCTUAL_LOG_LEVEL: "trace",
        PUNCTUAL_PORT: "0",
        PUNCTUAL_LEASE_TTL_MS: "2500",
        PUNCTUAL_HEARTBEAT_MS: "300",
        PUNCTUAL_LEASE_MARGIN_MS: "500",
        PUNCTUAL_OUTBOUND_ALLOW: "127.0.0.1",
        PUNCTUAL_SECRET_KEYS: newMasterKey("first"),
      }),
    },
  });
  for (const stream of [child.stdout!, child.stderr!]) stream.on("data", (bytes: Buffer) => (logged += bytes));
  url = await new Promise<string>((resolve, reject) => {
    child.once("message", (message: { url: string }) => resolve(message.url));
    child.once("exit", () => reject(new Error(`the child did not start: ${logged.slice(-2000)}`)));
  });
  const tenantId = mintId(Date.now(), 0);
  const minted = mintKey();
  await admin.query("insert into tenant (id, name) values ($1, 'acme')", [tenantId]);
  await admin.query("insert into api_key (id, tenant_id, prefix, secret_hash, role) values ($1, $2, $3, $4, 'admin')", [
    mintId(Date.now(), 0),
    tenantId,
    minted.prefix,
    minted.secretHash,
  ]);
  key = minted.key;
});

afterAll(async () => {
  child?.kill("SIGKILL");
  await receiver?.close();
  await redis?.stop();
  await admin?.end();
  await database?.drop();
  rmSync(directory, { recursive: true, force: true });
});

async function ask(
  method: string,
  path: string,
  body?: unknown,
  headers: Record<string, string> = {},
): Promise<Answer> {
  const answer = await call(url, method, path, { key, body, headers });
  answers.push(`${method} ${path} ${answer.status} ${JSON.stringify([...answer.headers])} ${answer.text}`);
  return answer;
}

async function made(answer: Promise<Answer>): Promise<Record<string, unknown>> {
  const { status, body, text } = await answer;
  expect(status, text).toBeLessThan(300);
  return body as Record<string, unknown>;
}

const payloadOf = (what: string, how: string) => ({
  how,
  password: { $secret: secretOf(what) },
  plain: { pin: { $secret: PIN }, nothing: { $secret: false } },
  list: [{ token: secretOf(`${what}Token`), id: 1 }, { token: secretOf(`${what}Other`) }],
});
const scheduleOf = (what: string, how: string, more: object = {}) => ({
  name: "tells",
  rule: { kind: "interval", everyMs: 1000, anchorAt: 0 },
  maxRuns: 1,
  job: JOB,
  retry: { maxAttempts: 2, baseMs: 1, capMs: 1 },
  payload: payloadOf(what, how),
  ...more,
});

const ended = async (runs: number) => {
  const { rows } = await admin.query("select count(*)::int as n from run where finished_at is not null");
  return rows[0].n >= runs;
};

it("a secret that its job throws, logs and shows can be read nowhere: tables, Redis, logs, answers, effects", async () => {
  const secrets: string[] = [];
  const used = (what: string) => {
    secrets.push(secretOf(what), secretOf(`${what}Token`), secretOf(`${what}Other`));
    return what;
  };
  let runs = 0;
  const scheduleIds: string[] = [];
  // The four doors: a schedule's own runs, run-now with another payload, run-now with what was shown, ad hoc runs.
  for (const how of WAYS) {
    const effects = [{ name: "hook", kind: "webhook", url: receiver.url }];
    const created = await made(
      ask("POST", "/v1/schedules", scheduleOf(used(`Sched${how}`), how, { effects }), { "idempotency-key": how }),
    );
    scheduleIds.push(String(created.scheduleId));
    await made(
      ask(
        "POST",
        "/v1/runs",
        { job: JOB, payload: { how, marked: secretOf(`Adhoc${how}`) } },
        { "idempotency-key": how },
      ),
    );
    secrets.push(secretOf(`Adhoc${how}`));
    runs += 2;
  }
  const first = scheduleIds[0]!;
  const never = { rule: { kind: "cron", expression: "0 0 1 1 *", zone: "Etc/UTC" }, maxRuns: undefined };
  const kept = await made(ask("POST", "/v1/schedules", scheduleOf(used("Kept"), "throw", never)));
  const keptId = String(kept.scheduleId);
  const again = await made(
    ask("PUT", `/v1/schedules/${keptId}`, {
      ...scheduleOf("Kept", "log", never),
      payload: { ...(kept.payload as object), how: "log" },
      expectedRevision: 1,
    }),
  );
  await made(
    ask("PATCH", `/v1/schedules/${keptId}`, { expectedRevision: 2, payload: payloadOf(used("Other"), "throw") }),
  );
  await made(
    ask(
      "POST",
      `/v1/schedules/${keptId}/runs`,
      { payload: payloadOf(used("Now"), "throw") },
      { "idempotency-key": "n" },
    ),
  );
  const run = await made(ask("POST", `/v1/schedules/${first}/runs`, undefined, { "idempotency-key": "n" }));
  runs += 2;
  // Refused by the newer job of the worker.
  for (const [i, payload] of [
    { pin: { $secret: secretOf("Pin") } },
    { choice: { $secret: secretOf("Choice") } },
    { strict: { $secret: { [secretOf("Field")]: 1 } } },
    { choice: { $secret: 123 } },
    { strict: { inside: { $secret: 123 } } },
  ].entries()) {
    await made(
      ask("POST", "/v1/runs", { job: JOB, payload: { how: "throw", ...payload } }, { "idempotency-key": `r${i}` }),
    );
    runs++;
  }
  secrets.push(secretOf("Pin"), secretOf("Choice"), secretOf("Field"));

  // Refusals say nothing of what they refuse.
  const bad = secretOf("Refused");
  secrets.push(bad);
  const refused: [string, unknown][] = [
    ["/v1/runs", { job: JOB, payload: { how: { $secret: { a: bad } } } }],
    ["/v1/runs", { job: JOB, payload: { how: "x", marked: { $secret: [bad] } } }],
    ["/v1/runs", { job: JOB, payload: { how: "x", marked: { deep: bad } } }],
    ["/v1/runs", { job: JOB, payload: { how: "x", p: { $secret: bad, more: bad } } }],
    ["/v1/runs", { job: JOB, payload: { how: "x", p: { $secret: { $secret: bad } } } }],
    ["/v1/runs", { job: JOB, payload: { how: "x", p: { $Secret: bad } } }],
    ["/v1/runs", { job: JOB, payload: { how: "x", p: { $sealed: bad } } }],
    ["/v1/runs", { job: JOB, payload: { $secret: bad } }],
    ["/v1/runs", { job: { ...JOB, name: "test.tel" }, payload: { how: "x", p: { $secret: bad } } }],
    ["/v1/schedules", { ...scheduleOf("Refused", "x"), rule: { kind: "cron", expression: "x", zone: "Etc/UTC" } }],
  ];
  for (const [path, body] of refused) expect((await ask("POST", path, body)).status, JSON.stringify(body)).toBe(400);
  const rounded = `{"job":${JSON.stringify(JOB)},"payload":{"how":"x","p":{"$secret":{"a":9182736450000000001}}}}`;
  expect((await ask("POST", "/v1/runs", rounded)).status).toBe(400);
  secrets.push("9182736450000000001");
  const conflict = await ask("PATCH", `/v1/schedules/${keptId}`, {
    expectedRevision: 1,
    payload: payloadOf("Refused", "x"),
  });
  expect(conflict.status).toBe(409);
  const used1 = await ask(
    "POST",
    "/v1/runs",
    { job: JOB, payload: { marked: bad, how: "x" } },
    { "idempotency-key": "throw" },
  );
  expect(used1.body).toMatchObject({ code: "request-key-reused" });

  await until(
    "every run ends",
    () => ended(runs),
    60_000,
    async () => logged.slice(-3000),
  );

  // Everything that shows what was given, or what became of it.
  const listed = [
    "/v1/schedules",
    "/v1/runs?limit=200",
    "/v1/dead-letters",
    "/v1/dead-letters/groups",
    "/v1/effects",
    "/v1/operations",
    "/v1/job-types",
    "/openapi.json",
    "/v1/audit-events",
    "/v1/audit-events/export",
  ];
  for (const path of listed) expect((await ask("GET", path)).status, path).toBe(200);
  for (const id of [...scheduleIds, keptId]) {
    for (const part of ["", "/revisions", "/runs", "/ledger", "/dead-letters"])
      await ask("GET", `/v1/schedules/${id}${part}`);
  }
  for (const revision of [1, 2, 3]) await ask("GET", `/v1/schedules/${keptId}/revisions/${revision}/diff`);
  await ask("POST", `/v1/schedules/${keptId}/preview`, { payload: payloadOf("Other", "throw") });
  await ask("POST", `/v1/schedules/${keptId}/preview`, { notes: "x" });
  const { rows } = await admin.query<{ id: string }>("select id from run");
  const shown = (answers.join("\n").match(/run_[0-9a-z]{26}/g) ?? []).filter((id, i, all) => all.indexOf(id) === i);
  expect(shown.map((id) => readId("run", id))).toEqual(expect.arrayContaining(rows.map((row) => row.id)));
  for (const id of shown) for (const part of ["", "/attempts"]) await ask("GET", `/v1/runs/${id}${part}`);
  for (const id of shown) await ask("GET", `/v1/dead-letters/${id}`);
  await until("webhooks arrive", () => receiver.calls.length >= 4);

  // It did tell, each time in the one place that is left of it.
  const attempts = await admin.query("select error_message from attempt where error_message like '%[secret]%'");
  expect(attempts.rows.length).toBeGreaterThan(8);
  await until("logs are read", () => logged.includes("left behind: [secret]") && logged.includes("says [secret]"));
  expect((await admin.query("select progress::text from attempt where progress is not null")).rows).toEqual(
    expect.arrayContaining([{ progress: expect.stringContaining("[secret]") }]),
  );
  expect(run.runId).toBeDefined();
  expect(again.payload).toEqual({ ...(kept.payload as object), how: "log" });

  const stopped = once(child, "exit");
  child.kill("SIGTERM");
  await stopped;
  const found = [
    ...[...(await allTables(admin))].flatMap(([table, text]) => findIn(table, text, secrets)),
    ...(redis === undefined ? [] : findIn("Redis", await allOfRedis(redis.url), secrets)),
    ...findIn("logs", logged, secrets),
    ...answers.flatMap((answer) => findIn("answers", answer, secrets)),
    ...receiver.calls.flatMap(({ headers, body }) => findIn("effects", JSON.stringify(headers) + body, secrets)),
  ];
  expect(found).toEqual([]);
  // Nor can the sealed texts be read but in tables, and numbers are found nowhere.
  for (const text of [logged, ...answers]) expect(text).not.toMatch(/v1\.[0-9a-f-]{36}\./);
  for (const text of (await allTables(admin)).values()) expect(text).not.toContain(String(PIN));
  expect(logged + answers.join()).not.toContain(String(PIN));
});
