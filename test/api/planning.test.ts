import { setTimeout } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { leaveToRelay } from "../../src/authority/runs/bear.ts";
import { materialize } from "../../src/authority/runs/materialize.ts";
import { readId } from "../../src/kernel/ids.ts";
import { call, REPORT, startTestServer, type TestServer } from "./server.ts";

let server: TestServer;
let owner: string;
const send = (method: string, path: string, body?: unknown, headers: Record<string, string> = {}) =>
  call(server.url, method, path, { key: owner, ...(body === undefined ? {} : { body }), headers });

beforeAll(async () => {
  server = await startTestServer();
  owner = await server.key(await server.tenant("acme"), "owner");
});
afterAll(() => server?.close());

const HOUR = 3_600_000;
const cron = { kind: "cron", expression: "0 * * * *", zone: "Etc/UTC" };
const create = (definition: object) =>
  send("POST", "/v1/schedules", { name: "planned", job: REPORT, payload: {}, rule: cron, ...definition });
const faultsOf = (answer: { body: Record<string, unknown> }) =>
  (answer.body.errors as { field: string }[]).map((one) => one.field);

describe("a window, over HTTP", () => {
  it("moves when the next run is due, and not when it is scheduled", async () => {
    const { status, body, text } = await create({ windowMs: HOUR });
    expect(status, text).toBe(201);
    expect(body.windowMs).toBe(HOUR);
    const [nextRunAt, nextDueAt] = [Date.parse(String(body.nextRunAt)), Date.parse(String(body.nextDueAt))];
    expect(nextRunAt % HOUR).toBe(0);
    expect(nextDueAt).toBeGreaterThanOrEqual(nextRunAt);
    expect(nextDueAt).toBeLessThan(nextRunAt + HOUR);
  });

  it.each([999, 86_400_001, 1.5, "1h"])("of %s is refused, and the field named", async (windowMs) => {
    const answer = await create({ windowMs });
    expect(answer.status).toBe(400);
    expect(faultsOf(answer)).toEqual(["windowMs"]);
  });

  it("is taken away by null, and the next run is due at its instant again", async () => {
    const { body } = await create({ windowMs: HOUR });
    const patched = await send("PATCH", `/v1/schedules/${String(body.scheduleId)}`, {
      windowMs: null,
      expectedRevision: 1,
    });
    expect(patched.status, patched.text).toBe(200);
    expect(patched.body.windowMs).toBeUndefined();
    expect(patched.body.nextDueAt).toBe(patched.body.nextRunAt);
  });
});

describe("a run so long after the last one ended, over HTTP", () => {
  const rule = { kind: "afterCompletion", delayMs: 60_000 };

  it("begins at once; while the run is open there is no next one, and every instant is accounted for", async () => {
    const { status, body, text } = await create({ rule, pauseOnFailure: true });
    expect(status, text).toBe(201);
    expect(body).toMatchObject({ status: "active", pauseOnFailure: true, nextRunAt: expect.any(String) });
    const id = readId("sch", String(body.scheduleId))!;
    while (Date.parse(String(body.nextRunAt)) >= Date.now()) await setTimeout(1);
    await materialize(server.authority, [id], leaveToRelay);
    const read = await send("GET", `/v1/schedules/${String(body.scheduleId)}`);
    expect(read.body).toMatchObject({ status: "active", nextRunAt: null, nextRun: null, fault: null });
    const ledger = await send("GET", `/v1/schedules/${String(body.scheduleId)}/ledger`);
    expect(ledger.status, ledger.text).toBe(200);
    expect(ledger.body).toMatchObject({ complete: true, holes: [], next: null });
  });

  it("is no part of other rules: the member is named", async () => {
    const answer = await create({ rule: { kind: "anyOf", rules: [cron, rule] } });
    expect(answer.status).toBe(400);
    expect(faultsOf(answer)).toEqual(["rule.rules.1.kind"]);
  });
});

describe("a resume, over HTTP", () => {
  it("says how many instants the pause held, and may be answered otherwise than the policy", async () => {
    const { body } = await create({ misfire: { policy: "all", graceMs: 0 } });
    const path = `/v1/schedules/${String(body.scheduleId)}`;
    await send("POST", `${path}/pause`, {});
    const id = readId("sch", String(body.scheduleId))!;
    const firstAt = Math.floor(Date.now() / HOUR) * HOUR - 9 * HOUR;
    await server.db.run(
      `update schedule_cursor set next_run_at = to_timestamp(${firstAt / 1000}) where schedule_id = '${id}'`,
    );
    const refused = await send("POST", `${path}/resume`, { misfire: "some" });
    expect(refused.status).toBe(400);
    const resumed = await send("POST", `${path}/resume`, { misfire: "latest" });
    expect(resumed.status, resumed.text).toBe(200);
    expect(resumed.body).toMatchObject({ changed: true, plan: { runs: 1, skipped: 9 } });
  });
});
