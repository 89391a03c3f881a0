import pg from "pg";
import { afterEach, beforeEach, expect, test } from "vitest";
import { systemClock } from "../../src/kernel/clock.ts";
import { mintId } from "../../src/kernel/ids.ts";
import { createLog, silentLog } from "../../src/kernel/log.ts";
import { createMetrics } from "../../src/kernel/metrics.ts";
import { createPartitionKeeper } from "../../src/loops/partition-keeper.ts";
import { createDatabase, type Database } from "../../src/store/database.ts";
import { planPartitions } from "../../src/store/partition-plan.ts";
import {
  analyzeOpeningPartitions,
  coverage,
  createPartitionUpkeep,
  ensurePartitions,
} from "../../src/store/partitions.ts";
import { createTestDatabase, type TestDatabase } from "../support/postgres.ts";

const DAY_MS = 86_400_000;
const WEDNESDAY_AT = Date.UTC(2027, 2, 10, 15);
const TENANT = mintId(0, 0);

let database: TestDatabase;
let db: Database;
let client: pg.Client;

beforeEach(async () => {
  database = await createTestDatabase();
  db = createDatabase({
    url: database.url,
    maxConnections: 3,
    applicationName: "t",
    clock: systemClock,
    log: silentLog,
  });
  client = new pg.Client(database.url);
  await client.connect();
});

afterEach(async () => {
  await client.end();
  await db.close();
  await database.drop();
});

/** Throws away the partitions of the migration, and moves the floor. */
async function startAt(floorAt: number): Promise<void> {
  await client.query(`do $$ declare name text; begin
    for name in select inhrelid::regclass::text from pg_inherits where inhparent in ('run'::regclass, 'attempt'::regclass) loop
      execute 'drop table ' || name;
    end loop; end $$`);
  await client.query(`update history_floor set floor_at = $1`, [new Date(floorAt)]);
}

async function partitionsOf(parent: string): Promise<string[]> {
  const { rows } = await client.query(
    `select c.relname::text || ' ' || pg_get_expr(relpartbound, c.oid) as line
     from pg_inherits join pg_class c on c.oid = inhrelid where inhparent = $1::regclass order by 1`,
    [parent],
  );
  return rows.map((row) => row.line);
}

async function insertRuns(count: number, at: number): Promise<void> {
  const ids = Array.from({ length: count }, () => mintId(at, 7));
  await client.query(
    `insert into run (id, scheduled_at, tenant_id, class, due_at, admitted_at, materialized_at, trigger, state, revision)
     select id, $2::timestamptz, $3, 'default', $2, $2, $2, 'schedule', 'open', 1 from unnest($1::uuid[]) id`,
    [ids, new Date(at), TENANT],
  );
}

test("a migrated database accepts every instant from last week to 30 days ahead", async () => {
  const nowAt = await createPartitionUpkeep(db, "week").databaseNow();
  expect(await coverage(db, { nowAt })).toBeGreaterThanOrEqual(30);
  const { rows } = await client.query<{ floor: Date }>("select floor_at as floor from history_floor");
  const floorAt = rows[0]!.floor.getTime();
  await insertRuns(1, floorAt);
  await insertRuns(1, Math.floor(nowAt) + 30 * DAY_MS);
  await expect(insertRuns(1, floorAt - 1)).rejects.toThrow(/no partition of relation/);
});

test("weeks begin on Monday in UTC, whatever the session's time zone", async () => {
  await startAt(Date.UTC(2027, 2, 1));
  await db.run(
    `alter role current_user in database "${new URL(database.url).pathname.slice(1)}" set timezone = 'Asia/Kolkata'`,
  );
  const kolkata = createDatabase({
    url: database.url,
    maxConnections: 1,
    applicationName: "t",
    clock: systemClock,
    log: silentLog,
  });
  const options = { nowAt: WEDNESDAY_AT, aheadDays: 3, width: "week" as const };
  expect((await ensurePartitions(kolkata, options)).created).toEqual([
    "run_20270301",
    "run_20270308",
    "attempt_20270301",
    "attempt_20270308",
  ]);
  expect(await ensurePartitions(kolkata, options)).toEqual({ created: [], postponed: [] });
  expect(await coverage(kolkata, { nowAt: WEDNESDAY_AT })).toBe((Date.UTC(2027, 2, 15) - WEDNESDAY_AT) / DAY_MS);
  await kolkata.close();
  expect(await partitionsOf("run")).toEqual([
    "run_20270301 FOR VALUES FROM ('2027-03-01 00:00:00+00') TO ('2027-03-08 00:00:00+00')",
    "run_20270308 FOR VALUES FROM ('2027-03-08 00:00:00+00') TO ('2027-03-15 00:00:00+00')",
  ]);
});

