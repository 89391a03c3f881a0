import { afterAll, beforeAll, expect, test } from "vitest";
import type { RunReader } from "../../src/handlers/run-reader.ts";
import { systemClock } from "../../src/kernel/clock.ts";
import { mintId, type Uuid } from "../../src/kernel/ids.ts";
import { silentLog } from "../../src/kernel/log.ts";
import { createDatabase, type Database, sql } from "../../src/store/database.ts";
import { ensurePartitions } from "../../src/store/partitions.ts";
import { type RunSummary, runsBetween } from "../../src/store/reads/run-summary.ts";
import { createTestDatabase, type TestDatabase } from "../support/postgres.ts";

const DAY_MS = 86_400_000;
const NOON_AT = Date.UTC(2027, 2, 10, 12);
const MINE = mintId(0, 0);
const OTHERS = mintId(0, 0);
const SCHEDULE = mintId(NOON_AT - DAY_MS, 9);

let database: TestDatabase;
let db: Database;

beforeAll(async () => {
  database = await createTestDatabase();
  db = createDatabase({
    url: database.url,
    maxConnections: 2,
    applicationName: "t",
    clock: systemClock,
    log: silentLog,
  });
  await ensurePartitions(db, { nowAt: NOON_AT, aheadDays: 30, width: "week" });
  await db.run(`insert into schedule (id, tenant_id, name, created_at, updated_at)
    values ('${SCHEDULE}', '${MINE}', '<b>Daily</b> 📈', '2027-03-01Z', '2027-03-01Z')`);
});
afterAll(async () => {
  await db.close();
  await database.drop();
});

const INSERT = sql(
  "test_insert_runs",
  `insert into run (id, scheduled_at, schedule_id, tenant_id, class, due_at, admitted_at, materialized_at, revision,
                    trigger, state, finished_at, started_at, accepted_fence, attempts)
   select id, instant_of(id), $2::uuid, $3::uuid, 'short', instant_of(id), now(), now(), 1, 'schedule', $4,
          case when $4 <> 'open' then instant_of(id) + interval '2 seconds' end,
          case when $4 <> 'open' then instant_of(id) + interval '1.5 milliseconds' end,
          case when $4 = 'succeeded' then 1 end, 1
     from unnest($1::text[]::uuid[]) id`,
);

async function given(tenant: Uuid, ids: readonly Uuid[], state = "succeeded", scheduleId: Uuid | null = SCHEDULE) {
  await db.query(INSERT, [ids, scheduleId, tenant, state]);
}

async function read(fromAt: number, toAt: number, pageRows?: number): Promise<{ pages: number[]; rows: RunSummary[] }> {
  const pages: number[] = [];
  const rows: RunSummary[] = [];
  for await (const page of runsBetween(db, MINE, fromAt, toAt, pageRows)) {
    pages.push(page.length);
    rows.push(...page);
  }
  return { pages, rows };
}

test("a tenant's runs of a period come once each, oldest first, whatever the page size and however many share an instant", async () => {
  const at = NOON_AT + DAY_MS;
  const ids = Array.from({ length: 40 }, (_, i) => mintId(at + Math.floor(i / 10), i)).sort();
  await given(MINE, ids);
  await given(MINE, [mintId(at - 1, 0), mintId(at + 4, 0)]); // just outside
  await given(OTHERS, [mintId(at + 1, 0)]);
  for (const pageRows of [1, 3, 10, 40, 1000]) {
    const { pages, rows } = await read(at, at + 4, pageRows);
    expect(rows.map((row) => row.id)).toEqual(ids);
    expect(Math.max(...pages)).toBeLessThanOrEqual(pageRows);
  }
});

test("a period may cross partitions", async () => {
  const ids = [0, 7, 14, 21].map((days) => mintId(NOON_AT + days * DAY_MS + 1, 3));
  await given(MINE, ids);
  const { rows } = await read(NOON_AT, NOON_AT + 22 * DAY_MS, 2);
  expect(rows.map((row) => row.id)).toEqual(expect.arrayContaining(ids));
});

