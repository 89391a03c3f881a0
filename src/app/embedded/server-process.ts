import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import type { Account } from "./account.ts";
import { watchOver } from "./watchdog.ts";

export type ServerProcess = {
  pid: number;
  /** Resolves when the process is gone, whoever ended it, with a sentence for the log. */
  exited: Promise<string>;
  /** Ends the process and removes what was to be discarded. Idempotent. */
  stop(): Promise<void>;
};

export type ServerCommand = {
  command: string;
  args: readonly string[];
  account?: Account | undefined;
  /** Written to standard input, for what must not show in the process list. */
  input?: string;
  /** The line that says the server answers now. */
  ready: RegExp;
  ask: "INT" | "TERM";
  insist: "QUIT" | "KILL";
  discard?: string | undefined;
  log: (line: string) => void;
  /** Turns what the server said before it died into an error that says who must do what. */
  explain: (output: string) => Error;
};

/** Starts a server that lives no longer than this program, and waits until it is ready. */
export function startServer(server: ServerCommand): Promise<ServerProcess> {
  const { promise, resolve, reject } = Promise.withResolvers<ServerProcess>();
  const child = spawn(server.command, server.args, {
    ...server.account,
    // Detached, cwd and env: a Ctrl-C, a removed directory or a variable like PGPORT is none of the server's business.
    detached: true,
    cwd: "/",
    env: { LC_ALL: "C", PATH: "/usr/local/bin:/usr/bin:/bin" },
    stdio: "pipe",
  });
  child.once("error", (error) => reject(server.explain(error.message)));
  if (child.pid === undefined) return promise;
  const watchdog = watchOver(child.pid, {
    ask: server.ask,
    insist: server.insist,
    ...(server.discard === undefined ? {} : { discard: server.discard }),
  });

  const exited = new Promise<string>((done) => {
    // `close`, not `exit`: its last words have been read by then.
    child.once("close", (code, signal) => {
      watchdog.release();
      done(signal ? `ended by ${signal}` : `ended with code ${code}`);
    });
  });
  const stop = async () => {
    watchdog.release();
    await exited;
    await watchdog.gone;
  };
  const running: ServerProcess = { pid: child.pid, exited, stop };

  let output = "";
  let isReady = false;
  const hear = (line: string) => {
    server.log(line);
    if (isReady) return;
    output += `${line}\n`;
    isReady = server.ready.test(line);
    if (isReady) resolve(running);
  };
  createInterface({ input: child.stdout }).on("line", hear);
  createInterface({ input: child.stderr }).on("line", hear);
  child.stdin.on("error", () => undefined);
  child.stdin.end(server.input ?? "");
  void exited.then((how) => reject(server.explain(output.trim() || how)));
  return promise;
}
