import { hash } from "node:crypto";
import { type Queryable, sql } from "../../store/database.ts";

const READ = sql(
  "installation_read",
  `select (select system_identifier from pg_control_system())::text as system,
          (select oid from pg_database where datname = current_database())::text as database`,
);

/**
 * Tells this installation from others where they share something outside, a container engine, say: 12 hex digits. Another
 * database, also on the same server, is another installation; what a backup was restored to, on another server, is so too.
 */
export async function readInstallation(db: Queryable): Promise<string> {
  const { system, database } = (await db.query<{ system: string; database: string }>(READ))[0]!;
  return hash("sha256", `${system}/${database}`).slice(0, 12);
}
