import { Readable } from "node:stream";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { requestKeyOf } from "../../src/api/input/request-key.ts";
import { newMasterKey } from "../../src/app/secrets/key-list.ts";
import { createMasterKeys } from "../../src/app/secrets/master-keys.ts";
import { claimRuns } from "../../src/authority/attempts/claim.ts";
import { completeRuns } from "../../src/authority/attempts/complete.ts";
import type { Authority } from "../../src/authority/authority.ts";
import { createVault } from "../../src/authority/secrets/vault.ts";
import { createEffectSender } from "../../src/dispatch/effects/sender.ts";
import { createWebhookAdapter } from "../../src/handlers/effects/webhook.ts";
import { systemClock } from "../../src/kernel/clock.ts";
import { mintId, readId } from "../../src/kernel/ids.ts";
import { sql } from "../../src/store/database.ts";
import { call, REPORT, startTestServer, type TestServer } from "../api/server.ts";
import { outboundOf } from "../support/outbound.ts";
import { webhookReceiver } from "../support/receivers.ts";

const TOKEN = "Bearer tiger-9f2c1d";
const CHANGED = "Bearer lion-77aa01";

let server: TestServer;
let owner: string;
beforeAll(async () => {
  const allow = { outboundAllow: ["127.0.0.0/8"] };
  server = await startTestServer(allow, 0, 4, createMasterKeys(newMasterKey("test")));
  owner = await server.key(await server.tenant("acme"), "owner");
});
afterAll(() => server?.close());

const ask = (method: string, path: string, body?: unknown, headers = {}) =>
  call(server.url, method, path, { key: owner, body, headers });
const hook = (headers: object, more: object = {}) => ({
  name: "crm",
  kind: "webhook",
  url: "https://crm.example.com/x",
  headers,
  ...more,
});
const schedule = (effects: object[]) => ({
  name: "x",
  rule: { kind: "afterCompletion", delayMs: 60_000 },
  job: REPORT,
  effects,
});
type Shown = { $secret: null; $version: string };
const shownIn = (body: Record<string, unknown>, header = "Authorization") =>
  (body.effects as { headers: Record<string, Shown> }[])[0]!.headers[header]!;

/** Every row of every table that holds the text. */
async function rowsWith(text: string): Promise<string[]> {
  const tables = await server.db.query<{ name: string }>(
    sql(
      "test_all_tables",
      "select c.relname as name from pg_class c where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p')",
    ),
  );
  const found: string[] = [];
  for (const { name } of tables) {
    const statement = sql(
      `test_holds_${name}`,
      `select t::text as row from "${name}" t where t::text like '%' || $1 || '%'`,
    );
    found.push(...(await server.db.query<{ row: string }>(statement, [text])).map(({ row }) => `${name}: ${row}`));
  }
  return found;
}

