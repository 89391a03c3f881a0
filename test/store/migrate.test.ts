import { cpSync, mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pg from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";
import { ENDED_STATES, HELD_BY, LANES, LIVE_STATES, SCHEDULE_STATUSES, TRIGGERS } from "../../src/domain/states.ts";
import { DELIVERY_STATES, ENDPOINT_STATUSES } from "../../src/domain/webhooks/events.ts";
import { systemClock } from "../../src/kernel/clock.ts";
import { bucketOf, instantOf, mintId } from "../../src/kernel/ids.ts";
import { silentLog } from "../../src/kernel/log.ts";
import { createDatabase } from "../../src/store/database.ts";
import { migrateToLatest } from "../../src/store/migrate.ts";
import { MIGRATIONS } from "../../src/store/migration-files.ts";
import { assertSchemaFits } from "../../src/store/schema-fit.ts";
import { createTestDatabase, type TestDatabase } from "../support/postgres.ts";
import { dumpSchema } from "../support/schema-dump.ts";

let database: TestDatabase;
let client: pg.Client;

beforeAll(async () => {
  database = await createTestDatabase();
  client = await connect(database.url);
});

afterAll(async () => {
  await client.end();
  await database.drop();
});

async function connect(url: string): Promise<pg.Client> {
  const connected = new pg.Client(url);
  connected.on("error", () => undefined);
  await connected.connect();
  return connected;
}

/** A database of its own, brought to nothing. */
async function withEmptyDatabase(work: (url: string, query: (text: string) => Promise<unknown[]>) => Promise<void>) {
  const empty = await createTestDatabase();
  const own = await connect(empty.url);
  await own.query("drop schema public cascade; create schema public");
  try {
    await work(empty.url, async (text) => (await own.query(text)).rows);
  } finally {
    await own.end();
    await empty.drop();
  }
}

/** A directory with the real migrations and these files. */
function migrationsWith(files: Record<string, string>): string {
  const directory = mkdtempSync(join(tmpdir(), "punctual-migrations-"));
  cpSync(MIGRATIONS, directory, { recursive: true });
  for (const [name, text] of Object.entries(files)) writeFileSync(join(directory, name), text);
  return directory;
}

function migration(statement: string, options: { breaking?: "yes" | "no"; more?: string } = {}): string {
  return `-- why: a test\n-- locks: none\n-- breaking: ${options.breaking ?? "no"}\n${options.more ?? ""}${statement};\n`;
}

async function assertFits(url: string, directory?: string): Promise<void> {
  const db = createDatabase({ url, maxConnections: 1, applicationName: "t", clock: systemClock, log: silentLog });
  try {
    await assertSchemaFits(db, directory === undefined ? {} : { directory });
  } finally {
    await db.close();
  }
}

test("the migrations add up to the committed schema", async () => {
  await expect(await dumpSchema(client)).toMatchFileSnapshot("../../migrations/schema.snapshot.sql");
});

test("migrators that start together apply each migration once, and all of them find it done", async () => {
  await withEmptyDatabase(async (url, query) => {
    const reports = await Promise.all([1, 2, 3].map(() => migrateToLatest(url)));
    const applied = reports.flatMap((report) => report.applied);
    expect(new Set(applied).size).toBe(applied.length);
    expect(applied).toContain("0001_authority");
    expect(await migrateToLatest(url)).toEqual({ applied: [] });
    expect(await query("select count(*)::int as rows from authority_epoch where epoch = 1 and timeline >= 1")).toEqual([
      { rows: 1 },
    ]);
    await assertFits(url);
  });
});

test("the epoch remembers which server it counts for, and the floor is the start of last week in UTC", async () => {
  const { rows } = await client.query(`
    select (select system_identifier from pg_control_system()) = system_identifier as same_server,
           timeline = (select timeline_id from pg_control_checkpoint()) as same_timeline,
           extract(isodow from floor_at at time zone 'UTC')::int as weekday,
           now() - floor_at between interval '7 days' and interval '14 days 1 hour' as last_week
    from authority_epoch, history_floor`);
  expect(rows).toEqual([{ same_server: true, same_timeline: true, weekday: 1, last_week: true }]);
});

test("a migrator that died leaves no lock behind", async () => {
  await withEmptyDatabase(async (url, query) => {
    await migrateToLatest(url);
    const dead = await connect(url);
    await dead.query("begin; select pg_advisory_xact_lock(8104683)");
    await query("update schema_migration_lock set is_locked = 1");
    const directory = migrationsWith({ "9002_more.sql": migration("create table more ()") });
    const waiting = migrateToLatest(url, { directory });
    await expect
      .poll(() =>
        query(
          "select count(*)::int as waiting from pg_locks where locktype = 'advisory' and not granted and database = (select oid from pg_database where datname = current_database())",
        ),
      )
      .toEqual([{ waiting: 1 }]);
    await query(
      "select pg_terminate_backend(pid) from pg_locks where locktype = 'advisory' and granted and database = (select oid from pg_database where datname = current_database())",
    );
    expect(await waiting).toEqual({ applied: ["9002_more"] });
  });
});

test("a failing migration leaves nothing of itself, names its line, and keeps those before it", async () => {
  await withEmptyDatabase(async (url, query) => {
    const broken = migration("create table half ();\nselect 'what?' from nowhere");
    const directory = migrationsWith({ "9002_good.sql": migration("create table good ()"), "9003_bad.sql": broken });
    await expect(migrateToLatest(url, { directory })).rejects.toMatchObject({
      code: "migration-failed",
      actor: "operator",
      message: 'Migration 9003_bad failed at line 5: relation "nowhere" does not exist',
    });
    expect(await query("select to_regclass('good') as good, to_regclass('half') as half")).toEqual([
      { good: "good", half: null },
    ]);
    await expect(assertFits(url, directory)).rejects.toMatchObject({ code: "schema-too-old" });
    writeFileSync(join(directory, "9003_bad.sql"), migration("create table half ()"));
    expect(await migrateToLatest(url, { directory })).toEqual({ applied: ["9003_bad"] });
  });
});

test("an index is created concurrently by a migration without a transaction", async () => {
  await withEmptyDatabase(async (url, query) => {
    const statement = "create index concurrently if not exists worker_name on worker (name)";
    const text = migration(statement, { more: "-- transaction: none\n" });
    const directory = migrationsWith({ "9002_index.sql": text });
    expect((await migrateToLatest(url, { directory })).applied.at(-1)).toBe("9002_index");
    expect(await query("select indisvalid from pg_index where indexrelid = 'worker_name'::regclass")).toEqual([
      { indisvalid: true },
    ]);
    // Its migrator died before it could describe what it had done.
    await query("update schema_migration set breaking = null, sha256 = null where name = '9002_index'");
    const older = migrationsWith({});
    await expect(assertFits(url, older)).rejects.toMatchObject({ code: "schema-too-new" });
    await migrateToLatest(url, { directory });
    await assertFits(url, older);
  });
});

test("a program without a breaking migration of the database refuses to start, and to migrate", async () => {
  await withEmptyDatabase(async (url) => {
    const text = migration("alter table worker drop column stopping", { breaking: "yes" });
    await migrateToLatest(url, { directory: migrationsWith({ "9002_newer.sql": text }) });
    const older = migrationsWith({});
    await expect(assertFits(url, older)).rejects.toMatchObject({ code: "schema-too-new", actor: "operator" });
    await expect(migrateToLatest(url, { directory: older })).rejects.toMatchObject({ code: "schema-too-new" });
  });
});

test("a program without a harmless migration of the database starts, and migrates", async () => {
  await withEmptyDatabase(async (url) => {
    const text = migration("alter table worker add column colour text");
    await migrateToLatest(url, { directory: migrationsWith({ "9002_newer.sql": text }) });
    const older = migrationsWith({});
    await assertFits(url, older);
    expect(await migrateToLatest(url, { directory: older })).toEqual({ applied: [] });
  });
});

test("a database that was never migrated is too old", async () => {
  await withEmptyDatabase(async (url) => {
    await expect(assertFits(url)).rejects.toMatchObject({
      code: "schema-too-old",
      message: expect.stringMatching(/punctual migrate/),
    });
  });
});

test("an applied migration that was edited is refused", async () => {
  await withEmptyDatabase(async (url) => {
    const directory = migrationsWith({ "9002_more.sql": migration("create table more ()") });
    await migrateToLatest(url, { directory });
    writeFileSync(join(directory, "9002_more.sql"), migration("create table more ()").replaceAll("\n", "\r\n"));
    await assertFits(url, directory);
    writeFileSync(join(directory, "9002_more.sql"), migration("create table more (id int)"));
    await expect(assertFits(url, directory)).rejects.toMatchObject({ code: "schema-changed" });
    await expect(migrateToLatest(url, { directory })).rejects.toMatchObject({ code: "schema-changed" });
  });
});

test.each([
  [
    "no locks line",
    { "9002_x.sql": "-- why: x\n-- breaking: no\nselect 1;" },
    /9002_x\.sql lacks the line "-- locks:"/,
  ],
  ["an unknown word", { "9002_x.sql": migration("select 1", { breaking: "maybe" as "no" }) }, /allowed: yes, no/],
  ["a number used twice", { "0001_x.sql": migration("select 1") }, /used once; found 0001 again/],
  [
    "a name without a number",
    { "more.sql": migration("select 1") },
    /named like 0001_what_it_does\.sql; found more\.sql/,
  ],
])("a migration with %s is refused with a sentence", async (_, files, sentence) => {
  await expect(migrateToLatest(database.url, { directory: migrationsWith(files) })).rejects.toThrow(sentence);
});

test.each<[string, string, string, readonly (string | number)[]]>([
  ["run", "a_run_is_in_a_known_state", "state", ["open", ...ENDED_STATES]],
  ["run", "a_run_is_triggered_by_a_known_cause", "trigger", TRIGGERS],
  ["live_run", "a_live_run_is_in_a_known_state", "state", LIVE_STATES],
  ["live_run", "a_run_is_held_by_a_known_cause", "held_by", HELD_BY],
  ["live_run", "a_lane_is_strict_normal_or_late", "lane", Object.values(LANES)],
  ["outbox", "an_outbox_lane_is_known", "lane", Object.values(LANES)],
  ["schedule", "a_schedule_has_a_known_status", "status", SCHEDULE_STATUSES],
  ["webhook_endpoint", "a_webhook_is_in_a_known_status", "status", ENDPOINT_STATUSES],
  ["webhook_delivery", "a_delivery_is_in_a_known_state", "state", DELIVERY_STATES],
])("%s: %s allows what the domain knows, and nothing else", async (table, name, column, words) => {
  const { rows } = await client.query<{ definition: string }>(
    `select pg_get_constraintdef(oid) as definition from pg_constraint where conrelid = $1::regclass and conname = $2`,
    [table, name],
  );
  const definition = rows[0]?.definition ?? "";
  expect(definition).toMatch(new RegExp(`^CHECK \\(\\(${column} = ANY \\(`));
  const allowed = [...definition.matchAll(/'([^']+)'::text|(\d+)(?=[,\]])/g)].map((m) => m[1] ?? Number(m[2]));
  expect(allowed.toSorted()).toEqual([...words].toSorted());
});

/** Tables outside the buckets, and why. Every other table's bucket is read from a column of its primary key. */
const WITHOUT_BUCKET: Record<string, string> = {
  authority_epoch: "control plane",
  recovery: "control plane",
  tenant: "control plane",
  api_key: "control plane",
  signing_key: "control plane",
  webhook_endpoint: "control plane",
  email_template: "control plane",
  webhook_delivery: "belongs to the shard, like the transactions it tells of",
  quota: "control plane",
  tenant_quota: "control plane",
  tenant_day: "belongs to the shard, like the transactions it counts",
  calendar: "control plane",
  calendar_head: "control plane",
  audit_event: "control plane",
  bucket_directory: "control plane: the map itself",
  scanner: "control plane",
  tz_data: "control plane",
  history_floor: "one for the shard, like the partitions it bounds",
  retired_partition: "belongs to the shard, like the partitions it names",
  worker: "control plane",
  outbox: "belongs to the shard, can be rebuilt from live_run",
  usage: "belongs to the shard, can be counted from live_run",
  rollup_delta: "belongs to the shard, like the transactions it counts",
  rollup: "sums over the shard's runs, per tenant",
};

/** Columns whose uuid carries the bucket (a request key's scope is a tenant or a schedule). */
const CARRIERS = ["id", "schedule_id", "run_id", "effect_id", "scope"];

test("every table's bucket can be computed from its key, or it has a reason to have none", async () => {
  const { rows } = await client.query<{ name: string; carriers: string[] }>(
    `select c.relname::text as name,
            array(select attname::text from pg_index i join pg_attribute on attrelid = c.oid and attnum = any (i.indkey)
                  where i.indrelid = c.oid and i.indisprimary and atttypid = 'uuid'::regtype and attname = any ($1)) as carriers
     from pg_class c
     where relnamespace = 'public'::regnamespace and relkind in ('r', 'p') and not relispartition
       and relname not like 'schema_migration%'`,
    [CARRIERS],
  );
  const bucketed = rows.filter((row) => !(row.name in WITHOUT_BUCKET));
  expect(bucketed.filter((row) => row.carriers.length !== 1)).toEqual([]);
  expect(Object.keys(WITHOUT_BUCKET).filter((name) => !rows.some((row) => row.name === name))).toEqual([]);
  for (const { name, carriers } of bucketed)
    await client.query(`select bucket_of(${carriers[0]}) from ${name} limit 0`);
});

test("SQL reads the same bucket and instant from an id as the program", async () => {
  const ids = [0, 1, 255, 256, 511, 768, 1023].map((bucket, i) => mintId(1_795_000_000_001 + i * 86_399_999, bucket));
  ids.push(mintId(0, 5), mintId(253_402_300_799_999, 6));
  const { rows } = await client.query(
    `select id, bucket_of(id) as bucket, (extract(epoch from instant_of(id)) * 1000)::float8 as at
     from unnest($1::uuid[]) with ordinality as given (id, n) order by n`,
    [ids],
  );
  expect(rows).toEqual(ids.map((id) => ({ id, bucket: bucketOf(id), at: instantOf(id) })));
});
