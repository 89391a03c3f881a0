import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { BOARD_BYTES, createBoard } from "../../../src/app/main-thread/board.ts";
import { until } from "../../support/system.ts";
import { createWorld, type World } from "../../support/world.ts";

const CHILD = fileURLToPath(new URL("./blocked-child.ts", import.meta.url));

/** What a worker with these settings says while it runs one run of each payload. */
async function withWorker(
  config: object,
  work: (world: World, said: () => Record<string, unknown>[]) => Promise<void>,
) {
  const world = await createWorld();
  const options = {
    roles: ["worker"],
    leases: "short",
    url: world.url,
    config: { PUNCTUAL_LOG_LEVEL: "warn", PUNCTUAL_BLOCKED_MS: "600", ...config },
  };
  const { PATH, NODE_COMPILE_CACHE } = process.env;
  const child = spawn(process.execPath, [CHILD], {
    stdio: ["ignore", "inherit", "pipe", "ipc"],
    env: { PATH, NODE_COMPILE_CACHE, PUNCTUAL_TEST_NODE: JSON.stringify({ options, directory: "" }) },
  });
  const exited = once(child, "exit");
  const said: Record<string, unknown>[] = [];
  createInterface(child.stderr!).on("line", (line) => line.startsWith("{") && said.push(JSON.parse(line)));
  try {
    await work(world, () => said);
  } finally {
    child.kill("SIGTERM");
    await exited;
  }
  await world.check();
  await world.close();
}

async function bear(world: World, payload: Record<string, unknown>, change: object = {}): Promise<void> {
  const id = await world.newSchedule({ payload: payload as never, retry: { maxAttempts: 1 } as never, ...change });
  await world.makeDue(id);
  await world.materialize([id]);
}

test("a worker whose event loop is blocked says so while it is, by which jobs and where; afterwards how long", async () => {
  await withWorker({}, async (world, said) => {
    const during = () => said().filter((line) => String(line.msg).startsWith("the event loop is blocked"));
    const after = () => said().filter((line) => String(line.msg).startsWith("the event loop was blocked"));
    await bear(world, { deed: "computing", ms: 4_000 });
    await until("it is said", async () => during().length === 1);
    // The job is still at it: nobody else could have said so.
    expect(after()).toEqual([]);
    expect(during()[0]).toMatchObject({ level: "error", jobs: [expect.stringMatching(/^test\.noop@1 run_\w+ 1$/)] });
    expect(during()[0]!.where).toEqual(
      expect.arrayContaining([expect.stringMatching(/^burn .*blocked-child\.ts:\d+$/)]),
    );
    await until("its end is said", async () => after().length === 1);
    expect(after()[0]).toMatchObject({ suspects: [{ job: "test.noop@1", attempt: 1 }] });
    const known = async () => (await world.admin.query("select blocked_ms from worker")).rows[0]?.blocked_ms;
    await until("its presence says so", async () => (await known()) >= 600);

    await bear(world, { deed: "waiting in the kernel", ms: 4_000 });
    await until("the next is said", async () => during().length === 2);
    expect(during()[1]).toMatchObject({ where: [], jobs: [expect.stringMatching(/^test\.noop@1/)] });
  });
});

test("an endless loop in a thread holds up nobody: heartbeats go on, other jobs run, and its deadline ends it", async () => {
  await withWorker({}, async (world, said) => {
    const job = { kind: "function", name: "test.thread", version: 1 };
    // Longer than a lease lasts without a heartbeat.
    await bear(world, { deed: "an endless loop" }, { job, attemptTimeoutMs: 4_000 });
    await until("it runs", async () => (await world.live()).some((run) => run.state === "running"));
    await bear(world, { deed: "computing", ms: 1 });
    const ends = async () =>
      (await world.admin.query("select state, error_code, attempts from run order by finished_at")).rows;
    await until("both end", async () => (await world.live()).length === 0);
    expect(await ends()).toEqual([
      { state: "succeeded", error_code: null, attempts: 1 },
      { state: "failed", error_code: "attempt-timeout", attempts: 1 },
    ]);
    expect(said().map((line) => line.msg)).not.toContainEqual(expect.stringContaining("event loop"));
  });
});

test("what was put up on the board is read until it is taken down; what has no place is left out", () => {
  const memory = new SharedArrayBuffer(BOARD_BYTES);
  const [writer, reader] = [createBoard(memory), createBoard(memory)];
  const takeDown = writer.put("first");
  writer.put("ä".repeat(500));
  expect(reader.read()).toEqual(["first", "ä".repeat(126)]);
  takeDown();
  for (let i = 0; i < 100; i++) writer.put(`number ${i}`);
  expect(reader.read()).toHaveLength(64);
  expect(reader.read()).toContain("number 0");
});
