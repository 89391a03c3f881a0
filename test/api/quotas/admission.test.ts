import { afterAll, beforeAll, expect, it } from "vitest";
import { announceWorker } from "../../../src/authority/dispatch/presence.ts";
import { mintId } from "../../../src/kernel/ids.ts";
import { call, REPORT, startTestServer, type TestServer } from "../server.ts";

let server: TestServer;
let admin: string;
let owner: string;
let tenantId: string;
const send = (method: string, path: string, body?: unknown, headers: Record<string, string> = {}) =>
  call(server.url, method, path, { key: owner, body, headers });

beforeAll(async () => {
  server = await startTestServer();
  // Of the class `long` an attempt is assumed to take ten minutes: of two in one minute one slot starts one in time.
  await announceWorker(server.authority, {
    id: mintId(Date.now(), 1),
    name: "w",
    version: "0",
    slots: { long: { slots: 1, p95Ms: 0 } },
  });
});
afterAll(() => server?.close());

async function newTenant(name: string, onInfeasible?: string): Promise<void> {
  tenantId = await server.tenant(name);
  [admin, owner] = [await server.key(tenantId, "admin"), await server.key(tenantId, "owner")];
  if (onInfeasible === undefined) return;
  const answer = await call(server.url, "PUT", "/v1/quotas/long", { key: admin, body: { onInfeasible } });
  expect(answer.status, answer.text).toBe(200);
}
const nine = { kind: "cron", expression: "0 9 * * *", zone: "Etc/UTC" };
const ten = { ...nine, expression: "0 10 * * *" };
const body = (change: object = {}) => ({ name: "s", rule: nine, job: REPORT, payload: {}, class: "long", ...change });
const create = (change: object = {}, headers?: Record<string, string>) =>
  send("POST", "/v1/schedules", body(change), headers);

it("by default what cannot start in time is taken, with the quote of its busiest minute", async () => {
  await newTenant("default");
  const first = await create();
  expect(first.status).toBe(201);
  expect(first.body).not.toHaveProperty("feasibility");
  const second = await create();
  expect(second.status).toBe(201);
  expect(second.body.feasibility).toMatchObject({
    verdict: "needs-window",
    expectedRuns: { value: 2 },
    slots: 1,
    lastStartsAfterMs: 600_000,
  });
  // It was taken: it is there, and will be measured like every other.
  expect((await send("GET", `/v1/schedules/${second.body.scheduleId}`)).body.status).toBe("active");
});

it("a change that touches no time is not asked about; one that does is", async () => {
  await newTenant("changes");
  await create();
  const made = await create({ rule: ten });
  const path = `/v1/schedules/${made.body.scheduleId}`;
  expect(made.body).not.toHaveProperty("feasibility");
  const moved = await send("PATCH", path, { expectedRevision: 1, rule: nine });
  expect(moved.body.feasibility).toMatchObject({ verdict: "needs-window" });
  const renamed = await send("PATCH", path, { expectedRevision: 2, name: "t" });
  expect([renamed.status, "feasibility" in renamed.body]).toEqual([200, false]);
});

it("with `refuse` it is not taken, and the answer has the numbers; what was taken before is repeated all the same", async () => {
  await newTenant("refusing", "refuse");
  const first = await create({}, { "idempotency-key": "first" });
  expect(first.status).toBe(201);
  const refused = await create();
  expect(refused.status).toBe(422);
  expect(refused.body).toMatchObject({
    code: "infeasible",
    retryable: false,
    detail: expect.stringContaining("spread over a window of 10 minutes"),
    feasibility: { verdict: "needs-window", windowMsNeeded: 600_000, lastStartsAfterMs: 600_000, limitedBy: "slots" },
  });
  expect((await send("GET", "/v1/schedules")).body.items).toHaveLength(1);
  expect((await create({ rule: ten })).status).toBe(201);
  // Now the first one would be too much as well.
  const again = await create({}, { "idempotency-key": "first" });
  expect([again.status, again.headers.get("idempotency-replayed")]).toEqual([201, "true"]);
  const path = `/v1/schedules/${first.body.scheduleId}`;
  const moved = await send("PATCH", path, { expectedRevision: 1, rule: ten });
  expect([moved.status, moved.body.code]).toEqual([422, "infeasible"]);
  const replaced = await send("PUT", path, { ...body({ rule: ten }), expectedRevision: 1 });
  expect([replaced.status, replaced.body.code]).toEqual([422, "infeasible"]);
  expect((await send("PATCH", path, { expectedRevision: 1, name: "renamed" })).status).toBe(200);
});

it("with `accept` nobody is asked", async () => {
  await newTenant("accepting", "accept");
  await create();
  const second = await create();
  expect([second.status, "feasibility" in second.body]).toEqual([201, false]);
});

it("that no worker serves the class at the moment refuses nothing", async () => {
  await newTenant("no workers", "refuse");
  const quota = { onInfeasible: "refuse" };
  await call(server.url, "PUT", "/v1/quotas/memory", { key: admin, body: quota });
  expect((await create({ class: "memory" })).status).toBe(201);
  expect((await create({ class: "memory" })).status).toBe(201);
});

it("a limit of the tenant's own refuses like too few slots", async () => {
  await newTenant("limited", "refuse");
  await call(server.url, "PUT", "/v1/quotas/long", {
    key: admin,
    body: { onInfeasible: "refuse", maxRunning: 0, expectedVersion: 1 },
  });
  const refused = await create();
  expect(refused.body).toMatchObject({ code: "infeasible", feasibility: { verdict: "over-quota", maxRunning: 0 } });
});
