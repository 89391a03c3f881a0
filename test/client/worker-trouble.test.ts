import pg from "pg";
import { afterAll, afterEach, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { workerSchema } from "../../src/api/worker/attempt-fields.ts";
import { createHttp } from "../../src/client/http.ts";
import { systemWorkerClock } from "../../src/client/worker/clock.ts";
import { JobFailed } from "../../src/client/worker/job.ts";
import { nameOf } from "../../src/client/worker/punctual-worker.ts";
import { readId } from "../../src/kernel/ids.ts";
import { call, startTestServer, type TestServer } from "../api/server.ts";
import { buildScene, END_LEASE, type Scene } from "../api/workers/scene.ts";
import { type Crew, crewOf } from "./crew.ts";

/** PunctualWorker where jobs do what they should not, and calls cross or get nowhere. */
let server: TestServer;
let scene: Scene;
let crew: Crew;
beforeAll(async () => {
  server = await startTestServer({}, 0, 6, undefined, { ttlMs: 10_000, heartbeatMs: 200, marginMs: 500 });
  scene = await buildScene(server, "trouble");
  crew = crewOf(server, scene);
});
afterEach(() => crew.stop());
afterAll(() => server?.close());

/** Calls of workers go through `pass` on their way. */
function onTheWay(pass: (verb: string, on: () => Promise<Response>) => Promise<Response>): void {
  const { fetch: reach } = globalThis;
  globalThis.fetch = (...asked) => {
    const verb = /\/v1\/worker\/(\w+)/.exec(String(asked[0]))?.[1];
    return verb === undefined ? reach(...asked) : pass(verb, () => reach(...asked));
  };
  onTestFinished(() => {
    globalThis.fetch = reach;
  });
}

describe("a job", () => {
  it("whose source of bytes breaks fails at once, as it says", async () => {
    const { run } = crew.start((ctx) =>
      ctx.output("broken.bin", async function* () {
        yield new Uint8Array(10);
        throw new JobFailed("source-broken", "the disk is gone", { transient: false });
      }),
    );
    const id = await run();
    await crew.ended(id, "failed");
    expect(await crew.attemptsOf(id)).toMatchObject([{ n: 1, outcome: "failed", error_code: "source-broken" }]);
  });

  it("that returns what is no output, or fails in words that nobody takes, has failed at once", async () => {
    const returns = crew.start(async () => "done" as never);
    const one = await returns.run();
    await crew.ended(one, "failed");
    expect(await crew.attemptsOf(one)).toMatchObject([{ n: 1, outcome: "failed", error_code: "output-unusable" }]);
    const throws = crew.start(async (_ctx, { retryAfterMs }) => {
      throw new JobFailed("", "no words", { transient: true, retryAfterMs: Number(retryAfterMs) });
    });
    for (const retryAfterMs of [0.5, -1, "never"]) {
      const other = await throws.run({ payload: { retryAfterMs }, retry: { maxAttempts: 1 } });
      await crew.ended(other, "failed");
      expect(await crew.attemptsOf(other)).toMatchObject([{ n: 1, outcome: "failed", error_code: "handler-error" }]);
    }
  });

  it("that says what is no JSON goes on, and hears of a cancellation when it says anything", async () => {
    const begun = Promise.withResolvers<void>();
    const canceled = Promise.withResolvers<void>();
    let heartbeats = 0;
    onTheWay(async (verb, on) => {
      // None is heard of: only what the job says brings the news.
      if (verb === "heartbeat" && ++heartbeats > 0) return new Response("", { status: 502 });
      return on();
    });
    const { run } = crew.start(
      async (ctx) => {
        await ctx.progress({ n: 1n });
        begun.resolve();
        await canceled.promise;
        await ctx.progress("half");
        expect(ctx.signal.reason).toBe("canceled");
        throw new Error("stopped");
      },
      { log: () => undefined },
    );
    const id = await run();
    await begun.promise;
    await call(server.url, "POST", `/v1/runs/${id}/cancel`, { key: scene.owner, body: {} });
    canceled.resolve();
    await crew.ended(id, "canceled");
    expect(await crew.attemptsOf(id)).toMatchObject([{ n: 1, outcome: "canceled" }]);
  });

  it("whose lease is over, and whose row somebody holds, still hands in what it has done", async () => {
    const stranger = new pg.Client({ connectionString: server.databaseUrl });
    await stranger.connect();
    onTestFinished(() => stranger.end());
    const lapsed = Promise.withResolvers<void>();
    let completions = 0;
    const beats: string[] = [];
    onTheWay(async (verb, on) => {
      if (verb === "heartbeat") await lapsed.promise;
      if (verb === "complete" && ++completions === 1) await server.db.query(END_LEASE, [runId]);
      if (completions === 2) await stranger.query("rollback");
      const answer = await on();
      if (verb === "complete" && completions === 1) {
        await stranger.query("begin");
        await stranger.query("select from live_run where id = $1 for update", [runId]);
        lapsed.resolve();
      }
      if (verb === "heartbeat") beats.push(await answer.clone().text());
      return answer;
    });
    let runId: unknown;
    let sleptMs = 0;
    const { run } = crew.start(
      async (ctx) => {
        runId = readId("run", ctx.run.id);
        sleptMs = 20_000;
      },
      { clock: { ...systemWorkerClock, monotonic: () => performance.now() + sleptMs } },
    );
    const id = await run();
    await crew.ended(id, "succeeded");
    expect(await crew.attemptsOf(id)).toMatchObject([{ n: 1 }]);
    expect(beats.join()).toContain("busy");
  });

  it("that hands its attempt on is not disturbed by a heartbeat that crosses, and the worker waits for it", async () => {
    const crossed = Promise.withResolvers<void>();
    let refused = 0;
    onTheWay(async (verb, on) => {
      if (verb === "heartbeat" && refused > 0) crossed.resolve();
      const answer = await on();
      if (verb === "heartbeat" && (await answer.clone().text()).includes("not-holder")) refused++;
      // Heartbeats follow one another: with the next one the refusal has been heard.
      if (verb === "detach") await crossed.promise;
      return answer;
    });
    const detached = Promise.withResolvers<void>();
    const handedOn = Promise.withResolvers<void>();
    let reason: unknown = "not asked";
    const { worker, run } = crew.start(
      async (ctx) => {
        await ctx.detach({ callbackWithinMs: 60_000 });
        detached.resolve();
        await handedOn.promise;
        reason = ctx.signal.reason;
      },
      { graceMs: 30_000 },
    );
    const id = await run();
    await detached.promise;
    expect(worker.running).toBe(0);
    const stopping = worker.stop();
    setTimeout(() => handedOn.resolve(), 300);
    await stopping;
    expect([refused > 0, reason]).toEqual([true, undefined]);
    expect((await scene.stateOf(id)).state).toBe("running");
  });
});

it("a wait that is ended is not begun again, and what ended it is said", async () => {
  let asked = 0;
  const { http, stop } = {
    http: createHttp({ url: server.url, key: scene.key, sleep: () => Promise.resolve() }),
    stop: new AbortController(),
  };
  onTheWay(async (_verb, on) => {
    asked++;
    stop.abort("canceled");
    return on();
  });
  const poll = { worker: "w", jobs: ["a@1"], waitMs: 0 };
  const answer = http.call({
    method: "POST",
    path: "/v1/worker/poll",
    body: JSON.stringify(poll),
    signal: stop.signal,
  });
  await expect(answer).rejects.toMatchObject({ name: "NoAnswer", message: "canceled" });
  expect(asked).toBe(1);
});

it.each(["Ünal's Mac", "-x", "büro", "äöü", ""])("a worker on the host %j has a name that is taken", (host) => {
  expect(workerSchema.safeParse(nameOf(host)).error).toBeUndefined();
});
