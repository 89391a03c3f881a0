import { operatorError } from "../kernel/errors.ts";
import { type Queryable, sql } from "./database.ts";
import { type MigrationFile, readMigrations } from "./migration-files.ts";

const FIND_TABLE = sql("schema_migration_find", `select to_regclass('schema_migration') is not null as found`);
const READ_APPLIED = sql("schema_migration_read", `select name, breaking, sha256 from schema_migration order by name`);

/** A row of schema_migration. Null: its migrator died before it could say. */
type Applied = { name: string; breaking: boolean | null; sha256: string | null };

/**
 * Refuses a database this program cannot work on. Operator errors: `schema-too-old` (migrations are pending), `schema-too-new`
 * (a breaking migration this program does not know), `schema-changed` (an applied migration was edited).
 */
export async function assertSchemaFits(db: Queryable, options: { directory?: string } = {}): Promise<void> {
  const files = await readMigrations(options.directory);
  const applied = await readApplied(db);
  refuseForeignSchema(files, applied);
  const pending = findPending(files, applied).map((file) => file.name);
  if (pending.length > 0) {
    throw operatorError(
      "schema-too-old",
      `The database lacks ${pending.length} migration(s), first ${pending[0]}. Run \`punctual migrate\`, then start again.`,
      { pending },
    );
  }
}

/** Everything applied so far; nothing on a database that was never migrated. */
export async function readApplied(db: Queryable): Promise<Applied[]> {
  const [table] = await db.query<{ found: boolean }>(FIND_TABLE);
  return table?.found ? db.query<Applied>(READ_APPLIED) : [];
}

export function findPending(files: readonly MigrationFile[], applied: readonly Applied[]): MigrationFile[] {
  const done = new Set(applied.map((one) => one.name));
  return files.filter((file) => !done.has(file.name));
}

export function refuseForeignSchema(files: readonly MigrationFile[], applied: readonly Applied[]): void {
  const known = new Map(files.map((file) => [file.name, file]));
  const unknown = applied.filter((one) => !known.has(one.name) && one.breaking !== false).map((one) => one.name);
  if (unknown.length > 0) {
    throw operatorError(
      "schema-too-new",
      `The database was changed by a newer Punctual (${unknown.join(", ")}); this program would misread it. Use that newer version.`,
      { unknown },
    );
  }
  const changed = applied.filter(
    (one) => one.sha256 !== null && known.has(one.name) && known.get(one.name)?.sha256 !== one.sha256,
  );
  if (changed.length > 0) {
    const names = changed.map((one) => one.name);
    throw operatorError(
      "schema-changed",
      `Applied migrations differ from this program's files (${names.join(", ")}). Restore the files, or use a fresh database.`,
      { changed: names },
    );
  }
}
