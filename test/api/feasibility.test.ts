import { afterAll, beforeAll, expect, it } from "vitest";
import { announceWorker } from "../../src/authority/dispatch/presence.ts";
import { mintId } from "../../src/kernel/ids.ts";
import { sql } from "../../src/store/database.ts";
import { countDueInMinutes, readDurations } from "../../src/store/reads/capacity.ts";
import { call, REPORT, startTestServer, type TestServer } from "./server.ts";

/** Quotes for a tenant with more schedules than may be asked, and with a history of runs. */

const DUE_AT = Date.parse("2030-06-03T09:00:00Z");
const CROWD = 520;

let server: TestServer;
let owner: string;
let tenantId: string;
const rule = { kind: "cron", expression: "0 9 * * *", zone: "UTC" };

const SCHEDULES = sql(
  "test_crowd_schedules",
  `insert into schedule (id, tenant_id, name, created_at, updated_at)
   select id, $2::uuid, 'one of many', now(), now() from unnest($1::uuid[]) id`,
);
const REVISIONS = sql(
  "test_crowd_revisions",
  `insert into schedule_revision (schedule_id, revision, actor, created_at, definition, payload)
   select id, 1, 'test', now(), $2::json, '{}' from unnest($1::uuid[]) id`,
);
const CURSORS = sql(
  "test_crowd_cursors",
  `insert into schedule_cursor (schedule_id, tenant_id, revision, next_run_at, next_due_at, chain_started_at, tz_version,
                                parser_version)
   select id, $2::uuid, 1, $3::timestamptz, $3::timestamptz, now(), '2026f', 1 from unnest($1::uuid[]) id`,
);
const RUNS = sql(
  "test_recent_runs",
  `insert into run (id, scheduled_at, tenant_id, class, due_at, admitted_at, materialized_at, trigger, state, job,
                    started_at, finished_at, accepted_fence, attempts)
   select id, instant_of(id), $2::uuid, $3, instant_of(id), now(), now(), 'api', 'succeeded', '{}', now(),
          now() + n * interval '100 ms', 1, 1
     from unnest($1::uuid[]) with ordinality as k (id, n)`,
);

const quote = async (body: object = {}) => {
  const from = new Date(DUE_AT - 1000).toISOString();
  const answer = await call(server.url, "POST", "/v1/schedules/preview", {
    key: owner,
    body: { rule, class: "long", from, count: 1, ...body },
  });
  expect(answer.status, answer.text).toBe(200);
  return answer.body.feasibility as Record<string, unknown>;
};

beforeAll(async () => {
  server = await startTestServer();
  tenantId = await server.tenant("crowd");
  owner = await server.key(tenantId, "owner");
  await announceWorker(server.authority, {
    id: mintId(Date.now(), 1),
    name: "w",
    version: "0",
    slots: { long: { slots: 10, p95Ms: 0 } },
  });
  const ids = Array.from({ length: CROWD }, (_, k) => mintId(Date.now(), k));
  const definition = JSON.stringify({ rule, job: REPORT, class: "long" });
  await server.db.query(SCHEDULES, [ids, tenantId]);
  await server.db.query(REVISIONS, [ids, definition]);
  await server.db.query(CURSORS, [ids, tenantId, new Date(DUE_AT).toISOString()]);
});
afterAll(() => server?.close());

it("beyond 500 schedules the count is a lower bound, made of rules and of what is due", async () => {
  expect(await quote()).toMatchObject({
    verdict: "needs-window",
    // All that are due in that minute, though only 500 rules were asked, and the one previewed.
    expectedRuns: { value: CROWD + 1, capped: true },
    p95Ms: 600_000,
    lastStartsAfterMs: 52 * 600_000,
    basis: { expectedRuns: "part-of-active-schedules", p95Ms: "class-default", samples: 0 },
  });
  // Another day: no cursor knows of it, but the rules do.
  expect(await quote({ from: "2031-06-03T08:59:59Z" })).toMatchObject({ expectedRuns: { value: 501, capped: true } });
  const other = { ...rule, expression: "1 9 * * *" };
  expect(await quote({ rule: other })).toMatchObject({ expectedRuns: { value: 1 }, verdict: "within-objective" });
  expect(await quote({ class: "short" })).toMatchObject({ expectedRuns: { value: 1 }, verdict: "no-workers" });
});

it("counts cursors by class and leaves one out, of this tenant alone", async () => {
  const db = server.authority.db;
  const count = (class_: "long" | "short", tenant = tenantId) =>
    countDueInMinutes(db, tenant, class_, [DUE_AT, DUE_AT + 60_000], undefined);
  expect(await count("long")).toEqual(
    new Map([
      [DUE_AT, CROWD],
      [DUE_AT + 60_000, 0],
    ]),
  );
  expect((await count("short")).get(DUE_AT)).toBe(0);
  expect((await count("long", mintId(0, 0))).get(DUE_AT)).toBe(0);
});

it("the tenant's own runs of the last week say how long one takes", async () => {
  const ids = Array.from({ length: 40 }, (_, k) => mintId(Date.now() - 60_000 - k, k));
  await server.db.query(RUNS, [ids, tenantId, "long"]);
  await server.db.query(RUNS, [ids.map((_, k) => mintId(Date.now() - 50_000, k)), tenantId, "memory"]);
  expect((await readDurations(server.db, tenantId, "long")).sort((a, b) => a - b).slice(0, 2)).toEqual([100, 200]);
  // 38 of 40 are no longer than 3.8 s.
  expect(await quote()).toMatchObject({ p95Ms: 3800, basis: { p95Ms: "recent-runs", samples: 40 } });
});
