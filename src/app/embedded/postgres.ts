import { accountForPostgres } from "./account.ts";
import { locateBinaries } from "./binaries.ts";
import { explainFailedStart } from "./explain.ts";
import { onFreePort } from "./port.ts";
import { preparePostgresData } from "./postgres-data.ts";
import { settlePostmasterLock } from "./postgres-lock.ts";
import { startServer } from "./server-process.ts";

export type PostgresServer = {
  /** `postgres://…/postgres`, with a superuser and its password; through its socket file where that has a place. */
  url: string;
  port: number;
  pid: number;
  /** Resolves when the server is gone, whoever ended it, with a sentence for the log. */
  exited: Promise<string>;
  /** Disconnects everybody and shuts down cleanly. Idempotent. */
  stop(): Promise<void>;
};

/** Sized for a small machine. Durability is never traded: a commit that was answered is on the disk. */
const SETTINGS: Readonly<Record<string, string>> = {
  synchronous_commit: "on",
  max_connections: "200",
  shared_buffers: "256MB",
  wal_buffers: "16MB",
  max_wal_size: "2GB",
  checkpoint_timeout: "15min",
  autovacuum_naptime: "10s",
  jit: "off",
  timezone: "UTC",
  log_timezone: "UTC",
  log_checkpoints: "off",
};

/**
 * Starts a PostgreSQL of our own on 127.0.0.1, on a free port (or on `port`), with its data in `dataDirectory`, where it
 * survives restarts. It ends with `stop()` and also when this program is killed. `settings` are postgresql.conf names.
 * Throws operator errors: port taken, data of another version, directory in use, disk full, no permission.
 */
export async function startPostgres(options: {
  dataDirectory: string;
  port?: number;
  settings?: Readonly<Record<string, string>>;
  /** Remove the data when the server has ended, for tests. */
  lifetime?: "kept" | "discarded";
  log: (line: string) => void;
}): Promise<PostgresServer> {
  const account = accountForPostgres(options.dataDirectory);
  const binaries = locateBinaries(account, options.log);
  const data = await preparePostgresData(options.dataDirectory, account, binaries, options.log);
  await settlePostmasterLock(data.cluster);

  const startOn = async (port: number): Promise<PostgresServer> => {
    const socket = socketDirectory(data.directory);
    const settings = {
      ...SETTINGS,
      ...options.settings,
      listen_addresses: "127.0.0.1",
      unix_socket_directories: socket ?? "",
    };
    const server = await startServer({
      command: binaries.postgres,
      args: [
        "-D",
        data.cluster,
        "-p",
        String(port),
        ...Object.entries(settings).flatMap(([name, value]) => ["-c", `${name}=${value}`]),
      ],
      account,
      ready: /database system is ready to accept connections/,
      ask: "INT", // fast shutdown
      insist: "QUIT", // immediate shutdown; KILL would leave its children behind
      discard: options.lifetime === "discarded" ? data.directory : undefined,
      log: options.log,
      explain: (output) => explainFailedStart("PostgreSQL", port, data.directory, output),
    });
    const host = socket === undefined ? "127.0.0.1" : encodeURIComponent(socket);
    return { ...server, port, url: `postgres://punctual:${data.password}@${host}:${port}/postgres` };
  };
  return options.port === undefined ? onFreePort(startOn) : startOn(options.port);
}

/** Longest path a socket address holds, with the socket's own name and the ending zero taken off. */
const LONGEST_SOCKET_DIRECTORY = 107 - "/.s.PGSQL.65535".length;

/**
 * Where the server's socket file goes: beside its data, where only its account may look. A socket file costs less
 * than the loopback interface (measured: a whole burst gains 7 %). Undefined where the path is too long, is not one
 * directory to PostgreSQL (commas and quotes part a list), or has no such files (Windows).
 */
function socketDirectory(directory: string): string | undefined {
  if (process.platform === "win32" || /[,"]/.test(directory)) return undefined;
  return Buffer.byteLength(directory) <= LONGEST_SOCKET_DIRECTORY ? directory : undefined;
}
