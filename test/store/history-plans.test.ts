import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { systemClock } from "../../src/kernel/clock.ts";
import { silentLog } from "../../src/kernel/log.ts";
import { createDatabase, type Database, type Statement, sql } from "../../src/store/database.ts";
import { ensurePartitions } from "../../src/store/partitions.ts";
import { listRuns, type RunPage } from "../../src/store/reads/history.ts";
import { readRollups } from "../../src/store/reads/rollups.ts";
import { createReaders } from "../../src/store/reads/wall/readers.ts";
import { createWorld, type World } from "../support/world.ts";

const DAY_MS = 86_400_000;
const WALK_ROWS = 500;
const BOUND = Date.UTC(2100, 0);

let world: World;
let db: Database;
let scheduleId: string;
/** Where the newest run stands: the 35 days before have partitions of a day. */
let newestAt: number;
beforeAll(async () => {
  world = await createWorld();
  // One connection, so that what is prepared on it is found again.
  db = createDatabase({
    url: world.url,
    maxConnections: 1,
    applicationName: "plans",
    clock: systemClock,
    log: silentLog,
  });
  scheduleId = await world.newSchedule();
  const lower = "update history_floor set floor_at = floor_at - interval '35 days' returning floor_at";
  newestAt = (await world.admin.query(lower)).rows[0].floor_at.getTime() + 34 * DAY_MS;
  await ensurePartitions(world.db, { nowAt: Date.now(), aheadDays: 7, width: "day" });
  const { rows } = await world.admin.query(
    "select count(*)::int as n from pg_inherits where inhparent = 'run'::regclass",
  );
  expect(rows[0].n).toBeGreaterThanOrEqual(37);
});
afterAll(async () => {
  await db?.close();
  await world?.close();
});

let prepared = 0;

/** The plan that is kept for a statement, not one made for these values; with what it did. */
async function planOf(read: (db: Pick<Database, "queryWithin">) => Promise<unknown>): Promise<string> {
  const plans: string[] = [];
  await read({
    async queryWithin<Row>(
      timeoutMs: number,
      { text, ofNoTenant }: Statement,
      values: readonly unknown[],
    ): Promise<Row[]> {
      const name = `kept_${++prepared}`;
      const given = values.map((value) =>
        value === null
          ? "null"
          : typeof value === "number"
            ? String(value)
            : `'${Array.isArray(value) ? `{${value.join()}}` : value}'`,
      );
      await db.queryWithin(timeoutMs, sql(`test_prepare_${name}`, `prepare ${name} as ${text}`), []);
      const explain = `explain (analyze, costs off, timing off, buffers off, summary off) execute ${name}${given.length > 0 ? `(${given.join()})` : ""}`;
      const lines = await db.queryWithin<{ "QUERY PLAN": string }>(timeoutMs, sql(`test_explain_${name}`, explain), []);
      const plan = lines.map((line) => line["QUERY PLAN"]).join("\n");
      if (!ofNoTenant) {
        const behind = await planOfReader(timeoutMs, text, explain);
        expect(indexesOf(behind), "behind the wall").toEqual(indexesOf(plan));
      }
      plans.push(plan);
      return [];
    },
  });
  return plans.join("\n");
}

/** The same by the role that sees one tenant's rows: its policies are to change no plan. */
async function planOfReader(timeoutMs: number, text: string, explain: string): Promise<string> {
  const reader = createReaders({ db, clock: systemClock, log: silentLog })(world.tenantId);
  const name = `kept_${++prepared}`;
  await reader.queryWithin(timeoutMs, sql(`test_prepare_${name}`, `prepare ${name} as ${text}`), []);
  const asked = explain.replace(/execute kept_\d+/, `execute ${name}`);
  const lines = await reader.queryWithin<{ "QUERY PLAN": string }>(timeoutMs, sql(`test_explain_${name}`, asked), []);
  return lines.map((line) => line["QUERY PLAN"]).join("\n");
}

/** Which index each table is read by, in the order of the plan; a policy's look at a parent is no part of it. */
function indexesOf(plan: string): string[] {
  return [...plan.matchAll(/(?:Index (?:Only )?Scan(?: Backward)? using \S+|\w+ Scan) on \S+(?: \S+)?/g)]
    .map(([node]) => node)
    .filter((node) => !/ parent(_\d+)?$/.test(node));
}

/** Rows that the node on `table` read, in all its loops and partitions. */
function rowsRead(plan: string, table: string): number {
  const node = new RegExp(
    `(?:Index (?:Only )?Scan(?: Backward)? using \\S+ on|Seq Scan on) ${table}\\S*.*?rows=([\\d.]+) loops=(\\d+)`,
    "g",
  );
  return [...plan.matchAll(node)].reduce((sum, [, rows, loops]) => sum + Number(rows) * Number(loops), 0);
}

const page = (more: Partial<RunPage>): RunPage => ({ order: "newest", boundAt: BOUND, limit: 50, ...more });
const list = (more: Partial<RunPage>) => planOf((at) => listRuns(at, world.tenantId, page(more), WALK_ROWS));