describe("a secret in a header of a webhook effect", () => {
  it("is stored sealed, shown as a secret, and kept by edits that send what was shown", async () => {
    const key = { "idempotency-key": "once" };
    const body = schedule([hook({ Authorization: { $secret: TOKEN }, "x-team": "sales" })]);
    const made = await ask("POST", "/v1/schedules", body, key);
    expect(made.status, made.text).toBe(201);
    expect(await rowsWith("tiger")).toEqual([]);
    const shown = shownIn(made.body);
    expect(shown).toEqual({ $secret: null, $version: expect.stringMatching(/^[0-9a-f]{16}$/) });
    expect((await ask("POST", "/v1/schedules", body, key)).headers.get("idempotency-replayed")).toBe("true");
    const other = schedule([hook({ Authorization: { $secret: CHANGED }, "x-team": "sales" })]);
    expect((await ask("POST", "/v1/schedules", other, key)).body.code).toBe("request-key-reused");

    // A hash of the body alone could be guessed at by who has the database.
    const { bodySha256 } = requestKeyOf("schedule", "once", body)!.requestKey;
    expect(
      await server.db.query(sql("test_hash", "select 1 from request_key where request_sha256 = $1"), [bodySha256]),
    ).toEqual([]);

    const path = `/v1/schedules/${String(made.body.scheduleId)}`;
    const edit = (effects: unknown, expectedRevision: number) => ask("PATCH", path, { effects, expectedRevision });
    // Another field, what was shown, the same value sent anew: it stays.
    const [one] = made.body.effects as object[];
    const moved = [hook({ Accept: "*/*" }, { name: "other" }), { ...one, timeoutMs: 5_000 }];
    const second = await edit(moved, 1);
    expect(second.status, second.text).toBe(200);
    expect((second.body.effects as { headers: object }[])[1]!.headers).toEqual({
      Authorization: shown,
      "x-team": "sales",
    });
    const third = await edit([hook({ Authorization: { $secret: TOKEN } })], 2);
    expect(shownIn(third.body)).toEqual(shown);
    expect(shownIn((await ask("PATCH", path, { notes: "n", expectedRevision: 3 })).body)).toEqual(shown);
    const fifth = await edit([hook({ Authorization: { $secret: CHANGED } })], 4);
    expect(shownIn(fifth.body).$version).not.toBe(shown.$version);
    // What was there once is not there any more.
    expect((await edit([hook({ Authorization: shown })], 5)).body.errors).toMatchObject([
      { field: "effects[0].headers.Authorization", message: "is not the version that is there" },
    ]);
    const diff = await ask("GET", `${path}/revisions/5/diff`);
    const preview = await ask("POST", `${path}/preview`, {
      effects: [hook({ Authorization: { $secret: "Bearer bear-1" } })],
    });
    expect(preview.status, preview.text).toBe(200);
    for (const text of [diff.text, preview.text]) expect(text).not.toMatch(/tiger|lion|bear|sealed/);
    expect(await rowsWith("lion")).toEqual([]);
  });

  it.each([
    ["plain in a header that is a secret", { authorization: TOKEN }, "effects[0].headers.authorization"],
    ["as it is stored", { authorization: { $sealed: `v1.tiger` } }, "effects[0].headers.authorization"],
    ["misspelt", { authorization: { $Secret: TOKEN } }, "effects[0].headers.authorization"],
    ["with something beside it", { authorization: { $secret: TOKEN, tiger: 1 } }, "effects[0].headers.authorization"],
    ["that is no text", { authorization: { $secret: { tiger: 1 } } }, "effects[0].headers.authorization"],
    ["with a line break", { authorization: { $secret: "tiger\r\nx: y" } }, "effects[0].headers.authorization"],
    [
      "that is to be kept where there is none",
      { authorization: { $secret: null } },
      "effects[0].headers.authorization",
    ],
    ["in an object that is none", { authorization: { tiger: 1 } }, "effects[0].headers.authorization"],
  ])("is refused %s, and not repeated", async (_, headers, field) => {
    const answer = await ask("POST", "/v1/schedules", schedule([hook(headers)]));
    expect(answer.status, answer.text).toBe(400);
    expect(answer.body.errors).toMatchObject([{ field }]);
    expect(answer.text).not.toContain("tiger");
  });

  it("is refused in the form it is stored in, also where that is one of the tenant's own, from elsewhere", async () => {
    const made = await ask("POST", "/v1/schedules", schedule([hook({ "x-token": { $secret: TOKEN } })]));
    const [row] = await server.db.query<{ text: string }>(
      sql(
        "test_sealed_text",
        "select definition #>> '{effects,0,headers,x-token,$sealed}' as text from schedule_revision where schedule_id = $1",
      ),
      [readId("sch", String(made.body.scheduleId))],
    );
    expect(row!.text).toMatch(/^v1\./);
    const taken = await ask("POST", "/v1/schedules", schedule([hook({ "x-echo": { $sealed: row!.text } })]));
    expect([taken.status, taken.body.errors]).toEqual([
      400,
      [
        expect.objectContaining({
          field: "effects[0].headers.x-echo",
          message: expect.stringContaining("cannot be sent"),
        }),
      ],
    ]);
  });

  it("is refused where the installation keeps none", async () => {
    const without = await startTestServer();
    onTestFinished(() => without.close());
    const key = await without.key(await without.tenant("acme"), "owner");
    const body = schedule([hook({ Authorization: { $secret: TOKEN } })]);
    expect((await call(without.url, "POST", "/v1/schedules", { key, body })).body.code).toBe("secrets-unavailable");
  });
});

