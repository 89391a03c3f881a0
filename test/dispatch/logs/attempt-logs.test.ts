import { afterEach, beforeEach, expect, test } from "vitest";
import { z } from "zod";
import type { LogStore } from "../../../src/authority/attempts/keep-log.ts";
import { createAttemptLog } from "../../../src/dispatch/logs/attempt-log.ts";
import { createLogKeeper } from "../../../src/dispatch/logs/log-keeper.ts";
import { NO_SECRETS } from "../../../src/domain/secrets/known.ts";
import type { JobContext } from "../../../src/handlers/context.ts";
import { defineJob } from "../../../src/handlers/registry.ts";
import { running } from "../../authority/scenes.ts";
import { allSucceed, type Node, startNode, until } from "../../support/system.ts";
import { createWorld, type World } from "../../support/world.ts";

let world: World;
let node: Node | undefined;

beforeEach(async () => {
  world = await createWorld();
});
afterEach(async () => {
  await node?.stop();
  node = undefined;
  await world.check();
  await world.close();
});

async function runOnce(run: (ctx: JobContext) => Promise<void>, config: Record<string, string> = {}): Promise<void> {
  const id = await world.newSchedule({ retry: { maxAttempts: 1 } as never });
  await world.makeDue(id);
  await world.materialize([id]);
  const job = defineJob({ name: "test.noop", version: 1, input: z.unknown(), run });
  node = await startNode({ roles: ["worker"], url: world.url, jobs: [job], config });
}

async function kept(): Promise<string> {
  const { rows } = await world.admin.query(
    "select o.uri, o.version from attempt_log l join object o on o.id = l.object_id order by l.n",
  );
  let text = "";
  for (const part of rows) text += Buffer.concat(await (await node!.core.objects.open(part)).toArray()).toString();
  return text;
}

test("what a job says can be read while it runs, and its last words after it has ended", async () => {
  const gate = Promise.withResolvers<void>();
  await runOnce(async (ctx) => {
    ctx.log.info({ rows: 3 }, "begun");
    ctx.capture(`${"x".repeat(70_000)}\n`);
    await gate.promise;
    ctx.capture(Buffer.from("no newline at the end"));
  });
  await until("its first words are kept", async () => (await kept()).length > 70_000);
  expect(await kept()).toMatch(/^\S+ INFO begun \{"rows":3\}\nx{70000}\n$/);
  gate.resolve();
  await allSucceed(world.admin, 1);
  await until("its last words are kept", async () => (await kept()).endsWith("\nno newline at the end"));
});

test("a log that cannot be stored neither delays its attempt nor fails it, and is stored when it can be", async () => {
  const { grant } = await running(world);
  let isBroken = true;
  const stored: string[] = [];
  const store: LogStore = {
    limitBytes: 1_000,
    async put(of, bytes) {
      if (isBroken) throw new Error("the disk is full");
      stored.push(Buffer.from(bytes).toString());
      return {
        name: `log-${of.part}.txt`,
        uri: `fs:${of.part}`,
        version: "1",
        sha256: "0".repeat(64),
        size: bytes.length,
      };
    },
    remove: async () => {},
  };
  const keeper = createLogKeeper(world.authority, store);
  await keeper.start();
  const log = keeper.open({
    runId: grant.runId,
    attempt: grant.attempt,
    fence: grant.fence,
    secrets: () => NO_SECRETS,
  });
  for (const letter of "abcdef") log.capture(letter.repeat(300));
  log.end();
  const failures = async () => (await world.authority.metrics.attemptLogFailures.get()).values[0]?.value ?? 0;
  await until("it was tried", async () => (await failures()) > 0);
  isBroken = false;
  await until("all is stored", async () => log.waitingBytes === 0);
  await keeper.stop();
  // The first piece was on its way; of the rest the newest is kept, and it is known how much is missing.
  const { rows } = await world.admin.query("select at_byte::int as at, size from attempt_log order by n");
  const last = rows.at(-1)!;
  expect(last.at + last.size).toBe(1_800);
  expect(stored.join("")).toMatch(/f{300}$/);
  expect(stored.join("").length).toBeLessThan(1_800);
});

test("a log that comes byte by byte costs no more than one that comes in lines", () => {
  const log = createAttemptLog(world.authority, {
    ...{ runId: "0196a0c1-5c00-8123-8abc-0123456789ab", attempt: 1, fence: 1n },
    limitBytes: 1 << 20,
    secrets: () => NO_SECRETS,
  });
  const all = 1_200_000;
  for (let i = 0; i < all; i++) log.capture(i === all - 1 ? "!" : ".");
  log.end();
  const pieces: { skipped: number; bytes: Uint8Array }[] = [];
  for (let piece = log.next(); piece !== undefined; piece = log.next()) {
    pieces.push(piece);
    log.done("kept");
  }
  const bytes = pieces.reduce((sum, one) => sum + one.bytes.byteLength, 0);
  expect(bytes).toBeLessThanOrEqual(1 << 20);
  expect(bytes).toBeGreaterThan(1_000_000);
  expect(pieces.map((one) => one.skipped)).toEqual([all - bytes, 0, 0, 0, 0].slice(0, pieces.length));
  expect(pieces.at(-1)!.bytes.at(-1)).toBe("!".charCodeAt(0));
});

test("logs that wait for their store wait in little memory: the oldest are given up", async () => {
  const store: LogStore = {
    limitBytes: 1 << 20,
    put: () => Promise.reject(new Error("the store is away")),
    remove: async () => {},
  };
  const keeper = createLogKeeper(world.authority, store);
  await keeper.start();
  const logs = Array.from({ length: 70 }, (_, i) => {
    const runId = `0196a0c1-5c00-8123-8abc-${String(i).padStart(12, "0")}`;
    const log = keeper.open({ runId, attempt: 1, fence: 1n, secrets: () => NO_SECRETS });
    log.capture("x".repeat(1 << 20));
    log.end();
    return log;
  });
  const waiting = () => logs.reduce((sum, one) => sum + one.waitingBytes, 0);
  await until("some are given up", () => waiting() <= 64 << 20);
  expect(logs.map((one) => one.waitingBytes > 0)).toEqual(logs.map((_, i) => i >= 6));
  await keeper.stop();
});

test("no log is kept where none is wanted", async () => {
  await runOnce(async (ctx) => ctx.capture("x".repeat(70_000)), { PUNCTUAL_LOG_LIMIT_BYTES: "0" });
  await allSucceed(world.admin, 1);
  await node!.stop();
  expect((await world.admin.query("select from object")).rowCount).toBe(0);
});
