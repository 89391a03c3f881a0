import { randomBytes } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Config } from "./config.ts";

/**
 * What signs cursors, download links and sessions. Configured where there are several API replicas; else made once and kept in a
 * file only we can read.
 */
export function readSecret(config: Config): string {
  return config.PUNCTUAL_SECRET ?? keepSecret(config.PUNCTUAL_DIR, "secret", () => randomBytes(32).toString("hex"));
}

/** Reads a secret file of the data directory, making it where there is none. */
export function keepSecret(directory: string, name: string, make: () => string): string {
  const path = join(directory, name);
  if (existsSync(path)) return readFileSync(path, "utf8").trim();
  const secret = make();
  mkdirSync(directory, { recursive: true });
  writeFileSync(path, `${secret}\n`, { mode: 0o600 });
  return secret;
}

export function findSecret(directory: string, name: string): string | undefined {
  const path = join(directory, name);
  return existsSync(path) ? readFileSync(path, "utf8").trim() : undefined;
}
