import { createHash } from "node:crypto";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { bug } from "../kernel/errors.ts";

/** A numbered forward migration: `NNNN_name.sql`, whose first comment lines say why, what it locks, and whether it breaks. */
export type MigrationFile = {
  /** The file's name without `.sql`. */
  name: string;
  /** A program that does not know this migration must not run on a database that has it. */
  breaking: boolean;
  /** `none`: outside a transaction, so the file is one statement (create index concurrently) that can be repeated. */
  transaction: "own" | "none";
  /** Hex, of the text with LF line ends. */
  sha256: string;
  sql: string;
};

export const MIGRATIONS = fileURLToPath(new URL("../../migrations", import.meta.url));

const NAME = /^\d{4}_[a-z0-9_]+\.sql$/;
const SNAPSHOT = "schema.snapshot.sql";

/** The migrations of `directory` in their order. Throws when a file is misnamed, shares its number, or lacks its header. */
export async function readMigrations(directory = MIGRATIONS): Promise<MigrationFile[]> {
  const found = await readdir(directory);
  const names = found.filter((name) => name.endsWith(".sql") && name !== SNAPSHOT).sort();
  const misnamed = names.find((name) => !NAME.test(name));
  if (misnamed) throw bug(`A migration is named like 0001_what_it_does.sql; found ${misnamed}.`);
  const twice = names.find((name, i) => name.slice(0, 4) === names[i - 1]?.slice(0, 4));
  if (twice) throw bug(`Migration numbers are used once; found ${twice.slice(0, 4)} again in ${twice}.`);
  return Promise.all(
    names.map(async (name) => parseMigration(name, await readFile(join(directory, name), { encoding: "utf8" }))),
  );
}

function parseMigration(fileName: string, text: string): MigrationFile {
  const sql = text.replaceAll("\r\n", "\n");
  const header = new Map<string, string>();
  for (const line of sql.split("\n")) {
    const [, field, value] = /^-- ([a-z]+):\s*(.*\S)\s*$/.exec(line) ?? [];
    if (field && value) header.set(field, value);
    else if (!line.startsWith("--")) break;
  }
  const read = (field: string, allowed?: readonly string[]): string => {
    const value = header.get(field);
    if (value === undefined) {
      throw bug(`Migration ${fileName} lacks the line "-- ${field}:"; each begins with why, locks and breaking.`);
    }
    if (allowed && !allowed.includes(value)) {
      throw bug(`Migration ${fileName} says "${field}: ${value}"; allowed: ${allowed.join(", ")}.`);
    }
    return value;
  };
  read("why");
  read("locks");
  const breaking = read("breaking", ["yes", "no"]) === "yes";
  const transaction = header.has("transaction") && read("transaction", ["none"]) === "none" ? "none" : "own";
  const sha256 = createHash("sha256").update(sql).digest("hex");
  return { name: fileName.slice(0, -".sql".length), breaking, transaction, sha256, sql };
}
