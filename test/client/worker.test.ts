import { createHash, randomBytes } from "node:crypto";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { outputStoreOf } from "../../src/app/roles/output-store.ts";
import { JobFailed, type WorkerJobContext } from "../../src/client/worker/job.ts";
import { readId } from "../../src/kernel/ids.ts";
import { createLogParts } from "../../src/objects/log-parts.ts";
import { createS3Store } from "../../src/objects/s3/store.ts";
import { sql } from "../../src/store/database.ts";
import { call, startTestServer, type TestServer } from "../api/server.ts";
import { buildScene, type Scene } from "../api/workers/scene.ts";
import { startS3rver } from "../objects/s3/s3rver.ts";
import type { S3Server } from "../objects/s3/server.ts";
import { type Crew, crewOf } from "./crew.ts";

/** PunctualWorker in a tenant's own process, against the API; results are in a bucket. What conformance checks is in its tests. */
let s3: S3Server;
let server: TestServer;
let scene: Scene;
let crew: Crew;
beforeAll(async () => {
  s3 = await startS3rver({ conditions: true });
  const store = createS3Store({ ...s3.options, prefix: "", presignsDownloads: false } as never);
  await store.prepare();
  const lease = { ttlMs: 10_000, heartbeatMs: 200, marginMs: 500 };
  const outputs = { outputs: outputStoreOf(store, 4_000_000), logs: createLogParts(store, 100_000) };
  server = await startTestServer({ workers: outputs, objects: store }, 0, 6, undefined, lease);
  scene = await buildScene(server, "clients");
  crew = crewOf(server, scene);
});
afterEach(() => crew.stop());
afterAll(async () => {
  await server?.close();
  await s3?.stop();
});

const stopped = (ctx: WorkerJobContext) =>
  new Promise<never>((_, reject) => {
    ctx.signal.addEventListener("abort", () => reject(new Error(String(ctx.signal.reason))));
  });

describe("a worker", () => {
  it("uploads large outputs to the bucket itself, streams through the API, and says how far it is", async () => {
    const large = randomBytes(2_000_000);
    const { run } = crew.start(async (ctx, { how }) => {
      await ctx.progress({ how });
      await ctx.log("uploading\n");
      const stream = async function* () {
        for (let at = 0; at < large.length; at += 65_536) yield large.subarray(at, at + 65_536);
      };
      return ctx.output("large.bin", how === "whole" ? new Uint8Array(large) : stream);
    });
    const sha256 = createHash("sha256").update(large).digest("hex");
    for (const how of ["whole", "streamed"]) {
      const id = await run({ payload: { how } });
      await crew.ended(id, "succeeded");
      expect(await scene.stateOf(id)).toMatchObject({ result: { sha256, size: large.length } });
      expect(await crew.attemptsOf(id)).toMatchObject([{ n: 1, progress: { how } }]);
      expect((await call(server.url, "GET", `/v1/runs/${id}/logs`, { key: scene.owner })).text).toContain("uploading");
    }
  });

  it("that stops lets what it has begun end in its grace, and gives the rest back untried", async () => {
    const begun = Promise.withResolvers<void>();
    const { worker, run } = crew.start(async (ctx) => {
      begun.resolve();
      await stopped(ctx);
    });
    const id = await run();
    await begun.promise;
    await worker.stop();
    expect(worker.running).toBe(0);
    expect(await crew.attemptsOf(id)).toMatchObject([{ n: 1, outcome: "released" }]);
    expect((await scene.stateOf(id)).state).toBe("retrying");
  });

  it("that cannot reach the API goes on with what it has, and reports it when the API is back", async () => {
    const away = Promise.withResolvers<void>();
    const begun = Promise.withResolvers<void>();
    const { run } = crew.start(async () => {
      begun.resolve();
      await away.promise;
      throw new JobFailed("no", "it cannot", { transient: false });
    });
    const id = await run();
    await begun.promise;
    const { fetch: reach } = globalThis;
    let refused = 0;
    // What runs in the tenant's process and has no network: calls fail before they leave.
    globalThis.fetch = async (...asked) => {
      if (String(asked[0]).includes("/v1/worker/") && refused < 6) {
        refused++;
        throw new TypeError("fetch failed", { cause: Object.assign(new Error("away"), { code: "ECONNRESET" }) });
      }
      return reach(...asked);
    };
    try {
      away.resolve();
      await crew.ended(id, "failed");
    } finally {
      globalThis.fetch = reach;
    }
    expect(refused).toBe(6);
    expect(await crew.attemptsOf(id)).toMatchObject([{ n: 1 }]);
  });

  it("hands an attempt on: its callback ends it, wherever it is", async () => {
    const passed = Promise.withResolvers<{ url: string; token: string }>();
    const { worker, run } = crew.start(async (ctx) => {
      passed.resolve(await ctx.detach({ callbackWithinMs: 60_000 }));
    });
    const id = await run();
    const { url, token } = await passed.promise;
    await expect.poll(() => worker.running).toBe(0);
    expect((await scene.stateOf(id)).callbackDueAt).not.toBeNull();
    const answer = await fetch(`${url}/complete`, { method: "POST", headers: { authorization: `Bearer ${token}` } });
    expect(answer.status).toBe(200);
    await crew.ended(id, "succeeded");
  });

  it("is told when another attempt has its run, and says nothing more", async () => {
    const reasons: unknown[] = [];
    const { worker, run } = crew.start(async (ctx) => {
      if (ctx.run.attempt > 1) return;
      await stopped(ctx).catch(() => reasons.push(ctx.signal.reason));
    });
    const id = await run();
    await expect.poll(() => worker.running).toBe(1);
    const [{ fence }] = (await server.db.query(FENCE, [readId("run", id)])) as [{ fence: bigint }];
    await scene.say("release", { runId: id, attempt: 1, fence: String(fence), worker: worker.name });
    await crew.ended(id, "succeeded");
    expect(reasons).toEqual(["stale-fence"]);
    expect(await crew.attemptsOf(id)).toMatchObject([{ n: 1, outcome: "released" }, { n: 2 }]);
  });
});

const FENCE = sql("test_fence_of", "select fence from live_run where id = $1");
