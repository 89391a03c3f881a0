import { execFile } from "node:child_process";
import { randomBytes } from "node:crypto";
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { promisify } from "node:util";
import { operatorError } from "../../kernel/errors.ts";
import { type Account, isReachable } from "./account.ts";
import type { Binaries } from "./binaries.ts";
import { explainFailedStart } from "./explain.ts";

/** `directory` is the real place (links followed); `cluster` is PostgreSQL's own data directory within. */
export type PostgresData = { directory: string; cluster: string; password: string };

// Where root keeps the data when the server's account cannot walk to the directory asked for (a checkout below /root).
const ELSEWHERE = "/var/lib/punctual";

/** Makes or opens the data directory: cluster, password, ownership, version. Throws operator errors. */
export async function preparePostgresData(
  dataDirectory: string,
  account: Account | undefined,
  binaries: Binaries,
  log: (line: string) => void,
): Promise<PostgresData> {
  try {
    const directory = makeDirectory(resolve(dataDirectory), account, log);
    const data = { directory, cluster: join(directory, "cluster"), password: keptPassword(directory, account) };
    if (existsSync(data.cluster)) checkVersion(data.cluster, binaries.majorVersion);
    else await initialise(data, account, binaries);
    return data;
  } catch (error) {
    if (error instanceof Error && "actor" in error) throw error;
    throw explainFailedStart("PostgreSQL", 0, dataDirectory, String(error));
  }
}

function makeDirectory(wanted: string, account: Account | undefined, log: (line: string) => void): string {
  mkdirSync(dirname(wanted), { recursive: true }); // with ordinary modes: the server's account must walk through
  if (!existsSync(wanted) && account && !isReachable(dirname(wanted), account)) {
    mkdirSync(ELSEWHERE, { recursive: true, mode: 0o755 });
    const place = mkdtempSync(join(ELSEWHERE, `${basename(dirname(dirname(wanted)))}-`));
    rmSync(wanted, { force: true }); // a link whose target is gone
    symlinkSync(place, wanted);
    log(`PostgreSQL's account cannot reach ${wanted}: its data is kept in ${place}`);
  }
  if (!existsSync(wanted)) mkdirSync(wanted, { mode: 0o700 });
  const directory = realpathSync(wanted);
  if (account) chownSync(directory, account.uid, account.gid);
  chmodSync(directory, 0o700);
  return directory;
}

/** A password of its own keeps the other users of this machine out: on 127.0.0.1 everybody may knock. */
function keptPassword(directory: string, account: Account | undefined): string {
  const file = join(directory, "password");
  if (!existsSync(file)) {
    writeFileSync(file, `${randomBytes(18).toString("hex")}\n`, { mode: 0o600 });
    if (account) chownSync(file, account.uid, account.gid);
  }
  return readFileSync(file, "utf8").trim();
}

function checkVersion(cluster: string, ours: string): void {
  const file = join(cluster, "PG_VERSION");
  const theirs = existsSync(file) ? readFileSync(file, "utf8").trim() : "unknown";
  if (theirs === ours) return;
  throw operatorError(
    "postgres-version-mismatch",
    `The data in ${cluster} belongs to PostgreSQL ${theirs}, but this Punctual comes with PostgreSQL ${ours}, which cannot read it. ` +
      `Move the directory away to start afresh, or dump it with a PostgreSQL ${theirs} and load it into the new one.`,
    { directory: cluster, found: theirs, expected: ours },
  );
}

/** Under another name first, so that a start that is cut short leaves no half-made cluster to trip over. */
async function initialise(data: PostgresData, account: Account | undefined, binaries: Binaries): Promise<void> {
  const unfinished = `${data.cluster}.new`;
  rmSync(unfinished, { recursive: true, force: true });
  const options = [
    `--pgdata=${unfinished}`,
    "--username=punctual",
    `--pwfile=${join(data.directory, "password")}`,
    "--auth=scram-sha-256",
    "--encoding=UTF8",
    // The built-in locale: the same order of strings on every machine, whatever its C library.
    "--locale=C",
    "--locale-provider=builtin",
    "--builtin-locale=C.UTF-8",
    "--no-instructions",
    // The server flushes what it writes; only a machine that dies within this second would lose the empty cluster.
    "--no-sync",
  ];
  await promisify(execFile)(binaries.initdb, options, { ...account, cwd: "/", env: { LC_ALL: "C" } });
  renameSync(unfinished, data.cluster);
}
