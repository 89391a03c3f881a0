import { execFileSync } from "node:child_process";
import { appendFileSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import pg from "pg";
import { accountForPostgres } from "../../src/app/embedded/account.ts";
import { locateBinaries } from "../../src/app/embedded/binaries.ts";
import { onFreePort } from "../../src/app/embedded/port.ts";
import { type PostgresServer, startPostgres } from "../../src/app/embedded/postgres.ts";
import { startServer } from "../../src/app/embedded/server-process.ts";
import { makeTemporaryFolder } from "./temporary-folder.ts";

/** PostgreSQL servers of a test's own, and what operators make of them: backups, restores, standbys. */

export type Server = PostgresServer & { directory: string };

const log = () => undefined;
const SETTINGS = {
  wal_level: "replica",
  max_wal_senders: "4",
  fsync: "off",
  shared_buffers: "32MB",
  max_connections: "100",
};

export async function startPrimary(): Promise<Server> {
  const directory = makeTemporaryFolder("punctual-primary-");
  return {
    ...(await startPostgres({ dataDirectory: directory, settings: SETTINGS, lifetime: "discarded", log })),
    directory,
  };
}

/** A base backup, as pg_basebackup takes it; answers its directory. */
export async function takeBackup(server: Server): Promise<string> {
  const directory = makeTemporaryFolder("punctual-backup-");
  const [from, to] = [join(server.directory, "cluster"), join(directory, "cluster")];
  const session = new pg.Client(server.url);
  await session.connect();
  await session.query("select pg_backup_start('test', true)");
  execFileSync("cp", ["-a", server.directory, `${directory}/copy`]);
  const { rows } = await session.query("select labelfile from pg_backup_stop(false)");
  await session.end();
  execFileSync("sh", ["-c", `mv '${directory}/copy/'* '${directory}' && chown --reference='${from}' '${directory}'`]);
  rmSync(join(to, "postmaster.pid"));
  rmSync(join(to, "pg_wal"), { recursive: true });
  execFileSync("cp", ["-a", join(from, "pg_wal"), join(to, "pg_wal")]);
  place(to, "backup_label", rows[0].labelfile);
  return directory;
}

/** The backup becomes a server: it plays back the log that it has, and goes on with a timeline of its own. */
export async function restore(directory: string): Promise<Server> {
  place(join(directory, "cluster"), "recovery.signal", "");
  const settings = { ...SETTINGS, restore_command: "false" };
  return { ...(await startPostgres({ dataDirectory: directory, settings, lifetime: "discarded", log })), directory };
}

/** The backup follows its primary, until it is promoted. */
export async function startStandby(directory: string, primary: Server): Promise<Server> {
  const cluster = join(directory, "cluster");
  const { password } = new URL(primary.url);
  place(cluster, "standby.signal", "");
  appendFileSync(
    join(cluster, "postgresql.auto.conf"),
    `primary_conninfo = 'host=127.0.0.1 port=${primary.port} user=punctual password=${password}'\n`,
  );
  const account = accountForPostgres(directory);
  const binaries = locateBinaries(account, log);
  return onFreePort(async (port) => {
    const server = await startServer({
      command: binaries.postgres,
      args: [
        "-D",
        cluster,
        "-p",
        String(port),
        "-c",
        "listen_addresses=127.0.0.1",
        "-c",
        "unix_socket_directories=",
      ].concat(Object.entries(SETTINGS).flatMap(([name, value]) => ["-c", `${name}=${value}`])),
      account,
      ready: /ready to accept read-only connections/,
      ask: "INT",
      insist: "QUIT",
      discard: directory,
      log,
      explain: (output) => new Error(output),
    });
    return { ...server, port, directory, url: `postgres://punctual:${password}@127.0.0.1:${port}/postgres` };
  });
}

/** Everything committed on the primary has reached the standby; then that becomes a server of its own. */
export async function promote(standby: Server, primary: Server): Promise<void> {
  const [from, to] = [new pg.Client(primary.url), new pg.Client(standby.url)];
  await Promise.all([from.connect(), to.connect()]);
  const { rows } = await from.query("select pg_current_wal_lsn()::text as lsn");
  while (!(await to.query("select pg_last_wal_replay_lsn() >= $1::pg_lsn as there", [rows[0].lsn])).rows[0].there);
  await to.query("select pg_promote(true, 60)");
  await Promise.all([from.end(), to.end()]);
}

function place(cluster: string, name: string, content: string): void {
  mkdirSync(cluster, { recursive: true });
  writeFileSync(join(cluster, name), content);
  execFileSync("chown", ["--reference", cluster, join(cluster, name)]);
}
