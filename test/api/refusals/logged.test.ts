import { afterAll, beforeAll, expect, it } from "vitest";
import { showId } from "../../../src/kernel/ids.ts";
import { createLog } from "../../../src/kernel/log.ts";
import { call, REPORT, startTestServer, type TestServer } from "../server.ts";

/** Who is asked by a customer why something was refused finds it in the log. */

const lines: string[] = [];
const log = createLog({ level: "info", role: "api", destination: { write: (line: string) => void lines.push(line) } });
let server: TestServer;
beforeAll(async () => {
  server = await startTestServer({ log });
});
afterAll(() => server?.close());

/** What was logged of the call that `ask` makes. */
async function loggedOf(ask: () => Promise<{ status: number; headers: Headers }>) {
  lines.length = 0;
  const { status, headers } = await ask();
  const refusals = lines.map((line) => JSON.parse(line)).filter(({ msg }) => msg === "a call was refused");
  expect(refusals.every(({ requestId }) => requestId === headers.get("x-request-id"))).toBe(true);
  return { status, refusals };
}

it("a refused call is logged with its tenant, who called, and the quota that it met", async () => {
  const tenantId = await server.tenant("acme");
  const [admin, viewer] = [await server.key(tenantId, "admin"), await server.key(tenantId, "viewer")];
  await call(server.url, "PUT", "/v1/quotas", { key: admin, body: { schedules: 0 } });
  const rule = { kind: "cron", expression: "0 9 * * *", zone: "UTC" };
  const create = (key: string) => () =>
    call(server.url, "POST", "/v1/schedules", { key, body: { name: "s", rule, job: REPORT } });
  const tenant = showId("ten", tenantId);
  const actor = expect.stringMatching(/^key_/);

  const full = await loggedOf(create(admin));
  expect(full).toMatchObject({
    status: 429,
    refusals: [{ code: "quota-exceeded", quota: "schedules", tenant, actor }],
  });
  expect(await loggedOf(create(viewer))).toMatchObject({
    status: 403,
    refusals: [{ code: "forbidden", tenant, actor, path: "/v1/schedules" }],
  });
  const stranger = await loggedOf(create("pk_000000000000_stranger"));
  expect(stranger).toMatchObject({ status: 401, refusals: [{ code: "unauthenticated" }] });
  expect(stranger.refusals[0]).not.toHaveProperty("tenant");
});

it("a call whose request is at fault is not: that is between the two", async () => {
  const key = await server.key(await server.tenant("careless"), "owner");
  const refused = await loggedOf(() => call(server.url, "POST", "/v1/schedules", { key, body: { name: "" } }));
  expect(refused).toEqual({ status: 400, refusals: [] });
});
