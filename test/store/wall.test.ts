import pg from "pg";
import { afterAll, beforeAll, beforeEach, describe, expect, inject, it } from "vitest";
import { systemClock } from "../../src/kernel/clock.ts";
import { silentLog } from "../../src/kernel/log.ts";
import { createDatabase, type Database, sql } from "../../src/store/database.ts";
import { migrateToLatest } from "../../src/store/migrate.ts";
import { ensurePartitions } from "../../src/store/partitions.ts";
import { raiseWall } from "../../src/store/raise-wall.ts";
import { findSchedule, listSchedules } from "../../src/store/reads/schedules.ts";
import { readWatermark } from "../../src/store/reads/status.ts";
import { findWallGaps } from "../../src/store/reads/wall/gaps.ts";
import { createReaders, type Readers } from "../../src/store/reads/wall/readers.ts";
import { OPENINGS, READER } from "../../src/store/reads/wall/tables.ts";
import { createWorld, type World } from "../support/world.ts";
import { startTransactionPooler } from "./transaction-pooler.ts";
import { AT, sow } from "./wall-rows.ts";

let world: World;
let readers: Readers;
let [ours, theirs] = ["", ""];
let [ourSchedule, theirSchedule] = ["", ""];
const deps = { clock: systemClock, log: silentLog };

beforeAll(async () => {
  world = await createWorld();
  readers = createReaders({ db: world.db, ...deps });
  [ours, theirs] = [world.tenantId, await world.newTenant("the others")];
  ourSchedule = await world.newSchedule({ key: "same" });
  theirSchedule = await world.newSchedule({ tenantId: theirs, key: "same" });
  await world.admin.query("update history_floor set floor_at = $1::timestamptz - interval '1 day'", [AT]);
  await ensurePartitions(world.db, { nowAt: Date.parse(AT), aheadDays: 7, width: "week" });
  await sow(world.admin, ours, ourSchedule, 1);
  await sow(world.admin, theirs, theirSchedule, 2);
});
afterAll(() => world?.close());

let asked = 0;
const ask = <Row = Record<string, unknown>>(tenantId: string, text: string, values: readonly unknown[] = []) =>
  readers(tenantId).query<Row>(sql(`wall_${++asked}`, text), values);
const readable = (table: string) =>
  world.admin
    .query<{ name: string }>(
      `select attname::text as name from pg_attribute where attrelid = $1::regclass and attnum > 0 and not attisdropped
          and has_column_privilege($2, attrelid, attnum, 'select') order by attnum`,
      [table, READER],
    )
    .then(({ rows }) => rows.map((row) => row.name));

describe("every table", () => {
  it("that the reader may read has row-level security and a policy, or is open for a reason", async () => {
    const { rows } = await world.admin.query<{ name: string; guarded: boolean }>(
      `select c.relname::text as name, c.relrowsecurity and exists (
                select from pg_policy p where p.polrelid = c.oid and not p.polpermissive and p.polcmd = 'r') as guarded
         from pg_class c
        where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p', 'v', 'm', 'f')
          and has_any_column_privilege($1, c.oid, 'select')`,
      [READER],
    );
    const here = rows.map((row) => row.name).toSorted();
    expect(here).toEqual(Object.keys(OPENINGS).toSorted());
    for (const { name, guarded } of rows) {
      const { rows: policy, why } = OPENINGS[name]!;
      expect(guarded, name).toBe(policy !== undefined);
      expect((policy === undefined) !== (why === undefined), name).toBe(true);
    }
  });

  it("with a tenant_id that the reader may read shows no other tenant's", async () => {
    const { rows } = await world.admin.query<{ name: string }>(
      `select c.relname::text as name from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attname = 'tenant_id'
        where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition`,
    );
    const unguarded = rows.filter(({ name }) => OPENINGS[name] !== undefined && OPENINGS[name].rows === undefined);
    expect(unguarded).toEqual([]);
  });
});

