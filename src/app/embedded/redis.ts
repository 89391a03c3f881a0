import { randomBytes } from "node:crypto";
import { accessSync, constants, mkdirSync, statSync } from "node:fs";
import { delimiter, join, resolve } from "node:path";
import { explainFailedStart } from "./explain.ts";
import { onFreePort } from "./port.ts";
import { startServer } from "./server-process.ts";

export type RedisServer = {
  /** `redis://…`, with its password. */
  url: string;
  port: number;
  pid: number;
  /** Resolves when the server is gone, whoever ended it, with a sentence for the log. */
  exited: Promise<string>;
  stop(): Promise<void>;
};

/** The first `redis-server` or else `valkey-server` in `searchPath` (the value of PATH), or undefined. */
export function findRedisBinary(searchPath: string | undefined): string | undefined {
  const folders = (searchPath ?? "").split(delimiter).filter((folder) => folder !== "");
  const candidates = ["redis-server", "valkey-server"].flatMap((name) => folders.map((folder) => join(folder, name)));
  return candidates.find(isExecutable);
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}

/**
 * Starts a Redis of our own on 127.0.0.1, on a free port (or on `port`). With a `dataDirectory` it keeps an append-only
 * file there and survives restarts; without one it writes nothing. It ends with `stop()` and also when this program is killed.
 */
export async function startRedis(options: {
  binary: string;
  dataDirectory?: string;
  port?: number;
  /** Further redis.conf directives. */
  settings?: Readonly<Record<string, string>>;
  log: (line: string) => void;
}): Promise<RedisServer> {
  const directory = options.dataDirectory === undefined ? undefined : resolve(options.dataDirectory);
  if (directory !== undefined) makeDirectory(directory);

  const startOn = async (port: number): Promise<RedisServer> => {
    const password = randomBytes(18).toString("hex");
    const settings: Record<string, string> = {
      bind: "127.0.0.1",
      port: String(port),
      requirepass: password,
      daemonize: "no",
      databases: "256",
      // Hints must not be evicted: BullMQ's bookkeeping would be torn.
      "maxmemory-policy": "noeviction",
      save: '""',
      appendonly: directory === undefined ? "no" : "yes",
      appendfsync: "everysec",
      ...(directory === undefined ? {} : { dir: `"${directory.replaceAll(/["\\]/g, "\\$&")}"` }),
      ...options.settings,
    };
    const server = await startServer({
      command: options.binary,
      args: ["-"],
      // Through standard input, because everybody can read a command line.
      input: Object.entries(settings)
        .map(([name, value]) => `${name} ${value}\n`)
        .join(""),
      ready: /ready to accept connections/i,
      ask: "TERM",
      insist: "KILL",
      log: options.log,
      explain: (output) => explainFailedStart("Redis", port, directory, output),
    });
    return { ...server, port, url: `redis://:${password}@127.0.0.1:${port}` };
  };
  return options.port === undefined ? onFreePort(startOn) : startOn(options.port);
}

function makeDirectory(directory: string): void {
  try {
    mkdirSync(directory, { recursive: true, mode: 0o700 });
  } catch (error) {
    throw explainFailedStart("Redis", 0, directory, String(error));
  }
}
