import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { effectDetailSchema, effectListItemSchema } from "../../src/api/present/effect.ts";
import { claimRuns } from "../../src/authority/attempts/claim.ts";
import { completeRuns } from "../../src/authority/attempts/complete.ts";
import { sendEffects } from "../../src/authority/effects/send.ts";
import { settleEffects } from "../../src/authority/effects/settle.ts";
import type { SendReport } from "../../src/domain/effects/settlement.ts";
import { mintId, readId, type Uuid } from "../../src/kernel/ids.ts";
import { sql } from "../../src/store/database.ts";
import { call, REPORT, startTestServer, type TestServer } from "./server.ts";

let server: TestServer;
let owner: string;
let viewer: string;
let stranger: string;
beforeAll(async () => {
  server = await startTestServer();
  const acme = await server.tenant("acme");
  owner = await server.key(acme, "owner");
  viewer = await server.key(acme, "viewer");
  stranger = await server.key(await server.tenant("strangers"), "owner");
});
afterAll(() => server?.close());

const send = (method: string, path: string, body?: unknown, key = owner) =>
  call(server.url, method, path, { key, ...(body === undefined ? {} : { body }) });

const MAIL = { name: "mail", kind: "email", to: ["ada@example.com"], subject: "Report of {{run.scheduledAt}}" };
const HOOK = { name: "hook", kind: "webhook", url: "https://hooks.example.com/x" };

/** An ad hoc run that has succeeded; answers its shown id and the ids of its effects by name. */
async function ran(effects: object[]): Promise<{ run: string; ids: Record<string, string> }> {
  const made = await send("POST", "/v1/runs", { job: REPORT, effects });
  expect(made.status, made.text).toBe(201);
  const run = String(made.body.runId);
  const runId = readId("run", run)!;
  const [row] = await server.db.query<{ id: bigint }>(
    sql("test_row_of_run", "select id from outbox where runs @> array[$1::uuid]"),
    [runId],
  );
  const { grants } = await claimRuns(server.authority, {
    claimId: mintId(Date.now(), 0),
    worker: "w",
    slots: { short: 1 },
    hints: [{ rowId: row!.id, epoch: 1 }],
    repeated: false,
  });
  await completeRuns(server.authority, [{ runId, fence: grants[0]!.fence, output: null }]);
  const shown = (await send("GET", `/v1/runs/${run}`)).body.effects as { name: string; effectId: string }[];
  return { run, ids: Object.fromEntries(shown.map((one) => [one.name, one.effectId])) };
}

async function tried(shown: string, report: SendReport): Promise<void> {
  const effectId: Uuid = readId("eff", shown)!;
  const [grant] = await sendEffects(server.authority, {
    claimId: mintId(Date.now(), 0),
    sender: "sender-a",
    effectIds: [effectId],
    leaseMs: 60_000,
    repeated: false,
  });
  await settleEffects(server.authority, [{ effectId, fence: grant!.fence, report }]);
}
const UNKNOWN: SendReport = { kind: "unknown", message: "lost" };

describe("a run that has succeeded", () => {
  it("shows its effects: the report is ready, the email is pending", async () => {
    const { run, ids } = await ran([MAIL, HOOK]);
    expect((await send("GET", `/v1/runs/${run}`)).body).toMatchObject({
      state: "succeeded",
      effects: [
        { name: "hook", kind: "webhook", state: "pending", attempts: 0, nextAttemptAt: expect.any(String) },
        { name: "mail", kind: "email", state: "pending", attempts: 0, settledAt: null },
      ],
    });
    await tried(ids.mail!, { kind: "sent", externalId: "250 queued as 1", message: null });
    const after = (await send("GET", `/v1/runs/${run}`)).body.effects as object[];
    expect(after[1]).toMatchObject({ state: "sent", attempts: 1, externalId: "250 queued as 1", nextAttemptAt: null });
  });
});

describe("GET /v1/effects", () => {
  it("lists a tenant's effects by state and kind, page by page, newest first", async () => {
    const { ids } = await ran([MAIL, HOOK]);
    await tried(ids.mail!, UNKNOWN);
    const uncertain = (await send("GET", "/v1/effects?state=uncertain&kind=email")).body.items as object[];
    expect(uncertain.map((one) => effectListItemSchema.parse(one).effectId)).toContain(ids.mail);
    expect((await send("GET", "/v1/effects?state=uncertain&kind=webhook")).body.items).toEqual([]);
    const seen: string[] = [];
    let after = "";
    do {
      const page = (await send("GET", `/v1/effects?limit=1${after}`)).body;
      seen.push(...(page.items as { effectId: string }[]).map((one) => one.effectId));
      after = page.next === null ? "" : `&after=${page.next}`;
    } while (after !== "");
    expect(seen).toEqual([...new Set(seen)].toSorted().toReversed());
    expect((await send("GET", "/v1/effects", undefined, stranger)).body.items).toEqual([]);
    expect((await send("GET", "/v1/effects?state=lost")).body).toMatchObject({ code: "invalid-request" });
  });

  it("of a schedule: only those of its runs", async () => {
    const made = await send("POST", "/v1/schedules", {
      name: "s",
      key: "with-effects",
      rule: { kind: "cron", expression: "0 0 1 1 *", zone: "Etc/UTC" },
      job: REPORT,
      effects: [MAIL],
    });
    expect(made.body).toMatchObject({ effects: [{ name: "mail", onUncertain: "hold", result: "link" }] });
    expect((await send("GET", "/v1/effects?scheduleId=key:with-effects")).body.items).toEqual([]);
  });
});

