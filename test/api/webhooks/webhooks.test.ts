import pg from "pg";
import { afterAll, beforeAll, expect, it, onTestFinished, vi } from "vitest";
import { readId } from "../../../src/kernel/ids.ts";
import { sql } from "../../../src/store/database.ts";
import { call, REPORT, startTestServer, type TestServer } from "../server.ts";

let server: TestServer;
let owner: string;
let viewer: string;
beforeAll(async () => {
  server = await startTestServer();
  const tenantId = await server.tenant("acme");
  owner = await server.key(tenantId, "owner");
  viewer = await server.key(tenantId, "viewer");
});
afterAll(() => server?.close());

const ask = (method: string, path: string, body?: unknown, key = owner) =>
  call(server.url, method, `/v1/webhooks${path}`, { key, body });
const DRAFT = { url: "https://hooks.example.com/x", events: ["run.failed"] };

it("a webhook is made, shown, changed field by field, disabled, enabled and deleted; a viewer may look", async () => {
  const made = await ask("POST", "", DRAFT);
  expect([made.status, made.headers.get("location")]).toEqual([201, `/v1/webhooks/${String(made.body.webhookId)}`]);
  const path = `/${String(made.body.webhookId)}`;
  expect((await ask("GET", path, undefined, viewer)).body).toEqual(made.body);
  expect(made.body).toMatchObject({ status: "enabled", scheduleIds: null, lateAfterMs: 60_000, description: null });
  expect((await ask("POST", "", DRAFT, viewer)).status).toBe(403);

  const change = { description: "pages", lateAfterMs: 5_000 };
  const changed = await ask("PATCH", path, change);
  expect(changed.body).toMatchObject({ changed: true, webhook: { ...made.body, ...change } });
  expect((await ask("PATCH", path, change)).body).toMatchObject({ changed: false });
  expect((await ask("PATCH", path, { description: null })).body).toMatchObject({ webhook: { description: null } });

  const disabled = await ask("POST", `${path}/disable`, { reason: "moves" });
  expect(disabled.body).toMatchObject({ changed: true, webhook: { status: "disabled", disabledReason: "moves" } });
  expect((await ask("POST", `${path}/disable`, {})).body).toMatchObject({ changed: false });
  expect((await ask("POST", `${path}/enable`, {})).body).toMatchObject({ webhook: { disabledReason: null } });
  expect((await ask("DELETE", path)).status).toBe(200);
  expect((await ask("GET", path)).status).toBe(404);
});

it.each([
  [{ ...DRAFT, url: "http://127.0.0.1/x" }, "url"],
  [{ ...DRAFT, url: "http://169.254.169.254/latest" }, "url"],
  [{ ...DRAFT, url: "http://[::ffff:10.0.0.1]/x" }, "url"],
  [{ ...DRAFT, url: "ftp://hooks.example.com" }, "url"],
  [{ ...DRAFT, url: "https://ada:pw@hooks.example.com" }, "url"],
  [{ ...DRAFT, events: [] }, "events"],
  [{ ...DRAFT, events: ["run.fail"] }, "events[0]"],
  [{ ...DRAFT, events: ["run.late", "run.late"] }, "events"],
  [{ ...DRAFT, scheduleIds: ["key:nobodys"] }, "scheduleIds[0]"],
  [{ ...DRAFT, lateAfterMs: 1 }, "lateAfterMs"],
])("%j is refused by its field, when it is made and when it is changed", async (draft, field) => {
  const path = `/${String((await ask("POST", "", DRAFT)).body.webhookId)}`;
  for (const answer of [await ask("POST", "", draft), await ask("PATCH", path, draft)]) {
    expect([answer.status, answer.body.errors]).toEqual([400, [expect.objectContaining({ field })]]);
  }
  await ask("DELETE", path);
});

it("a webhook of schedules names them by id or key, and is shown with their ids", async () => {
  const schedule = { name: "x", key: "mine", rule: { kind: "afterCompletion", delayMs: 60_000 }, job: REPORT };
  const { scheduleId } = (await call(server.url, "POST", "/v1/schedules", { key: owner, body: schedule })).body;
  const made = await ask("POST", "", { ...DRAFT, scheduleIds: ["key:mine", scheduleId] });
  expect(made.body.scheduleIds).toEqual([scheduleId]);
});

