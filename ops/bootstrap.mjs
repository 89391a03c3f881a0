// The door to every command: `node ops/bootstrap.mjs up | test | bench | <any command of the CLI> [arguments]`.
// Runs on any Node from 18 on and without node_modules: it installs what is missing and hands over to the Node of package.json.
import { spawn, spawnSync } from "node:child_process";
import { accessSync, constants, existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { constants as os, tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const ROOT = dirname(dirname(fileURLToPath(import.meta.url)));
const MODULES = join(ROOT, "node_modules");
const BIN = join(MODULES, ".bin");

/** The first that runs TypeScript files without a flag. */
const OLDEST_NODE_FOR_US = [22, 18];
const OLDEST_NODE_FOR_NPM = [18, 0];

function refuse(message) {
  console.error(`punctual: ${message}`);
  process.exit(1);
}

function isAtLeast(version, [major, minor]) {
  const [ourMajor = 0, ourMinor = 0] = version.replace(/^v/, "").split(".").map(Number);
  return ourMajor > major || (ourMajor === major && ourMinor >= minor);
}

function readLock(path) {
  return JSON.parse(readFileSync(path, "utf8")).packages ?? {};
}

/** npm writes node_modules/.package-lock.json last of all, so it tells what a completed install brought. */
function isInstalled() {
  const installedLock = join(MODULES, ".package-lock.json");
  if (!existsSync(installedLock)) return false;
  const installed = readLock(installedLock);
  return Object.entries(readLock(join(ROOT, "package-lock.json"))).every(([place, wanted]) => {
    if (place === "" || wanted.link) return true;
    const found = installed[place];
    // Optional packages of other platforms are never there.
    return found ? found.version === wanted.version : Boolean(wanted.optional || wanted.devOptional);
  });
}

/** npm as the program that runs us, else the one on PATH. Not by our own Node: `npm ci` deletes that one. */
function npmCommand() {
  const { npm_execpath: npm, npm_node_execpath: node } = process.env;
  return npm && node && existsSync(node) && /npm-cli\.c?js$/.test(npm) ? [node, npm] : ["npm"];
}

function install() {
  try {
    accessSync(existsSync(MODULES) ? MODULES : ROOT, constants.W_OK);
  } catch {
    refuse(`no permission to write to ${ROOT}, where the packages must be installed. Change its owner, or use a copy.`);
  }
  console.error("punctual: installing packages (npm ci) …");
  const [command, ...first] = npmCommand();
  const args = [...first, "ci", "--include=dev", "--include=optional", "--no-audit", "--no-fund", "--loglevel=error"];
  // What npm prints goes to stderr: stdout belongs to the command.
  const { error, status } = spawnSync(command, args, { cwd: ROOT, stdio: ["inherit", 2, 2] });
  if (error?.code === "ENOENT") refuse("npm was not found on PATH. It comes with Node: https://nodejs.org/");
  if (error) refuse(`npm could not be started: ${error.message}`);
  if (status !== 0) refuse("npm ci failed (see above). Is there a network, and room on the disk?");
}

function versionOf(node) {
  const { stdout, status } = spawnSync(node, ["--version"], { encoding: "utf8" });
  return status === 0 ? stdout.trim() : undefined;
}

/** The Node of package.json; where it is missing or does not run here (musl, say), the system's if that is new enough. */
function chooseNode() {
  // Not the link in .bin: npm makes none when install scripts are forbidden.
  const ours = join(MODULES, "node", "bin", "node");
  const version = versionOf(ours);
  if (version && isAtLeast(version, OLDEST_NODE_FOR_US)) return ours;
  if (isAtLeast(process.version, OLDEST_NODE_FOR_US) && existsSync(process.execPath)) return process.execPath;
  // npm was told not to run install scripts: this one fetches the binary.
  const place = join(MODULES, "node");
  spawnSync(process.execPath, ["installArchSpecificPackage.js"], { cwd: place, stdio: ["ignore", 2, 2] });
  if (versionOf(ours)) return ours;
  return refuse(
    `Node ${process.version} is too old to run Punctual (it needs ${OLDEST_NODE_FOR_US.join(".")} or newer), and the newer one from ` +
      "npm could not be installed. Install a newer Node from https://nodejs.org/ and start again.",
  );
}

/** Runs a program in the foreground; resolves with its exit code. Signals reach it, and it is told when we are gone. */
function run(command, args) {
  // The channel carries no messages: it breaks when this process dies, however it dies.
  const child = spawn(command, args, { cwd: ROOT, stdio: ["inherit", "inherit", "inherit", "ipc"] });
  const listeners = ["SIGINT", "SIGTERM", "SIGHUP"].map((signal) => {
    // In a terminal Ctrl-C reaches the whole group already; twice would mean "at once".
    const forward = () => {
      if (signal !== "SIGINT" || !process.stdin.isTTY) child.kill(signal);
    };
    process.on(signal, forward);
    return () => process.off(signal, forward);
  });
  const npm = process.env.npm_lifecycle_event ? process.ppid : undefined;
  const orphaned = setInterval(() => {
    if (npm !== undefined && process.ppid !== npm) child.kill("SIGTERM");
  }, 1000);
  return new Promise((resolve) => {
    const finish = (code) => {
      clearInterval(orphaned);
      for (const stopListening of listeners) stopListening();
      resolve(code);
    };
    child.once("error", (error) => {
      console.error(`punctual: ${command} could not be started: ${error.message}`);
      finish(127);
    });
    child.once("exit", (code, signal) => finish(code ?? 128 + (os.signals[signal] ?? 0)));
  });
}

const STATIC_CHECKS = [["biome", "check", "."], ["tsc", "--noEmit"], ["knip"]];

/** Everything: the static checks, all tests, and the totals in the last line. */
async function testEverything() {
  let failed = 0;
  for (const [tool, ...args] of STATIC_CHECKS) {
    console.log(`> ${[tool, ...args].join(" ")}`);
    const code = await run(join(BIN, tool), args);
    if (code >= 128) return code;
    if (code !== 0) failed++;
  }
  const folder = mkdtempSync(join(tmpdir(), "punctual-report-"));
  const report = join(folder, "report.json");
  console.log("> vitest run");
  const reporters = ["--reporter=default", "--reporter=json", `--outputFile.json=${report}`];
  const code = await run(join(BIN, "vitest"), ["run", ...reporters]);
  const tests = countTests(report);
  rmSync(folder, { recursive: true, force: true });
  failed += Math.max(tests.failed, code === 0 && tests.passed > 0 ? 0 : 1);
  console.log(`${tests.passed} passed, ${failed} failed`);
  return failed === 0 ? 0 : code || 1;
}

function countTests(report) {
  if (!existsSync(report)) return { passed: 0, failed: 0 };
  const { numPassedTests, numFailedTests, testResults } = JSON.parse(readFileSync(report, "utf8"));
  // A file that could not even be loaded has no tests to count.
  const unloadable = testResults.filter(
    (file) => file.status === "failed" && !file.assertionResults.some((one) => one.status === "failed"),
  );
  return { passed: numPassedTests, failed: numFailedTests + unloadable.length };
}

async function main([command = "up", ...args]) {
  if (!isAtLeast(process.version, OLDEST_NODE_FOR_NPM)) {
    refuse(`Node ${process.version} is too old even to install Punctual; take 18 or newer: https://nodejs.org/`);
  }
  if (!isInstalled()) install();
  const node = chooseNode();
  process.env.PATH = [dirname(node), BIN, process.env.PATH].join(delimiter);
  // What is compiled once is kept: it halves the time a process takes to start. Where it cannot be written, Node goes without.
  process.env.NODE_COMPILE_CACHE ??= join(MODULES, ".cache", "punctual", "compiled");
  if (command === "test") return args.length > 0 ? run(join(BIN, "vitest"), ["run", ...args]) : testEverything();
  if (command === "bench") return run(node, [join(ROOT, "ops", "bench", "main.ts"), ...args]);
  return run(node, [join(ROOT, "src", "app", "main.ts"), command, ...args]);
}

process.exitCode = await main(process.argv.slice(2));