test("an ended run is told by its history, an open one by where it stands now", async () => {
  const at = NOON_AT + 2 * DAY_MS;
  const [ended, running, adHoc] = [mintId(at, 1), mintId(at + 1, 1), mintId(at + 2, 1)];
  await given(MINE, [ended]);
  await given(MINE, [running], "open");
  await given(MINE, [adHoc], "open", null);
  await db.run(`insert into live_run (id, scheduled_at, tenant_id, class, lane, state, guard, not_before, due_at, admitted_at,
      budget_from, started_at, attempt, fence, claim_id, lease_until, deadline_at)
    values ('${running}', instant_of('${running}'), '${MINE}', 'short', 1, 'running', '${running}', now(), now(), now(), now(),
      instant_of('${running}') + interval '40 milliseconds', 2, 7, '${running}', now(), now())`);
  const { rows } = await read(at, at + 3);
  expect(rows).toEqual([
    {
      id: ended,
      scheduleId: SCHEDULE,
      scheduleName: "<b>Daily</b> 📈",
      class: "short",
      trigger: "schedule",
      state: "succeeded",
      skipReason: null,
      attempts: 1,
      scheduledAt: at,
      dueAt: at,
      startedAt: at + 1.5,
      finishedAt: at + 2000,
      resultSize: null,
      errorCode: null,
      errorMessage: null,
    },
    expect.objectContaining({ id: running, state: "running", attempts: 2, startedAt: at + 41, finishedAt: null }),
    expect.objectContaining({ id: adHoc, scheduleId: null, scheduleName: null, state: "queued", startedAt: null }),
  ]);
});

test("it is what a job's reader needs", async () => {
  const reader: RunReader = { runsBetween: (...args) => runsBetween(db, ...args) };
  const pages = reader.runsBetween(OTHERS, NOON_AT - DAY_MS, NOON_AT - DAY_MS + 1)[Symbol.asyncIterator]();
  expect(await pages.next()).toEqual({ done: true, value: undefined });
});

test("a page of a long history is read from the index, in order, and opens only the period's partitions", async () => {
  const at = NOON_AT + 9 * DAY_MS;
  const tenants = Array.from({ length: 20 }, (_, i) => (i === 0 ? MINE : mintId(0, i)));
  for (const tenant of tenants)
    await given(
      tenant,
      Array.from({ length: 1000 }, (_, i) => mintId(at + i * 20, 5)),
    );
  await db.run("analyze");
  const seen: string[] = [];
  const explaining: Pick<Database, "transact"> = {
    transact: (options, work) =>
      db.transact(options, (tx) =>
        work({
          ...tx,
          // The plan that is kept for the statement, not one made for these values.
          async query({ text }, values = []) {
            await tx.query(sql("test_prepare", `prepare test_page as ${text}`));
            const given = values.map((value) => (typeof value === "number" ? value : `'${value}'`)).join();
            const explain = `explain (analyze, costs off, timing off, buffers off) execute test_page(${given})`;
            const plan = await tx.query<{ "QUERY PLAN": string }>(sql("test_explain", explain));
            seen.push(plan.map((line) => line["QUERY PLAN"]).join("\n"));
            return [];
          },
        }),
      ),
  };
  await runsBetween(explaining, MINE, at, at + 20_000, 50).next();
  expect(seen[0]).toMatch(/Index Scan Backward using run_\d+_tenant_id_\S+ on run_/);
  expect(seen[0]).not.toMatch(/Sort|Seq Scan/);
  expect(seen[0]).toMatch(/Subplans Removed/);
  expect(seen[0]!.match(/ on run_\d+ /g)).toHaveLength(1);
  expect(seen[0]).toMatch(/Index Scan using live_run_pkey on live_run/);
  expect(seen[0]).toMatch(/Index Scan using schedule_\w+ on schedule/);
});