test("a change from weeks to days, and back, leaves no gap and no overlap", async () => {
  await startAt(Date.UTC(2027, 2, 1));
  await ensurePartitions(db, { nowAt: WEDNESDAY_AT, aheadDays: 3, width: "week" });
  await ensurePartitions(db, { nowAt: WEDNESDAY_AT, aheadDays: 7, width: "day" });
  await ensurePartitions(db, { nowAt: WEDNESDAY_AT, aheadDays: 14, width: "week" });
  expect((await partitionsOf("attempt")).map((line) => line.split(" ")[0])).toEqual([
    "attempt_20270301",
    "attempt_20270308",
    "attempt_20270315",
    "attempt_20270316",
    "attempt_20270317",
    "attempt_20270318",
    "attempt_20270322",
  ]);
  expect(await coverage(db, { nowAt: WEDNESDAY_AT })).toBeGreaterThan(14);
});

test("a plan fills a hole between partitions exactly, and starts with the floor's day", () => {
  const at = (day: number, hour = 0) => Date.UTC(2027, 2, day, hour);
  const covered = [{ fromAt: at(10), toAt: at(12) }];
  expect(planPartitions({ fromAt: at(9, 5), toAt: at(17) }, covered, "week")).toEqual([
    { fromAt: at(9), toAt: at(10) },
    { fromAt: at(12), toAt: at(15) },
    { fromAt: at(15), toAt: at(22) },
  ]);
  expect(planPartitions({ fromAt: at(10), toAt: at(11) }, covered, "day")).toEqual([]);
});

test("keepers that work at once make every partition once", async () => {
  await startAt(Date.UTC(2027, 2, 1));
  const options = { nowAt: WEDNESDAY_AT, aheadDays: 30, width: "week" as const };
  const reports = await Promise.all([1, 2, 3].map(() => ensurePartitions(db, options)));
  expect(reports.flatMap((report) => report.postponed)).toEqual([]);
  expect(await partitionsOf("run")).toHaveLength(6);
  expect(await partitionsOf("attempt")).toHaveLength(6);
});

test("a partition whose lock is not free waits for the next pass, and runs are written meanwhile", async () => {
  await startAt(Date.UTC(2027, 2, 8));
  await ensurePartitions(db, { nowAt: WEDNESDAY_AT, aheadDays: 1, width: "week" });
  await client.query("begin; lock table run in share update exclusive mode"); // a vacuum, an analyse
  const options = { nowAt: WEDNESDAY_AT, aheadDays: 6, width: "week" as const };
  expect(await ensurePartitions(db, options)).toEqual({ created: ["attempt_20270315"], postponed: ["run_20270315"] });
  await insertRuns(1, WEDNESDAY_AT);
  await client.query("commit");
  expect(await ensurePartitions(db, options)).toEqual({ created: ["run_20270315"], postponed: [] });
});

test("a partition is attached while a long transaction writes runs", async () => {
  await startAt(Date.UTC(2027, 2, 8));
  await ensurePartitions(db, { nowAt: WEDNESDAY_AT, aheadDays: 1, width: "week" });
  await client.query("begin");
  await insertRuns(3, WEDNESDAY_AT);
  const report = await ensurePartitions(db, { nowAt: WEDNESDAY_AT, aheadDays: 6, width: "week" });
  expect(report).toEqual({ created: ["run_20270315", "attempt_20270315"], postponed: [] });
  await client.query("rollback");
});

test("partitions carry the parent's indexes and checks, attached, and their own storage settings", async () => {
  const { rows } = await client.query(`
    select parent.relname::text as parent, bool_and('fillfactor=40' = any (child.reloptions)) as fill,
           bool_and((select count(*) from pg_index i join pg_inherits a on a.inhrelid = i.indexrelid where i.indrelid = child.oid)
             = (select count(*) from pg_index where indrelid = parent.oid)) as indexes,
           bool_and((select count(*) from pg_index where indrelid = child.oid)
             = (select count(*) from pg_index where indrelid = parent.oid)) as no_twins,
           bool_and((select count(*) from pg_constraint where conrelid = child.oid and contype = 'c')
             = (select count(*) from pg_constraint where conrelid = parent.oid and contype = 'c')) as checks
    from pg_inherits join pg_class parent on parent.oid = inhparent join pg_class child on child.oid = inhrelid
    where parent.relname in ('run', 'attempt') group by 1 order by 1`);
  expect(rows).toEqual([
    { parent: "attempt", fill: false, indexes: true, no_twins: true, checks: true },
    { parent: "run", fill: true, indexes: true, no_twins: true, checks: true },
  ]);
});

