import { spawnSync } from "node:child_process";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { buffer } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startTestServer, type TestServer } from "../../../api/server.ts";
import { runHere } from "../in-process.ts";

/** Servers and workers, good and bad, held against the protocol. Heartbeats are quick: so are the tests. */
const hasPython = spawnSync("python3", ["--version"]).status === 0;
if (!hasPython) console.log("No python3 on PATH: the example worker in Python is not held against the protocol.");

let server: TestServer;
let owner: string;
let other: string;
beforeAll(async () => {
  const lease = { ttlMs: 10_000, heartbeatMs: 300, marginMs: 500 };
  server = await startTestServer({}, 0, 8, undefined, lease);
  owner = await server.key(await server.tenant("conforming"), "owner");
  other = await server.key(await server.tenant("another"), "worker");
});
afterAll(() => server?.close());

type Checks = { checks: { check: string; outcome: string; detail: string | null }[]; failed: number };

async function conform(url: string, ...args: string[]): Promise<Checks & { exitCode: number | null }> {
  const said = ["conformance", "--url", url, "--key", owner, "--json", ...args];
  const { exitCode, out, err } = await runHere(said, { PATH: process.env.PATH ?? "" });
  expect(out, err).toMatch(/^\{/);
  return { exitCode, ...(JSON.parse(out) as Checks) };
}

const failures = ({ checks }: Checks) => checks.filter((one) => one.outcome === "fail");
const root = join(import.meta.dirname, "..", "..", "..", "..");

describe("a server", () => {
  it("of ours conforms", async () => {
    const found = await conform(server.url, "--other-key", other);
    expect(failures(found)).toEqual([]);
    expect([found.exitCode, found.checks.length, found.checks.filter((one) => one.outcome === "skip")]).toEqual([
      0,
      17,
      [],
    ]);
    const letters = async (...args: string[]) =>
      (await runHere(["dead-letters", "list", "--url", server.url, "--key", owner, "--json", ...args], {})).out;
    expect(JSON.parse(await letters()).items, "what failed on purpose asks for no decision").toEqual([]);
    expect(JSON.parse(await letters("--state", "dismissed")).items).not.toEqual([]);
  });

  it("that mistakes one refusal for another does not, and it is said where", async () => {
    const mistaken = createServer(async (request, response) => {
      const { host: _, connection: __, ...headers } = request.headers;
      const body = await buffer(request);
      const answer = await fetch(server.url + request.url, {
        method: request.method!,
        headers: headers as Record<string, string>,
        ...(body.length === 0 ? {} : { body }),
      });
      const text = await answer.text();
      response.writeHead(answer.status, { "content-type": answer.headers.get("content-type")! });
      response.end(text.replace('"code":"result-conflict"', '"code":"stale-fence"'));
    });
    await new Promise<void>((resolve) => mistaken.listen(0, "127.0.0.1", resolve));
    const found = await conform(`http://127.0.0.1:${(mistaken.address() as AddressInfo).port}`);
    mistaken.closeAllConnections();
    mistaken.close();
    expect(found.exitCode).toBe(1);
    expect(failures(found)).toMatchObject([
      {
        check: expect.stringContaining("a second result is a conflict"),
        detail: expect.stringContaining("result-conflict"),
      },
    ]);
  });
});

describe("a worker", () => {
  const inPython = `python3 -B ${join(root, "ops/examples/python/conformance_jobs.py")}`;
  it.each([
    ...(hasPython ? [["in Python, without a dependency", inPython]] : []),
    [
      "made of PunctualWorker",
      `${process.execPath} ${fileURLToPath(new URL("./punctual-worker.ts", import.meta.url))}`,
    ],
  ])(
    "%s conforms",
    async (_what, command) => {
      const found = await conform(server.url, "--run", command);
      expect(failures(found)).toEqual([]);
      expect([found.exitCode, found.checks.length]).toEqual([0, 9]);
    },
    60_000,
  );

  it("that is not there, or ends by itself, is not waited for", async () => {
    const found = await conform(server.url, "--run", "sh -c 'exit 7'", "--patience", "3600");
    expect(found.exitCode).toBe(1);
    expect(failures(found)).toHaveLength(9);
    expect(failures(found)[0]?.detail).toBe("the worker has ended by itself (exit code 7)");
  });

  it.runIf(hasPython)(
    "that beats no heart, says nothing twice and heeds nothing fails where it should",
    async () => {
      const command = `python3 -B ${join(import.meta.dirname, "broken_worker.py")}`;
      const found = await conform(server.url, "--run", command, "--patience", "10");
      expect(found.exitCode).toBe(1);
      const failed = failures(found).map(({ check }) => check);
      expect(failed).toContain("a claim and a completion whose answers are lost are said again, with the same words");
      expect(failed).toContain("it sends heartbeats while a run takes its time");
      expect(failed).toContain("it heeds a cancellation");
      expect(failed).not.toContain("it does a job and hands in its output, byte for byte");
    },
    240_000,
  );
});