describe("GET /v1/effects/:id", () => {
  it("shows every attempt, and is a stranger's 404", async () => {
    const { ids } = await ran([HOOK]);
    await tried(ids.hook!, { kind: "refused", transient: true, message: "the receiver answered 503" });
    const answer = await send("GET", `/v1/effects/${ids.hook}`, undefined, viewer);
    expect(effectDetailSchema.parse(answer.body)).toMatchObject({
      state: "pending",
      effect: { url: HOOK.url, idempotencyWindowMs: 86_400_000 },
      tries: [{ attempt: 1, outcome: "refused", sender: "sender-a", message: "the receiver answered 503" }],
    });
    for (const [path, key] of [
      [`/v1/effects/${ids.hook}`, stranger],
      ["/v1/effects/eff_nonsense", owner],
    ] as const) {
      expect((await send("GET", path, undefined, key)).status).toBe(404);
    }
  });
});

describe("POST /v1/effects/:id/resolve", () => {
  const resolve = (id: string, outcome: string, key = owner) =>
    send("POST", `/v1/effects/${id}/resolve`, { outcome, reason: "asked them" }, key);

  it("keeps who decided what, and says when it changes nothing", async () => {
    const { ids } = await ran([MAIL]);
    await tried(ids.mail!, UNKNOWN);
    expect((await resolve(ids.mail!, "sent", viewer)).status).toBe(403);
    expect((await resolve(ids.mail!, "sent", stranger)).status).toBe(404);
    expect((await resolve(ids.mail!, "sent")).body).toMatchObject({
      changed: true,
      effect: { state: "resolved", resolution: "sent", resolvedBy: expect.stringMatching(/^key_/) },
    });
    const { runId } = (await send("GET", `/v1/effects/${ids.mail}`)).body;
    expect((await send("GET", `/v1/runs/${runId}`)).body.effects, "the run says how, too").toMatchObject([
      { state: "resolved", resolution: "sent" },
    ]);
    expect((await resolve(ids.mail!, "sent")).body).toMatchObject({ changed: false });
    expect((await resolve(ids.mail!, "resend")).body).toMatchObject({
      status: 409,
      code: "effect-settled",
      state: "resolved",
    });
  });

  it("sends again what a person says may happen twice", async () => {
    const { ids } = await ran([MAIL]);
    await tried(ids.mail!, UNKNOWN);
    expect((await resolve(ids.mail!, "resend")).body).toMatchObject({ changed: true, effect: { state: "pending" } });
  });

  it("needs a reason, and an outcome that there is", async () => {
    const { ids } = await ran([MAIL]);
    const answer = await send("POST", `/v1/effects/${ids.mail}/resolve`, { outcome: "snet" });
    expect(answer.body.errors).toMatchObject([
      { field: "outcome", allowed: "sent, resend, drop", didYouMean: "sent" },
      { field: "reason", message: "is missing" },
    ]);
  });
});

describe("declared effects", () => {
  const refusalOf = async (effects: unknown) => {
    const answer = await send("POST", "/v1/runs", { job: REPORT, effects });
    expect(answer.status, answer.text).toBe(400);
    return answer.body.errors as object[];
  };

  it.each([
    [[{ ...MAIL, subject: "{{schedule.nme}}" }], "effects[0].subject", "schedule.name"],
    [[{ ...MAIL, subject: "two\nlines" }], "effects[0].subject", "one line"],
    [[{ ...MAIL, to: ["ada at example.com"] }], "effects[0].to[0]", "an email address"],
    [[{ ...MAIL, kind: "sms" }], "effects[0].kind", "email, webhook"],
    [[MAIL, MAIL], "effects", "a name of its own"],
    [[{ ...HOOK, url: "ftp://example.com" }], "effects[0].url", "http or https"],
    [[{ ...HOOK, url: "https://user:secret@example.com" }], "effects[0].url", "a password"],
    [[{ ...HOOK, headers: { Authorization: "x" } }], "effects[0].headers.Authorization", "no place for secrets"],
    [[{ ...HOOK, headers: { "Idempotency-Key": "x" } }], "effects[0].headers", "set by Punctual"],
    [[{ ...HOOK, headers: { "x-a": "b\r\nc: d" } }], "effects[0].headers", "visible ASCII"],
  ])("%j is refused by name", async (effects, field, words) => {
    const [fault] = await refusalOf(effects);
    expect(JSON.stringify(fault)).toContain(words);
    expect((fault as { field: string }).field.startsWith(field)).toBe(true);
  });

  it("are part of the revision: a patch replaces or takes them away, and the difference says so", async () => {
    const rule = { kind: "cron", expression: "0 0 1 1 *", zone: "Etc/UTC" };
    const made = await send("POST", "/v1/schedules", { name: "s", rule, job: REPORT, effects: [MAIL] });
    const path = `/v1/schedules/${made.body.scheduleId}`;
    const changed = await send("PATCH", path, { expectedRevision: 1, effects: [MAIL, HOOK] });
    expect(changed.body.effects).toMatchObject([{ name: "mail" }, { name: "hook" }]);
    const diff = await send("GET", `${path}/revisions/2/diff`);
    expect(JSON.stringify(diff.body)).toContain("hook");
    const without = await send("PATCH", path, { expectedRevision: 2, effects: null });
    expect(without.body.effects).toBeUndefined();
  });

  it("of a kind that this installation cannot send are refused", async () => {
    const bare = await startTestServer({ effectKinds: ["webhook"] });
    const key = await bare.key(await bare.tenant("acme"), "owner");
    const answer = await call(bare.url, "POST", "/v1/runs", { key, body: { job: REPORT, effects: [HOOK, MAIL] } });
    await bare.close();
    expect(answer.body).toMatchObject({
      status: 400,
      errors: [{ field: "effects[1].kind", found: '"email"', allowed: "webhook" }],
    });
  });
});

