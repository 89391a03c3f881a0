import { randomBytes } from "node:crypto";
import { accessSync, constants, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type ServerProcess, startServer } from "../../src/app/embedded/server-process.ts";
import { freePort } from "./free-port.ts";
import { makeTemporaryFolder } from "./temporary-folder.ts";

/** Debian's package keeps the program itself here; the one in PATH is a wrapper for one account. */
const SERVER = "/usr/lib/rabbitmq/bin/rabbitmq-server";
const EPMD = "/usr/bin/epmd";

/**
 * Whether this machine has RabbitMQ. Register tests that need it inside `if (rabbitmqAvailable)`: without it they are left
 * out, and the file says so in one line.
 */
export const rabbitmqAvailable: boolean = [SERVER, EPMD].every(isExecutable);

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

export type RabbitmqServer = {
  host: string;
  port: number;
  user: string;
  password: string;
  /** `amqp://…`, with user and password. */
  url: string;
  readonly pid: number;
  /** Ends it without a word. What is durable is there again after `restart`. */
  kill(): Promise<void>;
  restart(): Promise<void>;
  stop(): Promise<void>;
};

/** A broker of this test's own: node, ports, folders and port mapper (epmd) are nobody else's. It ends with this process at the latest. */
export async function startRabbitmq(): Promise<RabbitmqServer> {
  const directory = makeTemporaryFolder("punctual-rabbitmq-");
  const [port, distributionPort, epmdPort] = [await freePort(), await freePort(), await freePort()];
  const [user, password] = ["tenant", randomBytes(9).toString("hex")];
  mkdirSync(join(directory, "log"));
  writeFileSync(join(directory, "plugins"), "[].\n");
  writeFileSync(
    join(directory, "rabbitmq.conf"),
    [
      `listeners.tcp.local = 127.0.0.1:${port}`,
      `default_user = ${user}`,
      `default_pass = ${password}`,
      "loopback_users = none",
      "log.file = false",
      "log.console = true",
      "log.console.level = info",
      "disk_free_limit.absolute = 1MB",
      "num_acceptors.tcp = 2",
      "",
    ].join("\n"),
  );
  const environment = {
    HOME: directory,
    ERL_EPMD_PORT: epmdPort,
    ERL_EPMD_ADDRESS: "127.0.0.1",
    RABBITMQ_NODENAME: `punctual-${port}@localhost`,
    RABBITMQ_DIST_PORT: distributionPort,
    RABBITMQ_CONF_ENV_FILE: join(directory, "none"),
    RABBITMQ_CONFIG_FILE: join(directory, "rabbitmq.conf"),
    RABBITMQ_ADVANCED_CONFIG_FILE: join(directory, "none"),
    RABBITMQ_ENABLED_PLUGINS_FILE: join(directory, "plugins"),
    RABBITMQ_MNESIA_BASE: join(directory, "data"),
    RABBITMQ_LOG_BASE: join(directory, "log"),
    RABBITMQ_LOGS: "-",
    // Runs Erlang in place of the script, so that its process id is the server's.
    RUNNING_UNDER_SYSTEMD: "true",
    // Two cores are shared with everybody else.
    RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS: "+S 1:1 +SDcpu 1:1 +SDio 1 -kernel inet_dist_use_interface {127,0,0,1}",
  };
  const explain = (output: string) => new Error(`RabbitMQ did not start: ${output.slice(-2000)}`);
  const epmd = await startServer({
    command: EPMD,
    args: ["-d", "-d", "-address", "127.0.0.1", "-port", String(epmdPort)],
    // It ends last, and the folder with it.
    discard: directory,
    ready: /entering the main select/i,
    ask: "TERM",
    insist: "KILL",
    log: () => undefined,
    explain,
  });
  const start = () =>
    startServer({
      command: "/usr/bin/env",
      args: [...Object.entries(environment).map(([name, value]) => `${name}=${value}`), SERVER],
      ready: /Server startup complete/,
      ask: "TERM",
      insist: "KILL",
      log: () => undefined,
      explain,
    });
  let server: ServerProcess = await start().catch(async (error: unknown) => {
    await epmd.stop();
    throw error;
  });
  return {
    host: "127.0.0.1",
    port,
    user,
    password,
    url: `amqp://${user}:${password}@127.0.0.1:${port}`,
    get pid() {
      return server.pid;
    },
    async kill() {
      process.kill(server.pid, "SIGKILL");
      await server.exited;
      await server.stop();
    },
    async restart() {
      server = await start();
    },
    async stop() {
      await server.stop();
      await epmd.stop();
    },
  };
}
