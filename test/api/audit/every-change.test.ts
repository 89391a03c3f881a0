import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ROUTES } from "../../../src/api/table.ts";
import { newMasterKey } from "../../../src/app/secrets/key-list.ts";
import { createMasterKeys } from "../../../src/app/secrets/master-keys.ts";
import { readId, showId } from "../../../src/kernel/ids.ts";
import { sql } from "../../../src/store/database.ts";
import { codeIn, tableIn } from "../../docs/table.ts";
import { call, startTestServer, type TestServer } from "../server.ts";
import { SCENES, type Stage, WRITING_NOTHING } from "./scenes.ts";

const EVENTS = sql(
  "test_events_of",
  `select tenant_id, action, actor, subject, key_id, address, acting_for, before, after from audit_event
    where request_id = $1 order by id`,
);
type Event = Record<"tenant_id" | "action" | "actor" | "subject" | "key_id" | "address", string> & {
  acting_for: boolean;
  before: unknown;
  after: unknown;
};

const NAMES = ROUTES.map((route) => `${route.method.toUpperCase()} ${route.path}`);
const CHANGES = NAMES.filter((name) => !name.startsWith("GET ") && WRITING_NOTHING[name] === undefined);
const documented = new Map(
  tableIn("docs/audit.md", "call").map(([name, writes]) => [codeIn(name)[0]!, codeIn(writes)]),
);

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer({}, 0, 4, createMasterKeys(newMasterKey("test")));
});
afterAll(() => server?.close());

async function stageOf(name: string): Promise<Stage & { key: string }> {
  const tenantId = await server.tenant(name);
  const key = await server.key(tenantId, "admin");
  return {
    server,
    tenantId,
    key,
    async send(method, path, body) {
      const answer = await call(server.url, method, path, { key, ...(body === undefined ? {} : { body }) });
      expect(answer.status, `${method} ${path}: ${answer.text}`).toBeLessThan(300);
      return answer;
    },
  };
}

it("docs/audit.md has every call that changes something, and a scene plays each of them", () => {
  expect(CHANGES.filter((name) => SCENES[name] === undefined)).toEqual([]);
  expect([...documented.keys()].toSorted()).toEqual(CHANGES.toSorted());
  expect(Object.keys(WRITING_NOTHING).filter((name) => !NAMES.includes(name))).toEqual([]);
});

describe("a call that changes something writes down who asked, with which key, and from where", () => {
  it.each(CHANGES)("%s", async (name) => {
    const scene = SCENES[name];
    expect(scene, `${name} has no scene in test/api/audit/scenes.ts`).toBeDefined();
    const stage = await stageOf(name);
    const { path, body } = await scene!(stage);
    const requestId = `audit.${name.replaceAll(/[^A-Za-z0-9]+/g, "-")}`;
    const answer = await call(server.url, name.split(" ")[0]!, path, {
      key: stage.key,
      ...(body === undefined ? {} : { body }),
      headers: { "x-request-id": requestId },
    });
    expect(answer.status, answer.text).toBeLessThan(300);
    const events = await server.db.query<Event>(EVENTS, [requestId]);
    expect(events.length, `${name} writes no audit event`).toBeGreaterThan(0);
    const { body: me } = await call(server.url, "GET", "/v1/me", { key: stage.key });
    for (const event of events) {
      expect(documented.get(name)).toContain(event.action);
      expect(event).toMatchObject({ address: "127.0.0.1", actor: expect.stringMatching(/^key_/) });
      expect(event.key_id).toBe(readId("key", event.actor));
      expect(event.acting_for, "in another tenant than the key's").toBe(event.tenant_id !== stage.tenantId);
      expect(JSON.stringify(me)).toContain(event.actor);
    }
  });
});

describe("a call that changes nothing", () => {
  const count = async () => (await server.db.query(sql("test_all_events", "select 1 from audit_event"))).length;

  it("writes nothing: refused, repeated, or the same again", async () => {
    const { send, key } = await stageOf("nothing");
    const headers = { "idempotency-key": "once" };
    const { body } = await SCENES["POST /v1/schedules"]!({} as never);
    const make = () => call(server.url, "POST", "/v1/schedules", { key, body, headers });
    const made = await make();
    const path = `/v1/schedules/${String(made.body.scheduleId)}`;
    const run = (await send("POST", "/v1/runs", { job: (body as { job: object }).job })).body.runId;
    await send("POST", `/v1/runs/${run}/cancel`, {});
    const before = await count();
    expect((await make()).headers.get("idempotency-replayed")).toBe("true");
    const refused = await call(server.url, "PATCH", path, { key, body: { notes: "x", expectedRevision: 7 } });
    expect(refused.status).toBe(409);
    await send("PUT", "/v1/calendars/same", { weekend: [] });
    const between = await count();
    await send("PUT", "/v1/calendars/same", { weekend: [] });
    expect((await call(server.url, "POST", `/v1/runs/${run}/cancel`, { key, body: {} })).status).toBe(409);
    expect([between, await count()]).toEqual([before + 1, before + 1]);
  });

  it("nor do 401 and 403, which are counted and logged", async () => {
    const { tenantId } = await stageOf("turned away");
    const viewer = await server.key(tenantId, "viewer");
    const before = await count();
    expect((await call(server.url, "POST", "/v1/runs", { body: {} })).status).toBe(401);
    expect((await call(server.url, "POST", "/v1/runs", { key: viewer, body: {} })).status).toBe(403);
    expect(await count()).toBe(before);
    const text = await server.metrics.registry.metrics();
    expect(text).toContain('punctual_http_refusals_total{code="unauthenticated"} 1');
    expect(text).toContain('punctual_http_refusals_total{code="forbidden"} 1');
  });
});

describe("an event", () => {
  it("of a tenant that an admin of another one suspends says that he acted for it", async () => {
    const [platform, other] = [await stageOf("the platform"), await stageOf("the suspended")];
    const id = "audit.suspend";
    const path = `/v1/tenants/${showId("ten", other.tenantId)}`;
    const headers = { "x-request-id": id };
    await call(server.url, "PATCH", path, { key: platform.key, body: { status: "suspended" }, headers });
    expect(await server.db.query<Event>(EVENTS, [id])).toMatchObject([
      { action: "tenant.update", tenant_id: other.tenantId, acting_for: true },
    ]);
  });

  it("of an edit has the revisions and the fields that differ, and of a payload only that it is another", async () => {
    const stage = await stageOf("edits");
    const { path } = await SCENES["PATCH /v1/schedules/{schedule}"]!(stage);
    const payload = { secret: "s".repeat(30_000) };
    const id = "audit.edit";
    const body = { payload, labels: { team: "x" }, rule: { kind: "cron", expression: "1 0 1 1 *", zone: "Etc/UTC" } };
    const headers = { "x-request-id": id };
    await call(server.url, "PATCH", path, { key: stage.key, body: { ...body, expectedRevision: 1 }, headers });
    const [event] = await server.db.query<Event>(EVENTS, [id]);
    expect(event).toMatchObject({
      before: { revision: 1, payload: "of revision 1", "rule.expression": "0 0 1 1 *", "labels.team": null },
      after: { revision: 2, payload: "of revision 2", "rule.expression": "1 0 1 1 *", "labels.team": "x" },
    });
    expect(JSON.stringify(event).length).toBeLessThan(1_000);
  });
});