const WALKS: [string, () => Partial<RunPage>][] = [
  ["a tenant, newest first", () => ({})],
  ["a tenant, oldest first", () => ({ order: "oldest" })],
  ["a schedule, newest first", () => ({ scheduleId })],
  ["a schedule, oldest first", () => ({ scheduleId, order: "oldest" })],
];

describe.each([["empty"], ["full"]] as const)("on 37 %s partitions", (how) => {
  beforeAll(async () => {
    if (how === "empty") return;
    await world.admin.query(
      `insert into run (id, scheduled_at, schedule_id, tenant_id, class, due_at, admitted_at, materialized_at, revision, trigger,
                        state, finished_at, accepted_fence)
       select id, instant_of(id), case when n % 2 = 0 then $1::uuid end, case when n % 4 < 3 then $2::uuid else $1::uuid end, 'short',
              instant_of(id), now(), now(), 1, 'schedule', 'succeeded', now(), 1
         from (select n, (lpad(to_hex($3::bigint - n::bigint * 51840), 12, '0') || '80008' || lpad(to_hex(n), 15, '0'))::uuid as id
                 from generate_series(1, 50000) n) made`,
      [scheduleId, world.tenantId, newestAt],
    );
    await world.admin.query(
      `insert into live_run (id, scheduled_at, schedule_id, tenant_id, class, lane, revision, state, guard, not_before, due_at,
                             admitted_at, budget_from)
       select id, scheduled_at, schedule_id, tenant_id, class, 1, 1, 'queued', id, due_at, due_at, due_at, due_at from run
        order by scheduled_at desc limit 20000`,
    );
    await world.admin.query(
      `insert into rollup select case when c = 1 then $1::uuid else gen_random_uuid() end, 1, class, at, 1, 1, 0, 0, 0, 0, array_fill(0, array[17])
         from generate_series(1, 20) c, unnest(array['short', 'long', 'memory']) class,
              generate_series(date_trunc('hour', now()) - interval '10 hours', now(), '1 minute') at`,
      [world.tenantId],
    );
    await world.admin.query("analyze");
  });

  it.each(WALKS)("a page of %s is read in the order of its index, and no further than it needs", async (_, more) => {
    const plan = await list(more());
    expect(plan).not.toMatch(/Sort|Seq Scan|Hash|Bitmap/);
    const own = more().scheduleId === undefined ? "tenant_id" : "schedule_id";
    expect(plan).toMatch(new RegExp(`using run_\\d+_${own}_scheduled_at_id_idx`));
    expect(plan, "no other").not.toMatch(new RegExp(`using run_\\d+_(?!${own}_scheduled_at_id_idx)`));
    if (how === "full") expect(rowsRead(plan, "run_")).toBeLessThan(60);
  });

  it.each(WALKS)("a page of %s by a filter that nothing matches reads so many rows, and no join", async (_, more) => {
    const plan = await list({ ...more(), trigger: "manual" });
    expect(plan).not.toMatch(/Sort|Seq Scan|Hash|Bitmap/);
    if (how === "full") {
      expect(rowsRead(plan, "run_")).toBe(WALK_ROWS);
      // The end of the walk alone is joined, to be told.
      expect(rowsRead(plan, "schedule_revision")).toBeLessThanOrEqual(1);
    }
  });

  it("a page goes on at its place, and opens no partition before it", async () => {
    const after = { scheduledAt: newestAt - 10 * DAY_MS, id: "01a22a69-0000-8000-8000-000000000001" };
    const plan = await list({ after });
    expect(Number(/Subplans Removed: (\d+)/.exec(plan)?.[1])).toBeGreaterThanOrEqual(15);
    if (how === "full") expect(rowsRead(plan, "run_")).toBeLessThan(60);
  });

  it.each(WALKS)("what is running of %s is found in the small table, so many rows a class at most", async (_, more) => {
    const plan = await list({ ...more(), state: "running" });
    expect(plan).not.toMatch(/Seq Scan|Hash|Bitmap/);
    expect(plan).toMatch(/using live_run_of_(class|schedule) on live_run/);
    // Rows that share the last instant are read, to be put in order.
    expect(rowsRead(plan, "live_run")).toBeLessThanOrEqual(3 * (WALK_ROWS + 10));
  });

  it("statistics are read from rollups by their key, and runs are not looked at", async () => {
    const toAt = Math.ceil(Date.now() / 3_600_000) * 3_600_000;
    const period = { classes: ["short", "long"], resolution: "minute", fromAt: toAt - 7_200_000, toAt } as const;
    const plan = await planOf((at) => readRollups(at, world.tenantId, period, 0));
    expect(plan).toMatch(/using rollup_pkey on rollup/);
    expect(plan).toMatch(/using rollup_delta_age on rollup_delta/);
    expect(plan).not.toMatch(/Seq Scan|\brun/);
    if (how === "full") expect(rowsRead(plan, "rollup")).toBeLessThanOrEqual(240);
  });
});