test("an opening partition is analysed when rows came to it, and again when it grew fourfold", async () => {
  await startAt(Date.UTC(2027, 2, 8));
  await ensurePartitions(db, { nowAt: WEDNESDAY_AT, aheadDays: 30, width: "week" });
  for (const name of await partitionsOf("run")) {
    await client.query(`alter table ${name.split(" ")[0]} set (autovacuum_enabled = off)`); // ours must do it
  }
  const analyze = () => analyzeOpeningPartitions(db, { nowAt: WEDNESDAY_AT });
  const estimate = async () =>
    (await client.query("select reltuples::int as rows from pg_class where relname = 'run_20270308'")).rows[0].rows;

  await client.query("analyze run"); // while empty: what plans must not be made from
  expect(await analyze()).toEqual([]);
  await insertRuns(200, WEDNESDAY_AT);
  expect(await analyze()).toEqual(["run_20270308"]);
  expect(await estimate()).toBe(200);
  await insertRuns(200, WEDNESDAY_AT);
  expect(await analyze()).toEqual([]);
  await insertRuns(1000, WEDNESDAY_AT);
  expect(await analyze()).toEqual(["run_20270308"]);
  expect(await estimate()).toBe(1400);
  await insertRuns(50, WEDNESDAY_AT + 7 * DAY_MS);
  expect(await analyze()).toEqual([]); // not yet open
});

test("a vacuum does not count as an analysis", async () => {
  await startAt(Date.UTC(2027, 2, 8));
  await ensurePartitions(db, { nowAt: WEDNESDAY_AT, aheadDays: 1, width: "week" });
  await client.query("alter table run_20270308 set (autovacuum_enabled = off)");
  await insertRuns(200, WEDNESDAY_AT);
  await client.query("vacuum run_20270308");
  expect(await analyzeOpeningPartitions(db, { nowAt: WEDNESDAY_AT })).toEqual(["run_20270308"]);
  expect(await analyzeOpeningPartitions(db, { nowAt: WEDNESDAY_AT })).toEqual([]);
});

test("the end of a run stays on its page", async () => {
  await startAt(Date.UTC(2027, 2, 8));
  await ensurePartitions(db, { nowAt: WEDNESDAY_AT, aheadDays: 1, width: "week" });
  await client.query("alter table run_20270308 set (autovacuum_enabled = off)");
  for (let batch = 0; batch < 20; batch++) await insertRuns(200, WEDNESDAY_AT + batch);
  const { rows: open } = await client.query<{ id: string }>("select id from run order by md5(id::text)");
  for (let done = 0; done < open.length; done += 100) {
    await client.query(
      `update run set state = 'succeeded', attempts = 1, accepted_fence = 1099511627777, started_at = now(), finished_at = now(),
         result_uri = 'file:///objects/0123456789abcdef0123456789abcdef/report.csv', result_sha256 = repeat('a', 64),
         result_size = 12345, result_media_type = 'text/csv'
       where id = any ($1)`,
      [open.slice(done, done + 100).map((row) => row.id)],
    );
  }
  const hot = async () => {
    const { rows } = await client.query(
      "select n_tup_upd::int as updates, n_tup_hot_upd::int as hot from pg_stat_all_tables where relname = 'run_20270308'",
    );
    return rows[0];
  };
  await client.query("select pg_stat_force_next_flush()");
  const { updates, hot: stayed } = await hot();
  expect(updates).toBe(4000);
  expect(stayed / updates).toBeGreaterThan(0.9);
});

test("the keeper creates what is missing and reports an alarm while less than 14 days are covered", async () => {
  await startAt(Date.UTC(2027, 2, 8));
  const lines: { level: string; msg: string; days?: number }[] = [];
  const log = createLog({
    level: "info",
    role: "t",
    destination: { write: (line) => void lines.push(JSON.parse(line)) },
  });
  const upkeep = { ...createPartitionUpkeep(db, "week"), databaseNow: async () => WEDNESDAY_AT };
  const refused = async () => Promise.reject(new Error("disk full"));

  await expect(
    createPartitionKeeper({ upkeep: { ...upkeep, ensure: refused }, log, metrics: createMetrics() }).pass(
      AbortSignal.any([]),
    ),
  ).rejects.toThrow("disk full");
  expect(lines.map((line) => [line.level, line.days])).toEqual([["error", 0]]);
  lines.length = 0;
  const keeper = createPartitionKeeper({ upkeep, log, metrics: createMetrics() });
  expect(await keeper.pass(AbortSignal.any([]))).toEqual({ did: 10, more: false });
  expect(lines.map((line) => line.msg)).toEqual(["partitions were created"]);
  expect(await keeper.pass(AbortSignal.any([]))).toEqual({ did: 0, more: false });
  expect(lines).toHaveLength(1);
});
