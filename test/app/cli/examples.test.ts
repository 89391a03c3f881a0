import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, expect, test } from "vitest";
import { webhookReceiver } from "../../support/receivers.ts";
import { startUp, type Up } from "./punctual.ts";

/** What the pages show, typed into a shell against a system that has just been started. */

const ROOT = join(import.meta.dirname, "..", "..", "..");
let up: Up;
beforeAll(async () => {
  up = await startUp({ PUNCTUAL_OUTBOUND_ALLOW: "127.0.0.1" });
});
afterAll(async () => {
  await up.stop();
  up.remove();
});

/** Commands of the first block of `page` after `heading` that runs `npx`, one each. */
function commandsIn(page: string, heading: string): string[] {
  const after = readFileSync(join(ROOT, page), "utf8").split(heading)[1]!;
  const block = [...after.matchAll(/```sh\n([\s\S]*?)```/g)].find(([, code]) => code!.includes("npx "))![1]!;
  // A command goes on where its line ends with a backslash, or inside quotes.
  const isWhole = (code: string) => !code.endsWith("\\") && code.split("'").length % 2 === 1;
  const commands: string[] = [];
  for (const line of block.trimEnd().split("\n")) {
    const last = commands.pop();
    if (last === undefined) commands.push(line);
    else if (isWhole(last)) commands.push(last, line);
    else commands.push(`${last}\n${line}`);
  }
  return commands;
}

/** In one shell, which stops at the first command that fails. */
async function type(commands: readonly string[]): Promise<{ exitCode: number | null; said: string }> {
  const bin = join(ROOT, "src", "app", "bin.mjs");
  const shell = spawn("sh", ["-ec", [`npx() { shift; node "${bin}" "$@"; }`, "set -x", ...commands].join("\n")], {
    cwd: ROOT,
    env: {
      PATH: `${join(process.execPath, "..")}:${process.env.PATH}`,
      PUNCTUAL_DIR: up.directory,
      NO_COLOR: "1",
    },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const [out, err, [exitCode]] = await Promise.all([text(shell.stdout), text(shell.stderr), once(shell, "exit")]);
  return { exitCode, said: out + err };
}

test("every example of docs/cli.md that needs nothing more succeeds on a new installation", async () => {
  const commands = commandsIn("docs/cli.md", "# The command line").filter((one) => !one.includes("# needs "));
  expect(commands.length).toBeGreaterThan(12);
  const { exitCode, said } = await type(commands);
  expect(exitCode, said).toBe(0);
});

test("the README's webhook arrives", async ({ onTestFinished }) => {
  const receiver = await webhookReceiver();
  onTestFinished(() => receiver.close());
  const commands = commandsIn("README.md", "### Telling others")
    .filter((one) => one.startsWith("npx "))
    .map((one) => one.replace("http://127.0.0.1:9000/", receiver.url));
  const { exitCode, said } = await type(commands);
  expect(exitCode, said).toBe(0);
  await expect.poll(() => receiver.calls.length).toBeGreaterThan(0);
  expect(JSON.parse(receiver.calls[0]!.body)).toMatchObject({ type: "run.succeeded", schedule: { name: "Told" } });
});

test("the README's customer has limits and a key, and the admin's key acts for it", async () => {
  const { exitCode, said } = await type(commandsIn("README.md", "### Customers of your own"));
  expect(exitCode, said).toBe(0);
  expect(said).toContain("First key, owner");
  expect(said).toMatch(/schedules\s+0\s+200/);
});

test("a quota that always has a limit is not set to none, and what the API refuses is said with its option", async () => {
  const none = await type(["npx punctual quotas set --api-burst none"]);
  expect(none).toMatchObject({ exitCode: 2 });
  expect(none.said).toContain('--api-burst: found "none"; allowed: a whole number\n');
  const zero = await type(["npx punctual quotas set --api-rate 0"]);
  expect(zero).toMatchObject({ exitCode: 1 });
  expect(zero.said).toContain("apiRatePerSecond (--api-rate): is too small");
});

test("the first call of docs/api.md makes a schedule", async () => {
  const page = readFileSync(join(ROOT, "docs", "api.md"), "utf8");
  const call = /```sh\n([\s\S]*?)```/.exec(page)![1]!.replaceAll(".punctual/", `${up.directory}/`);
  const { exitCode, said } = await type([call]);
  expect(exitCode, said).toBe(0);
  expect(said).toContain('"key":"sales"');
});