describe("an email that names a template", () => {
  it("is refused where there is none of that name, and taken where there is one; what stood there may stay", async () => {
    const ask = (method: string, path: string, body?: unknown) => call(server.url, method, path, { key: owner, body });
    const mail = (more: object) => ({ name: "mail", kind: "email", to: ["ada@example.com"], ...more });
    const draft = { name: "x", rule: { kind: "afterCompletion", delayMs: 60_000 }, job: REPORT };
    const create = (more: object) => ask("POST", "/v1/schedules", { ...draft, effects: [mail(more)] });
    const content = { subject: "{{job.name}}", text: "done" };
    expect((await ask("PUT", "/v1/email-templates/monthly", content)).body).toMatchObject({ version: 1, html: null });
    expect((await ask("PUT", "/v1/email-templates/monthly", content)).body).toMatchObject({ version: 1 });
    const refused = await create({ template: "montly" });
    expect([refused.status, refused.body.errors]).toEqual([
      400,
      [expect.objectContaining({ field: "effects[0].template", allowed: "monthly", didYouMean: "monthly" })],
    ]);
    expect((await create({ template: "monthly", text: "too" })).body.errors).toMatchObject([
      { field: "effects[0].text" },
    ]);
    const made = await create({ template: "monthly" });
    expect(made.status, made.text).toBe(201);
    expect((await ask("DELETE", "/v1/email-templates/monthly")).status).toBe(200);
    const path = `/v1/schedules/${String(made.body.scheduleId)}`;
    expect((await ask("PATCH", path, { notes: "still", expectedRevision: 1 })).status).toBe(200);
  });

  it.each([
    [{ subject: "{{run.secret}}", text: "t" }, "subject"],
    [{ subject: "two\nlines", text: "t" }, "subject"],
    [{ subject: "s" }, "text"],
    [{ subject: "s", text: "t", html: "{{nothing}}" }, "html"],
  ])("a template such as %j is refused by its field", async (content, field) => {
    const answer = await call(server.url, "PUT", "/v1/email-templates/bad", { key: owner, body: content });
    expect([answer.status, answer.body.errors]).toEqual([400, [expect.objectContaining({ field })]]);
  });

  it("a template that was changed meanwhile is not overwritten by who says which version the change was made for", async () => {
    const path = "/v1/email-templates/weekly";
    const put = (text: string, more: object = {}, headers: Record<string, string> = {}) =>
      call(server.url, "PUT", path, { key: owner, headers, body: { subject: "s", text, ...more } });
    const made = await put("first", { expectedVersion: 0 });
    expect([made.status, made.headers.get("etag")]).toEqual([200, '"1"']);
    expect((await put("second", {}, { "if-match": '"1"' })).body).toMatchObject({ version: 2 });
    for (const answer of [
      await put("third", {}, { "if-match": '"1"' }),
      await put("third", { expectedVersion: 1 }),
      await put("third", { expectedVersion: 0 }),
    ]) {
      expect([answer.status, answer.body.code, answer.body.current]).toEqual([
        409,
        "email-template-conflict",
        expect.objectContaining({ version: 2, text: "second" }),
      ]);
    }
    // A repeat of what is there is none, and nobody has to say a version.
    expect((await put("second", {}, { "if-match": '"1"' })).body).toMatchObject({ version: 2 });
    expect((await put("third")).body).toMatchObject({ version: 3 });
    expect((await call(server.url, "GET", path, { key: owner })).headers.get("etag")).toBe('"3"');
    const gone = "/v1/email-templates/none";
    const none = { subject: "s", text: "t", expectedVersion: 3 };
    expect((await call(server.url, "PUT", gone, { key: owner, body: none })).body).toMatchObject({ current: null });
  });

  it("a template's name is that of an effect", async () => {
    const body = { subject: "s", text: "t" };
    expect((await call(server.url, "PUT", "/v1/email-templates/Big%20One", { key: owner, body })).status).toBe(400);
  });
});
