import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { makeTemporaryFolder } from "../../support/temporary-folder.ts";
import { runHere } from "./in-process.ts";

const BIN = join(import.meta.dirname, "..", "..", "..", "src", "app", "bin.mjs");

export type Ended = { exitCode: number | null; out: string; err: string };
type Environment = Readonly<Record<string, string>>;

/** A command as a shell runs it, with nothing of this process's environment but PATH. `node` are flags of Node itself. */
export async function punctual(args: readonly string[], env: Environment = {}, node: string[] = []): Promise<Ended> {
  const child = start(args, env, node);
  const [out, err, [exitCode]] = await Promise.all([text(child.stdout!), text(child.stderr!), once(child, "exit")]);
  return { exitCode, out, err };
}

function start(args: readonly string[], env: Environment, node: string[] = []): ChildProcess {
  return spawn(process.execPath, [...node, BIN, ...args], {
    env: { PATH: process.env.PATH ?? "", NO_COLOR: "1", ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
}

export type Up = {
  directory: string;
  url: string;
  key: string;
  /** A command in the same checkout, so to say, and in this process. */
  run(...args: string[]): Promise<Ended>;
  /** Asks it to end; answers its exit code. */
  stop(): Promise<number | null>;
  remove(): void;
};

/** `punctual up` on a directory of its own, ready to be asked. */
export async function startUp(env: Environment = {}): Promise<Up> {
  const directory = makeTemporaryFolder("punctual-cli-");
  const here = { PUNCTUAL_DIR: directory };
  const child = start(["up"], { ...here, PUNCTUAL_PORT: "0", ...env });
  const exited = once(child, "exit");
  let said = "";
  await new Promise<void>((resolve, reject) => {
    child.stdout!.on("data", (chunk) => {
      said += String(chunk);
      if (said.includes("Ctrl-C")) resolve();
    });
    child.stderr!.on("data", (chunk) => {
      said += String(chunk);
    });
    child.once("exit", () => reject(new Error(`it ended before it was up:\n${said}`)));
  });
  return {
    directory,
    url: readFileSync(join(directory, "url"), "utf8").trim(),
    key: readFileSync(join(directory, "key"), "utf8").trim(),
    run: (...args) => runHere(args, here),
    async stop() {
      child.kill("SIGTERM");
      return (await exited)[0];
    },
    remove: () => rmSync(directory, { recursive: true, force: true }),
  };
}