describe("a sender", () => {
  const ROW = sql("test_row_of_run", "select id from outbox where runs @> array[$1::uuid]");
  const STATE = sql("test_effect_state", "select state, error_message from effect where run_id = $1");
  const DUE = sql("test_effect_due", "update effect set next_attempt_at = clock_timestamp() where run_id = $1");

  /** An ad hoc run whose result was accepted; its effect waits. */
  async function accepted(url: string) {
    const effects = [hook({ Authorization: { $secret: TOKEN } }, { url })];
    const made = await ask("POST", "/v1/runs", { job: REPORT, effects });
    expect(made.status, made.text).toBe(201);
    const runId = readId("run", String(made.body.runId))!;
    const [row] = await server.db.query<{ id: bigint }>(ROW, [runId]);
    const hints = [{ rowId: row!.id, epoch: 1 }];
    const claim = { claimId: mintId(Date.now(), 0), worker: "w", slots: { short: 1 }, hints, repeated: false };
    const { grants } = await claimRuns(server.authority, claim);
    await completeRuns(server.authority, [{ runId, fence: grants[0]!.fence, output: null }]);
    return { runId, shown: String(made.body.runId) };
  }

  async function pass(authority: Authority): Promise<void> {
    const outbound = outboundOf();
    const keys = { keysOf: async () => [] };
    const sender = createEffectSender({
      authority,
      adapter: createWebhookAdapter({ outbound, keys, concurrency: 4, userAgent: "Punctual/test", clock: systemClock }),
      objects: { open: async () => Readable.from([]) },
      name: "sender-a",
      linkTo: () => "https://punctual.example.com",
      graceMs: 1_000,
    });
    await sender.pass(new AbortController().signal);
    await sender.drain();
    await sender.stop();
    await outbound.close();
  }

  it("opens it, and tells nobody what a receiver repeats of it", async () => {
    const hooks = await webhookReceiver((sent, response) => {
      response.writeHead(403).end(`no such token: ${sent.headers.authorization}`);
    });
    onTestFinished(() => hooks.close());
    const { runId, shown } = await accepted(hooks.url);
    await pass(server.authority);
    expect(hooks.calls.map((one) => one.headers.authorization)).toEqual([TOKEN]);
    expect(await server.db.query(STATE, [runId])).toEqual([
      { state: "failed", error_message: "the receiver answered 403: no such token: [secret]" },
    ]);
    expect(await rowsWith("tiger")).toEqual([]);
    const answers = [await ask("GET", `/v1/runs/${shown}`), await ask("GET", "/v1/effects")];
    for (const answer of answers) expect(answer.text).not.toMatch(/tiger|sealed/);
  });

  it("that cannot open it sends nothing, and says so; one that can goes on", async () => {
    const hooks = await webhookReceiver();
    onTestFinished(() => hooks.close());
    const { runId } = await accepted(hooks.url);
    const closed = Object.create(server.authority, {
      vault: { value: createVault(server.authority, undefined) },
    }) as Authority;
    await pass(closed);
    expect(hooks.calls).toEqual([]);
    expect(await server.db.query(STATE, [runId])).toMatchObject([
      { state: "pending", error_message: expect.stringContaining("a secret cannot be opened") },
    ]);
    await server.db.query(DUE, [runId]);
    await pass(server.authority);
    expect(hooks.calls).toHaveLength(1);
    expect(await server.db.query(STATE, [runId])).toMatchObject([{ state: "sent" }]);
  });
});