it("a webhook of a hundred schedules asks for all of them at once, in its own tenant alone", async () => {
  const schedule = { name: "x", key: "theirs", rule: { kind: "afterCompletion", delayMs: 60_000 }, job: REPORT };
  const stranger = await server.key(await server.tenant("globex"), "owner");
  const theirs = await call(server.url, "POST", "/v1/schedules", { key: stranger, body: schedule });
  const query = vi.spyOn(pg.Client.prototype, "query");
  onTestFinished(() => query.mockRestore());
  const refs = Array.from({ length: 97 }, (_, i) => `key:none-${i}`);
  const named = ["key:mine", "key:theirs", theirs.body.scheduleId];
  const refused = await ask("POST", "", { ...DRAFT, scheduleIds: [...named, ...refs] });
  expect(query.mock.calls.filter(([one]) => JSON.stringify(one).includes("from schedule")).length).toBe(1);
  const faults = refused.body.errors as { field: string }[];
  const first = faults.slice(0, 2).map(({ field }) => field);
  expect([refused.status, first]).toEqual([400, ["scheduleIds[1]", "scheduleIds[2]"]]);
});

it("a test is a delivery that can be listed, looked at and, once it is over, sent again", async () => {
  const path = `/${String((await ask("POST", "", DRAFT)).body.webhookId)}`;
  const test = await ask("POST", `${path}/test`, {});
  expect([test.status, test.body]).toMatchObject([201, { type: "webhook.test", runId: null, state: "pending" }]);
  const one = `${path}/deliveries/${String(test.body.deliveryId)}`;
  expect((await ask("POST", `${one}/redeliver`, {})).body).toMatchObject({ changed: false });
  const SET = sql(
    "test_set_delivery",
    `update webhook_delivery set state = $2, claim_id = '01000000-0000-8000-8000-00000000000a',
            settled_at = case when $2 = 'failed' then clock_timestamp() end where id = $1`,
  );
  await server.db.query(SET, [test.body.deliveryId, "sending"]);
  expect((await ask("POST", `${one}/redeliver`, {})).body).toMatchObject({ status: 409, code: "effect-sending" });
  await server.db.query(SET, [test.body.deliveryId, "failed"]);
  await ask("POST", `${path}/disable`, {});
  expect((await ask("POST", `${one}/redeliver`, {})).body).toMatchObject({ status: 409, code: "webhook-disabled" });
  await ask("POST", `${path}/enable`, {});
  const again = await ask("POST", `${one}/redeliver`, {});
  expect(again.body).toMatchObject({ changed: true, delivery: { state: "pending", eventId: test.body.eventId } });

  for (let i = 0; i < 2; i++) await ask("POST", `${path}/test`, {});
  const first = await ask("GET", `${path}/deliveries?limit=2`, undefined, viewer);
  const rest = await ask("GET", `${path}/deliveries?limit=2&after=${String(first.body.next)}`);
  const ids = [first, rest].flatMap(({ body }) =>
    (body.items as { deliveryId: string }[]).map((item) => item.deliveryId),
  );
  expect([ids.length, ids.at(-1), rest.body.next]).toEqual([3, test.body.deliveryId, null]);
  expect((await ask("GET", `${path}/deliveries?state=failed`)).body.items).toEqual([]);
  for (const ref of ["0", "x", "99999999999999999999"]) {
    expect((await ask("GET", `${path}/deliveries/${ref}`)).status).toBe(404);
  }
});

it("of very many deliveries a filter that few match reads some a page, and says where it goes on", async () => {
  const made = await ask("POST", "", DRAFT);
  const path = `/${String(made.body.webhookId)}`;
  const FILL = sql(
    "test_fill_deliveries",
    `insert into webhook_delivery (endpoint_id, tenant_id, type, run_id, n, facts, occurred_at, next_attempt_at, budget_from, state,
                                   settled_at)
     select w.id, w.tenant_id, 'run.failed', gen_random_uuid(), 1, '{}', now(), now(), now(),
            case when i in (1, 2, 5500) then 'failed' else 'delivered' end, now()
       from webhook_endpoint w cross join generate_series(1, 5600) i where w.id = $1`,
  );
  await server.db.query(FILL, [readId("whk", String(made.body.webhookId))]);
  const sizes: number[] = [];
  let next: unknown = "";
  while (next !== null) {
    const after = next === "" ? "" : `&after=${String(next)}`;
    const page = await ask("GET", `${path}/deliveries?state=failed&limit=2${after}`);
    expect((page.body.items as { state: string }[]).every(({ state }) => state === "failed")).toBe(true);
    sizes.push((page.body.items as unknown[]).length);
    next = page.body.next;
  }
  expect(sizes).toEqual([1, 2]);
});

it("a tenant has twenty at most, also where they are asked for at once", async () => {
  const key = await server.key(await server.tenant("many"), "owner");
  const answers = await Promise.all(Array.from({ length: 23 }, () => ask("POST", "", DRAFT, key)));
  const refused = answers.filter(({ status }) => status !== 201);
  expect(refused.map(({ body }) => [body.code, body.limit, body.used])).toEqual(
    Array.from({ length: 3 }, () => ["too-many-webhooks", 20, 20]),
  );
});
