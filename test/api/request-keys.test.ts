import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { call, REPORT, startTestServer, type TestServer } from "./server.ts";

let server: TestServer;
let owner: string;
let stranger: string;
const send = (method: string, path: string, body?: unknown, headers: Record<string, string> = {}, key = owner) =>
  call(server.url, method, path, { key, body, headers });
const rule = { kind: "cron", expression: "0 9 * * *", zone: "Etc/UTC" };
const make = async () =>
  String((await send("POST", "/v1/schedules", { name: "x", rule, job: REPORT })).body.scheduleId);

beforeAll(async () => {
  server = await startTestServer();
  owner = await server.key(await server.tenant("acme"), "owner");
  stranger = await server.key(await server.tenant("globex"), "owner");
});
afterAll(() => server?.close());

const lastDay = () => ({
  from: new Date(Date.now() - 86_400_000).toISOString(),
  to: new Date(Date.now() - 60_000).toISOString(),
  dryRun: false,
});
const lookUp = async (path: string, key = owner) => {
  const { status, body } = await send("GET", path, undefined, {}, key);
  return status === 200 ? body.items : [status, body.code];
};

describe("what a call did whose answer never came", () => {
  it("is told by its key: a run of its own, a run-now, a backfill", async () => {
    const id = await make();
    const key = { "idempotency-key": "lost-answer" };
    const range = lastDay();
    const ask = [
      ["/v1/runs?requestKey=lost-answer", () => send("POST", "/v1/runs", { job: REPORT }, key), "runId"],
      [
        `/v1/runs?scheduleId=${id}&requestKey=lost-answer`,
        () => send("POST", `/v1/schedules/${id}/runs`, {}, key),
        "runId",
      ],
      [
        `/v1/operations?scheduleId=${id}&requestKey=lost-answer`,
        async () => {
          const made = await send("POST", `/v1/schedules/${id}/backfill`, range, key);
          return { ...made, body: made.body.operation as Record<string, unknown> };
        },
        "operationId",
      ],
    ] as const;
    for (const [path, create, field] of ask) {
      expect(await lookUp(path), path).toEqual([404, "not-accepted"]);
      const { body } = await create();
      expect(body[field], path).toEqual(expect.any(String));
      expect(await lookUp(path), path).toMatchObject([{ [field]: body[field] }]);
      expect((await create()).body[field], path).toBe(body[field]);
    }
    // The three share their key and nothing else; nobody else sees any of it.
    for (const [path] of ask) expect(await lookUp(path, stranger), path).toEqual([404, expect.any(String)]);
    expect(await lookUp("/v1/operations?requestKey=lost-answer")).toEqual([404, "not-accepted"]);
  });
});

describe("a key", () => {
  it("of a run-now that looks like one of a backfill is not one", async () => {
    const id = await make();
    const run = await send("POST", `/v1/schedules/${id}/runs`, {}, { "idempotency-key": "backfill:k" });
    expect(run.status).toBe(201);
    const backfill = await send("POST", `/v1/schedules/${id}/backfill`, lastDay(), { "idempotency-key": "k" });
    expect(backfill.status, backfill.text).toBe(200);
    expect(await lookUp(`/v1/runs?scheduleId=${id}&requestKey=backfill:k`)).toMatchObject([{ runId: run.body.runId }]);
  });

  it("tells a stranger nothing of a schedule that is not his, whatever he sends with it", async () => {
    const id = await make();
    const key = { "idempotency-key": "guessed" };
    await send("POST", `/v1/schedules/${id}/runs`, {}, key);
    for (const body of [{}, { payload: { other: 1 } }]) {
      const answer = await send("POST", `/v1/schedules/${id}/runs`, body, key, stranger);
      expect([answer.status, answer.body.code]).toEqual([404, "not-found"]);
    }
  });
});
