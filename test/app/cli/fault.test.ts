import { expect, test } from "vitest";
import { createGaugeReader } from "../../../src/loops/gauge-reader.ts";
import { sql } from "../../../src/store/database.ts";
import { call, REPORT, startTestServer } from "../../api/server.ts";
import { startNode, until } from "../../support/system.ts";
import { punctual } from "./punctual.ts";

const BREAK = sql(
  "test_break",
  `with s as (select id from schedule where key = $1),
        c as (update schedule_cursor set content = null where schedule_id = (select id from s))
   update schedule_revision set content = null, definition = jsonb_set(definition::jsonb, '{rule,zone}', to_jsonb($2::text))
    where schedule_id = (select id from s)`,
);
const DUE = sql(
  "test_due",
  `update schedule_cursor set next_run_at = date_trunc('minute', clock_timestamp()), next_due_at = date_trunc('minute', clock_timestamp())
    where schedule_id = (select id from schedule where key = $1)`,
);
const RETRY = sql(
  "test_retry",
  "update schedule_cursor set fault_retry_at = clock_timestamp() where fault is not null",
);

test("B27 a schedule whose zone the next release does not know is visible everywhere, and recovers with the release after", async ({
  onTestFinished,
}) => {
  const server = await startTestServer();
  onTestFinished(() => server.close());
  const tenantId = await server.tenant("acme");
  const key = await server.key(tenantId, "operator");
  for (const name of ["healthy", "lost"]) {
    const rule = { kind: "cron", expression: "* * * * *", zone: "Europe/Berlin" };
    const body = { key: name, name, rule, job: REPORT, payload: {} };
    expect(await call(server.url, "POST", "/v1/schedules", { key, body })).toMatchObject({ status: 201 });
  }
  const get = async (path: string) => (await call(server.url, "GET", `/v1/schedules${path}`, { key })).body;
  const names = async (filter: string) =>
    ((await get(`?${filter}`)) as { items: { name: string }[] }).items.map((one) => one.name);
  const release = () => startNode({ roles: ["scheduler"], url: server.databaseUrl });
  const cli = async (...args: string[]) =>
    (await punctual(["schedules", ...args, "--url", server.url, "--key", key])).out;
  const faults = async () => {
    await createGaugeReader({ authority: server.authority, classes: [] }).pass(new AbortController().signal);
    return (await server.metrics.faultySchedules.get()).values[0]?.value;
  };
  const check = async () => {
    const { out } = await punctual(["doctor", "--json"], { DATABASE_URL: server.databaseUrl });
    const checks = (JSON.parse(out) as { checks: { check: string; status: string }[] }).checks;
    return checks.find((one) => one.check === "every rule can be computed");
  };

  await server.db.query(BREAK, ["lost", "Mars/Olympus"]);
  // Before its instant has come nothing is wrong yet; people are shown that instant all the same.
  expect(await get("/key:lost")).toMatchObject({ fault: null, nextRun: { local: expect.stringContaining("[UTC]") } });
  for (const name of ["healthy", "lost"]) await server.db.query(DUE, [name]);
  const broken = await release();
  await until("it has a fault", async () => (await get("/key:lost")).fault !== null);
  await until(
    "the healthy one has moved on",
    async () => Date.parse((await get("/key:healthy")).nextRunAt as string) > Date.now(),
  );
  expect(await get("/key:lost")).toMatchObject({
    status: "active",
    nextRunAt: null,
    nextRun: null,
    fault: { message: expect.stringContaining("Mars/Olympus"), retryAt: expect.stringMatching(/^\d{4}-.*Z$/) },
  });
  expect(await names("fault=true")).toEqual(["lost"]);
  expect(await names("fault=false")).toEqual(["healthy"]);
  expect(await names("")).toEqual(["lost", "healthy"]);
  expect(await cli("list")).toMatch(/key:lost .*cannot be computed: zone "Mars\/Olympus"/);
  expect(await cli("list", "--fault")).not.toContain("healthy");
  expect(await cli("get", "key:lost")).toMatch(/tried again +\d{4}-/);
  expect(await faults()).toBe(1);
  expect(await check()).toMatchObject({
    status: "finding",
    rows: [{ fault: expect.stringContaining("Mars/Olympus") }],
  });
  await broken.stop();

  await server.db.query(BREAK, ["lost", "Europe/Berlin"]);
  await server.db.query(RETRY);
  const cured = await release();
  await until("it has recovered", async () => (await get("/key:lost")).fault === null);
  expect(await get("/key:lost")).toMatchObject({ status: "active", nextRunAt: expect.any(String) });
  expect(await faults()).toBe(0);
  expect(await check()).toMatchObject({ status: "ok" });
  await cured.stop();
});
