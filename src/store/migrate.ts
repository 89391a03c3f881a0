import knex, { type Knex } from "knex";
import pg from "pg";
import { messageOf, operatorError } from "../kernel/errors.ts";
import type { Database } from "./database.ts";
import { type MigrationFile, readMigrations } from "./migration-files.ts";
import type { PartitionWidth } from "./partition-plan.ts";
import { createPartitionUpkeep } from "./partitions.ts";
import { raiseWall } from "./raise-wall.ts";
import { findPending, readApplied, refuseForeignSchema } from "./schema-fit.ts";

const TABLE = "schema_migration"; // knex adds schema_migration_lock

// Knex's own columns, then what an older program must be told about migrations it does not have.
const CREATE_TABLE = `
  create table if not exists schema_migration (
    id integer generated always as identity primary key,
    name text not null unique,
    batch integer not null,
    migration_time timestamptz not null,
    breaking boolean,
    sha256 text
  )`;

// A transaction's lock, not a session's: it passes PgBouncer, and it ends with its connection, however a migrator dies.
const BEGIN_ALONE = `
  begin;
  set local lock_timeout = 0;
  set local statement_timeout = 0;
  set local idle_in_transaction_session_timeout = 0;
  select pg_advisory_xact_lock(8104683)`;

// A migrator that died between a statement of its own and its description leaves null here.
const COMPLETE_ROW = `update schema_migration set breaking = $2, sha256 = $3 where name = $1 and sha256 is null`;

const SEED_EPOCH = `
  insert into authority_epoch (epoch, system_identifier, timeline)
  select 1, system_identifier, ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::integer
  from pg_control_system()
  on conflict do nothing`;

// Beside the rest, for an epoch that an earlier program wrote.
const SEED_DATABASE = `
  update authority_epoch set database_oid = (select oid from pg_database where datname = current_database())
  where database_oid is null`;

const SEED_FLOOR = `
  insert into history_floor (floor_at)
  values ((date_trunc('week', clock_timestamp() at time zone 'UTC') - interval '7 days') at time zone 'UTC')
  on conflict do nothing`;

/**
 * Brings the database at `url` to this program's schema, seeds the authority's epoch and the history floor, and creates the
 * partitions of the next 30 days, and puts up what is missing of the second wall between tenants. Any number of migrators may run at once: one works, the others wait and find it done.
 * Returns the names applied by this call. Operator errors: `schema-too-new`, `schema-changed`, `migration-failed`.
 */
export async function migrateToLatest(
  url: string,
  options: { directory?: string; width?: PartitionWidth } = {},
): Promise<{ applied: string[] }> {
  const files = await readMigrations(options.directory);
  const alone = new pg.Client(url);
  const client = new pg.Client(url);
  // A lost connection shows in the next query; without a listener it would end the process.
  for (const one of [alone, client]) one.on("error", () => undefined);
  try {
    await alone.connect();
    await client.connect();
    await alone.query(BEGIN_ALONE);
    await client.query(CREATE_TABLE);
    const db = doorOf(client);
    const before = await readApplied(db);
    refuseForeignSchema(files, before);
    for (const file of files) await client.query(COMPLETE_ROW, [file.name, file.breaking, file.sha256]);
    const pending = findPending(files, before);
    if (pending.length > 0) await applyAll(url, files, pending);
    await client.query(SEED_EPOCH);
    await client.query(SEED_DATABASE);
    await client.query(SEED_FLOOR);
    const upkeep = createPartitionUpkeep(db, options.width ?? "week");
    await upkeep.ensure({ nowAt: await upkeep.databaseNow(), aheadDays: 30 });
    await raiseWall(db);
    await alone.query("commit");
    return { applied: pending.map((file) => file.name) };
  } finally {
    await Promise.all([alone.end(), client.end()]);
  }
}

/** One connection behind the database's door: migrating needs no pool, clock or log. */
function doorOf(client: pg.Client): Pick<Database, "query" | "run"> {
  return {
    query: async <Row>(statement: { text: string }, values: readonly unknown[] = []) =>
      (await client.query(statement.text, [...values])).rows as Row[],
    run: async (text) => {
      await client.query(text);
    },
  };
}

/** Each migration in a transaction of its own, its row with it. The caller is alone. */
async function applyAll(url: string, files: MigrationFile[], pending: MigrationFile[]): Promise<void> {
  const runner = knex({
    client: "pg",
    connection: url,
    pool: { min: 0, max: 2 },
    compileSqlOnError: false,
    log: { warn() {}, error() {}, debug() {}, deprecate() {} }, // failures are thrown, with a sentence
  });
  const config: Knex.MigratorConfigWithLifecycleHooks = {
    tableName: TABLE,
    disableMigrationsListValidation: true, // harmless ones of a newer program may be there
    migrationSource: {
      getMigrations: async () => files,
      getMigrationName: (file: MigrationFile) => file.name,
      getMigration: async (file: MigrationFile) => toKnexMigration(file),
    },
    afterAll: async (trx, done) => {
      for (const { name, breaking, sha256 } of done as MigrationFile[]) {
        await trx(TABLE).where({ name }).update({ breaking, sha256 });
      }
    },
  };
  try {
    await runner.migrate.forceFreeMigrationsLock(config); // whoever holds knex's lock row has died
    for (const _ of pending) await runner.migrate.up(config);
  } finally {
    await runner.destroy();
  }
}

function toKnexMigration(file: MigrationFile): Knex.Migration & { config: { transaction: boolean } } {
  return {
    config: { transaction: file.transaction === "own" },
    async up(trx) {
      try {
        await trx.raw(file.sql.replaceAll("?", "\\?")); // a bare question mark is a placeholder of knex
      } catch (error) {
        throw explain(file, error);
      }
    },
    async down() {
      throw new Error("Migrations only go forward.");
    },
  };
}

function explain(file: MigrationFile, error: unknown): Error {
  const message = messageOf(error);
  // Knex puts the whole file before PostgreSQL's sentence.
  const reason = message.startsWith(file.sql) ? message.slice(file.sql.length + " - ".length) : message;
  const { position } = error as { position?: string };
  const line = position === undefined ? "" : ` at line ${file.sql.slice(0, Number(position)).split("\n").length}`;
  return operatorError(
    "migration-failed",
    `Migration ${file.name} failed${line}: ${reason}`,
    { name: file.name },
    error,
  );
}