describe("a query that forgets its tenant", () => {
  it.each(Object.keys(OPENINGS).filter((table) => OPENINGS[table]!.rows !== undefined))(
    "finds the caller's rows of %s, and no others",
    async (table) => {
      const columns = (await readable(table)).map((name) => `${table}."${name}"`).join();
      const query = `select row_to_json(x)::text as row from (select ${columns} from ${table}) x order by 1`;
      const of = async (tenantId: string) => (await ask<{ row: string }>(tenantId, query)).map((one) => one.row);
      const { rows: all } = await world.admin.query<{ row: string }>(query);
      const [mine, yours] = [await of(ours), await of(theirs)];
      expect(mine.length, `no row of ${table}: sow one in wall-rows.ts`).toBeGreaterThan(0);
      expect(yours.length, table).toBe(mine.length);
      expect(mine.filter((row) => yours.includes(row))).toEqual([]);
      expect([...mine, ...yours].toSorted()).toEqual(all.map((one) => one.row).toSorted());
      expect(
        mine.some((row) => row.includes(theirs)),
        table,
      ).toBe(false);
    },
  );

  it("finds nothing where no tenant is set, before and after one was", async () => {
    const nobody = world.db.within(`set local role ${READER}`);
    for (let again = 0; again < 2; again++) {
      for (const table of Object.keys(OPENINGS).filter((one) => OPENINGS[one]!.rows !== undefined)) {
        const [row] = await nobody.query<{ n: number }>(
          sql(`nobody_${table}`, `select count(*)::int as n from ${table}`),
        );
        expect(row!.n, table).toBe(0);
        await ask(ours, `select count(*) from ${table}`);
      }
    }
  });

  it("finds nothing of another tenant by its id either: with a WHERE for the wrong tenant, reads answer nothing", async () => {
    const reads = readers(ours);
    expect(await findSchedule(world.db, theirs, theirSchedule)).toMatchObject({ id: theirSchedule });
    expect(await findSchedule(reads, theirs, theirSchedule)).toBeUndefined();
    expect(await listSchedules(reads, theirs, { limit: 10 })).toEqual([]);
    expect((await listSchedules(reads, ours, { limit: 10 })).map((one) => one.id)).toEqual([ourSchedule]);
  });

  it("keeps tenants apart that share connections, whatever way they read", async () => {
    const text = "select distinct tenant_id from schedule";
    const see = sql("wall_shared", text);
    const ways = [
      (tenantId: string) => readers(tenantId).query<{ tenant_id: string }>(see),
      (tenantId: string) => readers(tenantId).queryWithin<{ tenant_id: string }>(5_000, see, []),
      (tenantId: string) =>
        readers(tenantId).transact({ deadlineMs: 5_000, lockTimeoutMs: 0 }, (tx) =>
          tx.query<{ tenant_id: string }>(see),
        ),
    ];
    const asks = Array.from({ length: 300 }, (_, n) => ({ tenantId: n % 2 === 0 ? ours : theirs, way: ways[n % 3]! }));
    const seen = await Promise.all(asks.map(({ tenantId, way }) => way(tenantId)));
    expect(seen).toEqual(asks.map(({ tenantId }) => [{ tenant_id: tenantId }]));
    // What is asked as ourselves afterwards, on the same connections, sees all.
    const rows = await Promise.all(Array.from({ length: 20 }, () => world.db.query(see)));
    for (const all of rows) expect(all).toHaveLength(2);
  });

  it("keeps tenants apart behind a pooler that gives every transaction another session, and leaves nothing there", async () => {
    const pooler = await startTransactionPooler(world.url, { keepsStatements: true });
    const db = createDatabase({ url: pooler.url, maxConnections: 4, applicationName: "t", ...deps });
    const behind = createReaders({ db, ...deps });
    const see = sql("wall_pooled", "select distinct tenant_id from schedule");
    try {
      const tenants = Array.from({ length: 60 }, (_, n) => (n % 2 === 0 ? ours : theirs));
      const seen = await Promise.all(tenants.map((tenantId) => behind(tenantId).query(see)));
      expect(seen).toEqual(tenants.map((tenant_id) => [{ tenant_id }]));
      expect((await pooler.left()).filter((one) => /role|punctual/.test(one))).toEqual([]);
    } finally {
      await db.close();
      await pooler.stop();
    }
  });
});

describe("the reader", () => {
  it.each([
    ["insert", "insert into tenant (id, name) values (gen_random_uuid(), 'x')"],
    ["update", "update schedule set name = 'x'"],
    ["delete", "delete from audit_event"],
    ["truncate", "truncate usage"],
    ["create", "create table x (y int)"],
    ["lock rows", "select * from schedule for update"],
    ["read keys' hashes", "select secret_hash from api_key"],
    ["read what is not opened to it", "select * from outbox"],
  ])("may not %s", async (_what, text) => {
    await expect(ask(ours, text)).rejects.toThrow(/permission denied|read-only transaction/);
    const behind = world.db.within(
      `set transaction read write;set local role ${READER};set local punctual.tenant = '${ours}'`,
    );
    await expect(behind.query(sql(`wall_write_${++asked}`, text))).rejects.toThrow(/permission denied/);
  });

  it("reaches partitions through their parents only, also those that are made later", async () => {
    await ensurePartitions(world.db, { nowAt: Date.parse(AT) + 60 * 86_400_000, aheadDays: 7, width: "week" });
    const { rows } = await world.admin.query<{ name: string }>(
      "select inhrelid::regclass::text as name from pg_inherits where inhparent in ('run'::regclass, 'attempt'::regclass)",
    );
    expect(rows.length).toBeGreaterThan(4);
    for (const { name } of rows)
      await expect(ask(ours, `select * from ${name}`), name).rejects.toThrow("permission denied");
  });

  it("sees how far history is complete as we do: whose transactions it cannot see, it would overlook", async () => {
    const stranger = await world.stranger();
    const [row] = await stranger.query(
      "select pg_current_xact_id(), extract(epoch from xact_start) * 1000 as at from pg_stat_activity where pid = pg_backend_pid()",
    );
    const beganAt = Number(row!.at);
    // By then the margin of the watermark is past it.
    await world.passes(beganAt + 6_000);
    expect(await readWatermark(readers(ours))).toBeLessThan(beganAt);
    await stranger.rollback();
  });

  it("may not be entered halfway: where the role is refused, the statement is, too", async () => {
    const nobody = world.db.within("set local role no_such_role");
    const all = sql("wall_refused", "select * from schedule");
    await expect(nobody.query(all)).rejects.toThrow("no_such_role");
    await expect(nobody.queryWithin(1_000, all, [])).rejects.toThrow("no_such_role");
    expect(await world.db.query(all)).toHaveLength(2);
  });
});

