import { chmodSync, existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { operatorError } from "../../kernel/errors.ts";
import type { Config } from "../config.ts";

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

/** What DATABASE_URL and REDIS_URL name, else the servers of the running system of this checkout. Throws `not-running`. */
export function getServers(config: Config): { databaseUrl: string; redisUrl: string | undefined } {
  const own = config.DATABASE_URL === undefined ? findWhereabouts(config.PUNCTUAL_DIR) : {};
  const databaseUrl = config.DATABASE_URL ?? own.databaseUrl;
  if (databaseUrl === undefined) {
    throw operatorError(
      "not-running",
      `no system of this checkout is running (npm start; PUNCTUAL_DIR is ${config.PUNCTUAL_DIR}), and DATABASE_URL is not set`,
    );
  }
  return { databaseUrl, redisUrl: config.REDIS_URL ?? own.redisUrl };
}
