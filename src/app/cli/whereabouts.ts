import { chmodSync, existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/**
 * Where the system of a data directory can be reached, for the commands: small files beside its data, written by `up`
 * and gone with it. What holds a password is for our eyes only.
 */
export type Whereabouts = {
  url: string;
  /** Of servers of our own only: addresses that were given to us are not ours to write down. */
  databaseUrl?: string | undefined;
  redisUrl?: string | undefined;
};

const FILES: Readonly<Record<keyof Whereabouts, string>> = {
  url: "url",
  databaseUrl: "database-url",
  redisUrl: "redis-url",
};

/** Writes them down; the returned function removes them. */
export function keepWhereabouts(directory: string, whereabouts: Whereabouts): () => void {
  const forget = () => {
    for (const name of Object.values(FILES)) rmSync(join(directory, name), { force: true });
  };
  forget();
  for (const [field, name] of Object.entries(FILES)) {
    const value = whereabouts[field as keyof Whereabouts];
    if (value === undefined) continue;
    const path = join(directory, name);
    writeFileSync(path, `${value}\n`, { mode: 0o600 });
    if (field === "url") chmodSync(path, 0o644);
  }
  return forget;
}

/** What is written down. A system that was killed leaves it behind, so it may lead nowhere. */
export function findWhereabouts(directory: string): Partial<Whereabouts> {
  const entries = Object.entries(FILES).flatMap(([field, name]) => {
    const path = join(directory, name);
    return existsSync(path) ? [[field, readFileSync(path, "utf8").trim()]] : [];
  });
  return Object.fromEntries(entries) as Partial<Whereabouts>;
}
