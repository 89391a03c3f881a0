import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { text } from "node:stream/consumers";
import { afterEach, beforeEach, expect, test } from "vitest";

const BOOTSTRAP = join(import.meta.dirname, "..", "..", "..", "ops", "bootstrap.mjs");

let checkout: string;

/** A checkout with a stand-in for the program and one installed package. */
beforeEach(() => {
  checkout = mkdtempSync(join(tmpdir(), "punctual-checkout-"));
  mkdirSync(join(checkout, "ops"));
  cpSync(BOOTSTRAP, join(checkout, "ops", "bootstrap.mjs"));
  write("package.json", '{"type":"module"}');
  writeLock("package-lock.json", "1.0.0");
  writeLock("node_modules/.package-lock.json", "1.0.0");
});

afterEach(() => rmSync(checkout, { recursive: true, force: true }));

function write(path: string, content: string, mode = 0o644): void {
  mkdirSync(dirname(join(checkout, path)), { recursive: true });
  writeFileSync(join(checkout, path), content, { mode });
}

function writeLock(path: string, version: string): void {
  const packages = {
    "node_modules/a": { version },
    "node_modules/other-platform": { version: "1.0.0", optional: true },
  };
  write(
    path,
    JSON.stringify({ packages: path.startsWith("node_modules") ? { "node_modules/a": { version } } : packages }),
  );
}

function bootstrap(...args: string[]): { child: ChildProcess; output: Promise<string>; exited: Promise<unknown[]> } {
  const child = spawn(process.execPath, [join(checkout, "ops", "bootstrap.mjs"), ...args], {
    env: { PATH: join(checkout, "bin") },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const output = Promise.all([text(child.stdout), text(child.stderr)]).then((both) => both.join(""));
  return { child, output, exited: once(child, "exit") };
}

async function firstLine(child: ChildProcess): Promise<string> {
  const [chunk] = await once(child.stdout!, "data");
  return String(chunk).trim();
}

test("with everything installed the program runs at once, with its arguments, and its exit code is handed on", async () => {
  write("src/app/main.ts", "console.log(process.argv.slice(2).join(' ')); process.exitCode = 7 as number;");
  const { output, exited } = bootstrap("up", "--port", "1");
  expect(await output).toBe("up --port 1\n");
  expect((await exited)[0]).toBe(7);
});

test("a changed package-lock.json is installed before the program runs", async () => {
  write(
    "src/app/main.ts",
    "import { existsSync } from 'node:fs'; console.log(existsSync('npm.ran') ? 'after' : 'before');",
  );
  writeLock("package-lock.json", "1.0.1");
  write("bin/npm", '#!/bin/sh\necho "npm $1"; : > npm.ran\n', 0o755);
  expect(await bootstrap("up").output).toMatch(/^after\n[\s\S]*installing packages[\s\S]*npm ci/);
});

test("without npm the error says where to get it", async () => {
  rmSync(join(checkout, "node_modules"), { recursive: true });
  const { output, exited } = bootstrap("up");
  expect(await output).toMatch(/npm was not found on PATH/);
  expect((await exited)[0]).toBe(1);
});

test("SIGTERM reaches the program, which ends in its own time", async () => {
  write(
    "src/app/main.ts",
    "setInterval(() => {}, 1000); process.on('SIGTERM', () => process.exit(5)); console.log('up');",
  );
  const { child, exited } = bootstrap("up");
  await firstLine(child);
  child.kill("SIGTERM");
  expect((await exited)[0]).toBe(5);
});

test("a program learns that the bootstrap was killed", async () => {
  const program =
    "process.once('disconnect', () => process.exit(0)); setInterval(() => {}, 1000); console.log(process.pid);";
  write("src/app/main.ts", program);
  const { child } = bootstrap("up");
  const pid = Number(await firstLine(child));
  child.kill("SIGKILL");
  await expect.poll(() => isAlive(pid)).toBe(false);
});

test("a run without a single test is a failure with its totals on the last line", async () => {
  for (const tool of ["biome", "tsc", "knip", "vitest"]) write(`node_modules/.bin/${tool}`, "#!/bin/sh\n", 0o755);
  const { output, exited } = bootstrap("test");
  expect(await output).toMatch(/\n0 passed, 1 failed\n$/);
  expect((await exited)[0]).toBe(1);
});

test("a static check that fails counts as one failure beside the tests", async () => {
  for (const tool of ["biome", "tsc"]) write(`node_modules/.bin/${tool}`, "#!/bin/sh\n", 0o755);
  write("node_modules/.bin/knip", "#!/bin/sh\nexit 1\n", 0o755);
  const report = '{"numPassedTests":12,"numFailedTests":0,"testResults":[]}';
  write("node_modules/.bin/vitest", `#!/bin/sh\nfor last; do :; done\necho '${report}' > "\${last#*=}"\n`, 0o755);
  const { output, exited } = bootstrap("test");
  expect(await output).toMatch(/\n12 passed, 1 failed\n$/);
  expect((await exited)[0]).toBe(1);
});

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