describe("a wall that does not stand", () => {
  it("is found, reads go on without it, and raising it again mends it", async () => {
    const warned: unknown[] = [];
    const log = { ...silentLog, warn: (details: unknown) => warned.push(details) } as never;
    const see = sql("wall_down", "select count(*)::int as n from schedule");
    for (const breakIt of [
      "alter table schedule disable row level security",
      "drop policy reader_of_a_tenant on schedule",
      "drop policy everybody on schedule",
      "comment on policy reader_of_a_tenant on schedule is 'an older one'",
      `revoke select on schedule from ${READER}`,
    ]) {
      await world.admin.query(breakIt);
      expect(await findWallGaps(world.db), breakIt).toMatchObject({ role: "there", tables: ["schedule"] });
      expect(await createReaders({ db: world.db, clock: systemClock, log })(ours).query(see)).toEqual([{ n: 2 }]);
      expect(warned.pop()).toEqual({ role: "there", tables: ["schedule"] });
      expect(await raiseWall(world.db)).toBe(true);
      expect(await findWallGaps(world.db)).toMatchObject({ role: "there", tables: [] });
      expect(await createReaders({ db: world.db, clock: systemClock, log })(ours).query(see)).toEqual([{ n: 1 }]);
    }
    expect(warned).toEqual([]);
  });

  it("sees a column that is new, and one that must not be read", async () => {
    await world.admin.query("alter table api_key add column novel text");
    expect((await findWallGaps(world.db)).tables).toEqual(["api_key"]);
    expect(await raiseWall(world.db)).toBe(true);
    await world.admin.query(`grant select on api_key to ${READER}`);
    expect((await findWallGaps(world.db)).tables).toEqual(["api_key"]);
    expect(await raiseWall(world.db)).toBe(true);
    await world.admin.query("alter table api_key drop column novel");
    expect((await findWallGaps(world.db)).tables).toEqual([]);
  });
});

describe("an installation whose role is no superuser", () => {
  const databases: Database[] = [];
  let owner = "";
  let url = "";
  beforeEach(async () => {
    owner = `owner_${Math.random().toString(36).slice(2, 10)}`;
    await world.admin.query(`create role ${owner} login password 'x'`);
    const superuser = new pg.Client(inject("postgresUrl"));
    await superuser.connect();
    await superuser.query(`create database db_${owner} owner ${owner}`);
    await superuser.end();
    const address = new URL(world.url);
    address.pathname = `/db_${owner}`;
    address.username = owner;
    address.password = "x";
    url = address.href;
  });
  afterAll(async () => {
    await Promise.all(databases.map((db) => db.close()));
  });
  const open = () => {
    const db = createDatabase({ url, maxConnections: 2, applicationName: "t", ...deps });
    databases.push(db);
    return db;
  };

  it("goes on where it may not take the reader's role, says so, and has its wall once it may", async () => {
    await migrateToLatest(url);
    const db = open();
    expect(await findWallGaps(db)).toMatchObject({ role: "not-ours", we: owner });
    await db.query(sql("wall_t", "insert into tenant (id, name) values ($1, 'x'), ($2, 'y')"), [ours, theirs]);
    const see = sql("wall_see", "select name from tenant order by name");
    expect(await createReaders({ db, ...deps })(ours).query(see)).toEqual([{ name: "x" }, { name: "y" }]);
    await world.admin.query(`grant ${READER} to ${owner}`);
    await migrateToLatest(url);
    expect(await findWallGaps(db)).toMatchObject({ role: "there", tables: [] });
    expect(await createReaders({ db, ...deps })(ours).query(see)).toEqual([{ name: "x" }]);
    expect(await db.query(see)).toHaveLength(2);
  });

  it("makes itself a member where it may make roles", async () => {
    await world.admin.query(`alter role ${owner} createrole`);
    await world.admin.query(`grant ${READER} to ${owner} with admin option`);
    await migrateToLatest(url);
    expect(await findWallGaps(open())).toMatchObject({ role: "there", tables: [] });
  });
});
