#!/usr/bin/env node
// The `punctual` command. Plain JavaScript, because it may be started by a Node too old for the program: then it hands over
// to the Node of package.json, or, where nothing is installed yet, to ops/bootstrap.mjs.
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import * as nodeModule from "node:module";
import { constants } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const MAIN = join(ROOT, "src", "app", "main.ts");
const BOOTSTRAP = join(ROOT, "ops", "bootstrap.mjs");
/** What is compiled once is kept: it halves the time a command takes to start. Where it cannot be written, Node goes without. */
const COMPILED = join(ROOT, "node_modules", ".cache", "punctual", "compiled");
/** Runs TypeScript files without a flag and without a warning. */
const isGood = (major) => major >= 24;
/** With a warning; taken where package.json's Node was not installed. */
const isGoodEnough = (major, minor) => major > 22 || (major === 22 && minor >= 18);

const args = process.argv.slice(2);
const isInstalled = existsSync(join(ROOT, "node_modules", "commander"));
const ours = [join(ROOT, "node_modules", "node", "bin", "node"), join(ROOT, "node_modules", ".bin", "node")];
const node = ours.find((path) => existsSync(path));
const [major, minor] = process.versions.node.split(".").map(Number);
const runsHere = isGood(major) || (node === undefined && isGoodEnough(major, minor));

if (isInstalled && runsHere) {
  nodeModule.enableCompileCache?.(process.env.NODE_COMPILE_CACHE ?? COMPILED);
  await import("./main.ts");
} else if (isInstalled && node !== undefined) process.exitCode = await handOver(node, [MAIN, ...args]);
else process.exitCode = await handOver(process.execPath, [BOOTSTRAP, ...(args.length > 0 ? args : ["--help"])]);

/** Runs the program in the foreground; resolves with its exit code. Signals reach it, and it is told when we are gone. */
function handOver(command, args) {
  // The channel carries no messages: it breaks when this process dies, however it dies.
  const env = { NODE_COMPILE_CACHE: COMPILED, ...process.env };
  const child = spawn(command, args, { env, stdio: ["inherit", "inherit", "inherit", "ipc"] });
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) {
    process.on(signal, () => {
      // In a terminal Ctrl-C reaches the whole group already; twice would mean "at once".
      if (signal !== "SIGINT" || !process.stdin.isTTY) child.kill(signal);
    });
  }
  return new Promise((resolve) => {
    child.once("error", (error) => {
      console.error(`punctual: ${command} could not be started: ${error.message}`);
      resolve(127);
    });
    child.once("exit", (code, signal) => resolve(code ?? 128 + (constants.signals[signal] ?? 0)));
  });
}
