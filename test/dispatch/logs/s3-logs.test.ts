import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import pg from "pg";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { z } from "zod";
import type { JobContext } from "../../../src/handlers/context.ts";
import { defineJob } from "../../../src/handlers/registry.ts";
import { createObjectCleaner } from "../../../src/loops/objects/object-cleaner.ts";
import type { ObjectStore } from "../../../src/objects/port.ts";
import { createS3Store } from "../../../src/objects/s3/store.ts";
import { call, REPORT, startTestServer, type TestServer } from "../../api/server.ts";
import { startS3rver } from "../../objects/s3/s3rver.ts";
import type { S3Server } from "../../objects/s3/server.ts";
import { type Node, startNode, until } from "../../support/system.ts";

/** Logs of attempts in a bucket, from the worker that stores them to the API that gives them out. */
const DAY_MS = 86_400_000;

let s3: S3Server;
let gate: Awaited<ReturnType<typeof startGate>>;
let objects: ObjectStore;
let server: TestServer;
let key: string;
let node: Node;
let work: (ctx: JobContext) => Promise<void>;

let tests = 0;

beforeAll(async () => {
  s3 = await startS3rver({ conditions: true });
});
afterAll(() => s3.stop());

beforeEach(async () => {
  const prefix = `test-${++tests}/`;
  objects = createS3Store({ ...s3.options, prefix, timeoutMs: 10_000, presignsDownloads: false });
  gate = await startGate(Number(new URL(s3.options.endpoint!).port));
  server = await startTestServer({ objects });
  key = await server.key(await server.tenant("acme"), "owner");
  const { credentials, bucket } = s3.options;
  node = await startNode({
    roles: ["worker"],
    url: server.databaseUrl,
    jobs: [defineJob({ ...REPORT, input: z.unknown(), run: (ctx) => work(ctx) })],
    config: {
      PUNCTUAL_OBJECTS: "s3",
      PUNCTUAL_S3_ENDPOINT: gate.url,
      PUNCTUAL_S3_BUCKET: bucket,
      PUNCTUAL_S3_PREFIX: prefix,
      PUNCTUAL_S3_PATH_STYLE: "yes",
      PUNCTUAL_S3_ACCESS_KEY: credentials!.accessKeyId,
      PUNCTUAL_S3_SECRET_KEY: credentials!.secretAccessKey,
      // Whoever waits for the store's own patience waits longer than any test.
      PUNCTUAL_S3_TIMEOUT_MS: "600000",
      PUNCTUAL_LOG_LIMIT_BYTES: "400000",
    },
  });
});
afterEach(async () => {
  await node.stop();
  await server.close();
  await gate.close();
});

async function run(job: (ctx: JobContext) => Promise<void>): Promise<string> {
  work = job;
  const made = await call(server.url, "POST", "/v1/runs", { key, body: { job: REPORT, payload: {} } });
  return String(made.body.runId);
}
const stored = async () => (await objects.list(undefined)).objects;
const logOf = async (id: string) => (await call(server.url, "GET", `/v1/runs/${id}/logs`, { key })).text;
const ended = (id: string) =>
  until("the run has ended", async () => {
    const { body } = await call(server.url, "GET", `/v1/runs/${id}`, { key });
    return body.state === "succeeded";
  });
const counted = async (name: "attemptLogFailures" | "attemptLogBytes", label: string) =>
  (await node.core.metrics[name].get()).values.find((one) => Object.values(one.labels).includes(label))?.value ?? 0;

test("a log is stored in parts, read while its run goes on and after it, and removed with the results", async () => {
  const goOn = Promise.withResolvers<void>();
  const id = await run(async (ctx) => {
    ctx.capture(`begun\n${"ä".repeat(150_000)}\n`);
    await goOn.promise;
    ctx.capture("the end\n");
  });
  const first = `begun\n${"ä".repeat(150_000)}\n`;
  await until("its first words are read", async () => (await logOf(id)) === first);
  goOn.resolve();
  await ended(id);
  await until("its last words are read", async () => (await logOf(id)) === `${first}the end\n`);
  // A part is a quarter of what is kept of a log at most.
  expect(await stored()).toHaveLength(5);

  const admin = new pg.Client(server.databaseUrl);
  await admin.connect();
  await admin.query("update object set referenced_at = referenced_at - interval '31 days'");
  await createObjectCleaner({ authority: server.authority, objects, keptMs: 30 * DAY_MS }).pass(
    new AbortController().signal,
  );
  await admin.end();
  expect(await stored()).toEqual([]);
  expect(await logOf(id)).toBe("");
});

test("while the store is away attempts go on as ever, and what they said is stored once when it is back", async () => {
  gate.refuse();
  const id = await run(async (ctx) => {
    ctx.capture("said while nobody could store it\n");
  });
  await ended(id);
  await until("it was tried", async () => (await counted("attemptLogFailures", "not-stored")) > 0);
  expect(await logOf(id)).toBe("");
  gate.open();
  // The bytes arrive and nobody hears of it: they are sent again, and are no second part.
  gate.loseAnswer();
  await until("it is read", async () => (await logOf(id)) === "said while nobody could store it\n");
  expect(gate.lost()).toBe(1);
  expect(await stored()).toHaveLength(1);
});

test("a store that takes calls and answers none does not hold up the end of a worker", async () => {
  const id = await run(async (ctx) => {
    ctx.capture("not to be had\n");
    gate.fallSilent();
  });
  await ended(id);
  await until("it is on its way", () => gate.held() > 0);
  await node.stop();
  expect(await logOf(id)).toBe("");
});

test("words that come after their attempt's end are nobody's, and nothing goes on waiting for more of them", async () => {
  const left = Promise.withResolvers<JobContext>();
  const id = await run(async (ctx) => left.resolve(ctx));
  const ctx = await left.promise;
  await ended(id);
  ctx.log.info("too late");
  ctx.capture("far too late\n");
  await node.stop();
  expect(await logOf(id)).toBe("");
  expect(await counted("attemptLogBytes", "kept")).toBe(0);
});

/** The way to the store: open, closed, or one on which nothing comes back. */
async function startGate(port: number) {
  const open = new Set<Socket>();
  let is: "open" | "refusing" | "silent" = "open";
  let held = 0;
  let losing = false;
  let lost = 0;
  const server = createServer((client) => {
    client.on("error", () => undefined);
    if (is === "refusing") return client.destroy();
    open.add(client);
    const upstream = connect(port, "127.0.0.1");
    upstream.on("error", () => client.destroy());
    upstream.on("close", () => client.destroy());
    client.on("close", () => {
      open.delete(client);
      upstream.destroy();
    });
    client.on("data", (chunk) => {
      if (is === "silent") held += chunk.byteLength;
      else upstream.write(chunk);
    });
    upstream.on("data", (chunk) => {
      if (!losing) return client.write(chunk);
      losing = false;
      lost++;
      client.destroy();
    });
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const cut = () => {
    for (const socket of open) socket.destroy();
  };
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    open: () => {
      is = "open";
    },
    refuse() {
      is = "refusing";
      cut();
    },
    fallSilent: () => {
      is = "silent";
    },
    /** The connection of the next answer is cut before it. */
    loseAnswer: () => {
      losing = true;
    },
    lost: () => lost,
    /** Bytes that were taken and answered with nothing. */
    held: () => held,
    async close() {
      cut();
      server.close();
    },
  };
}
