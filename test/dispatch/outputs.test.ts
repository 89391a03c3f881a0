import { afterEach, beforeEach, expect, test } from "vitest";
import { z } from "zod";
import type { JobContext, JobResult } from "../../src/handlers/context.ts";
import { defineJob } from "../../src/handlers/registry.ts";
import { allSucceed, type Node, startNode, until } from "../support/system.ts";
import { createWorld, type World } from "../support/world.ts";

let world: World;
let node: Node | undefined;

beforeEach(async () => {
  world = await createWorld();
});
afterEach(async () => {
  await node?.stop();
  await world.check();
  await world.close();
});

/** One run of a job that may be tried once, on a worker of its own. */
async function runOnce(run: (ctx: JobContext) => Promise<JobResult> | JobResult, config = {}): Promise<void> {
  const id = await world.newSchedule({ retry: { maxAttempts: 1 } as never });
  await world.makeDue(id);
  await world.materialize([id]);
  const job = defineJob({ name: "test.noop", version: 1, input: z.unknown(), run });
  node = await startNode({ roles: ["worker"], url: world.url, jobs: [job], config });
}

async function failure(): Promise<{ code: string; message: string }> {
  await until("the run ends", async () => (await world.live()).length === 0);
  return (await world.admin.query("select error_code as code, error_message as message from run")).rows[0];
}

async function* pages() {
  yield Buffer.from("page 1, ");
  yield Buffer.from("page 2");
}

for (const [kind, bytes] of [
  ["bytes", () => Buffer.from("page 1, page 2")],
  ["a stream", pages],
] as const) {
  test(`an output that a job stages twice with the same content is one output: ${kind}`, async () => {
    await runOnce(async (ctx) => {
      await ctx.output("report.txt", bytes(), "text/plain");
      return { output: await ctx.output("report.txt", bytes(), "text/plain") };
    });
    await allSucceed(world.admin, 1);
  });
}

test("an output's name cannot be used again for other content", async () => {
  await runOnce(async (ctx) => {
    await ctx.output("report.txt", Buffer.from("one"), "text/plain");
    return { output: await ctx.output("report.txt", Buffer.from("two"), "text/plain") };
  });
  expect(await failure()).toMatchObject({ code: "object-exists" });
});

test("an output that was never staged fails the run for good, and says why", async () => {
  const forged = { uri: "fs:x", version: "v", sha256: "y", size: 1, name: "n", mediaType: "text/plain" };
  await runOnce(() => ({ output: forged }));
  expect(await failure()).toMatchObject({ code: "output-not-staged" });
});

test("a media type that would be a header of its own is refused for good", async () => {
  await runOnce((ctx) => ctx.output("a", Buffer.from("a"), "text/html\r\nx-evil: 1").then(() => undefined));
  expect(await failure()).toEqual({
    code: "media-type-invalid",
    message:
      'mediaType: found "text/html\\r\\nx-evil: 1"; allowed: a media type such as text/html; charset=utf-8, at most 200 characters',
  });
});

for (const [kind, bytes] of [
  ["bytes", () => Buffer.alloc(5_000)],
  ["a stream that never ends", endless],
] as const) {
  test(`an output that is too large fails the run for good, and nothing of it stays: ${kind}`, async () => {
    await runOnce(() => ({ output: { name: "r", mediaType: "text/plain", bytes: bytes() } }), {
      PUNCTUAL_OUTPUT_LIMIT_BYTES: "4096",
    });
    expect(await failure()).toEqual({
      code: "output-too-large",
      message: "an output may have at most 4,096 bytes here",
    });
    const { objects } = await node!.core.objects.list(undefined);
    expect(objects).toEqual([]);
    expect(asked).toBeLessThan(10);
  });
}

let asked = 0;
async function* endless() {
  for (asked = 0; ; asked++) yield Buffer.alloc(1_000);
}

for (const [found, bytes] of [
  ["string", "text"],
  ["bigint", 1n],
  ["null", null],
  [
    "number",
    (async function* () {
      yield 1;
    })(),
  ],
] as const) {
  test(`an output whose bytes are none fails the run for good: ${found}`, async () => {
    await runOnce(() => ({ output: { name: "r", mediaType: "text/plain", bytes: bytes as never } }));
    expect(await failure()).toMatchObject({
      code: "output-invalid",
      message: expect.stringContaining(`found ${found};`),
    });
  });
}
