#!/usr/bin/env node
// The `punctual` command. Plain JavaScript, because it may be started by a Node too old for the program: then it hands over
// to the Node of package.json, or, where nothing is installed yet, to ops/bootstrap.mjs.
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { constants } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const MAIN = join(ROOT, "src", "app", "main.ts");
/** The first that runs TypeScript files without a flag and without a warning. */
const NEW_ENOUGH = 24;

const ours = [join(ROOT, "node_modules", "node", "bin", "node"), join(ROOT, "node_modules", ".bin", "node")];
const isInstalled = existsSync(join(ROOT, "node_modules", "commander"));
const isNewEnough = Number(process.versions.node.split(".")[0]) >= NEW_ENOUGH;

if (isInstalled && isNewEnough) await import("./main.ts");
else {
  const node = ours.find((path) => existsSync(path));
  if (isInstalled && node !== undefined) process.exitCode = await handOver(node);
  else {
    if (process.argv.length === 2) process.argv.push("--help");
    await import("../../ops/bootstrap.mjs");
  }
}

/** Runs the program in the foreground; resolves with its exit code. Signals reach it, and it is told when we are gone. */
function handOver(node) {
  // The channel carries no messages: it breaks when this process dies, however it dies.
  const child = spawn(node, [MAIN, ...process.argv.slice(2)], { stdio: ["inherit", "inherit", "inherit", "ipc"] });
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) {
    process.on(signal, () => {
      // In a terminal Ctrl-C reaches the whole group already; twice would mean "at once".
      if (signal !== "SIGINT" || !process.stdin.isTTY) child.kill(signal);
    });
  }
  return new Promise((resolve) => {
    child.once("error", (error) => {
      console.error(`punctual: ${node} could not be started: ${error.message}`);
      resolve(127);
    });
    child.once("exit", (code, signal) => resolve(code ?? 128 + (constants.signals[signal] ?? 0)));
  });
}
