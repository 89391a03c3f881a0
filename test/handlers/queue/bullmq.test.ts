import { once } from "node:events";
import { rmSync } from "node:fs";
import { type AddressInfo, connect } from "node:net";
import { pipeline } from "node:stream";
import { createServer as createSecureServer } from "node:tls";
import { type Job, Queue, Worker } from "bullmq";
import { Redis } from "ioredis";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, inject, it } from "vitest";
import { type RedisServer, startRedis } from "../../../src/app/embedded/redis.ts";
import { consumeInvoices } from "../../docs/bullmq-consumer.ts";
import { outboundOf } from "../../support/outbound.ts";
import { redisAvailable, startTestRedis } from "../../support/redis.ts";
import { until } from "../../support/system.ts";
import { makeTemporaryFolder } from "../../support/temporary-folder.ts";
import { TLS, trustTestCertificate } from "../../support/tls.ts";
import { CALLBACK } from "../context.ts";
import { type Installation, openInstallation } from "./installation.ts";
import { type Bench, openBench, RUN, standBetween, withoutPassword } from "./scene.ts";

if (redisAvailable) {
  const directory = makeTemporaryFolder("punctual-tenant-redis-");
  let server: RedisServer;
  let admin: Redis;
  let broker: ReturnType<typeof withoutPassword>;
  let bench: Bench;
  const open = new Set<Queue | Worker>();
  let queues = 0;

  beforeAll(async () => {
    server = await startTestRedis({ dataDirectory: directory });
    admin = new Redis(server.url, { retryStrategy: () => 50 });
    admin.on("error", () => undefined);
    broker = withoutPassword(server.url);
  });
  afterAll(async () => {
    admin?.disconnect();
    await server?.stop();
    rmSync(directory, { recursive: true, force: true });
  });
  beforeEach(() => {
    bench = openBench();
  });
  afterEach(async () => {
    for (const one of open) await one.close();
    open.clear();
    await bench.close();
  });

  function newQueue(): Queue {
    const queue = new Queue(`q${++queues}`, { connection: { url: server.url }, skipMetasUpdate: true });
    open.add(queue.on("error", () => undefined));
    return queue;
  }

  const toQueue = (queue: { name: string }, change: Record<string, unknown> = {}) => ({
    broker: "bullmq",
    url: broker.url,
    queue: queue.name,
    ...change,
  });

  const attempt = (job: Record<string, unknown>, change: Parameters<Bench["attempt"]>[1] = {}) =>
    bench.attempt(job, { ...change, payload: { ...broker.payload, ...change.payload } });

  describe("a job of kind queue, to a BullMQ queue", () => {
    it("is one job there that says whose run it is, and has succeeded once Redis has it", async () => {
      const queue = newQueue();
      const outcome = await attempt(
        toQueue(queue, {
          jobName: "invoice",
          message: { invoice: "{{payload.invoice}}" },
          options: {
            priority: 7,
            attempts: 4,
            backoff: { type: "exponential", delay: 500 },
            removeOnComplete: { age: 60 },
          },
        }),
        { payload: { invoice: "2026-114" } },
      );
      expect(outcome).toEqual({ kind: "succeeded" });
      const jobs = await queue.getJobs();
      expect(jobs).toHaveLength(1);
      expect(jobs[0]).toMatchObject({ id: RUN, name: "invoice" });
      expect(jobs[0]!.opts).toMatchObject({
        priority: 7,
        attempts: 4,
        backoff: { type: "exponential", delay: 500 },
        removeOnComplete: { age: 60 },
      });
      expect(jobs[0]!.data).toEqual({
        punctual: {
          runId: RUN,
          scheduleId: null,
          scheduledAt: "2026-11-29T18:00:00.000Z",
          dueAt: "2026-11-29T18:00:00.000Z",
          attempt: 1,
          fence: "1",
          idempotencyKey: RUN,
        },
        payload: { invoice: "2026-114" },
      });
    });

    it("leaves the settings of a queue to its owner, and keeps to the database and the prefix that it is given", async () => {
      const url = broker.url.replace(/$/, "/3");
      await attempt({ broker: "bullmq", url, queue: "theirs", prefix: "{tenant}" });
      const there = new Redis(server.url, { db: 3 });
      expect(await there.hgetall("{tenant}:theirs:meta")).not.toHaveProperty("version");
      expect(await there.exists(`{tenant}:theirs:${RUN}`)).toBe(1);
      expect(await admin.keys("*theirs*")).toEqual([]);
      there.disconnect();
    });

    it("is delivered twice and is one job, as long as the queue knows it; with a callback each attempt is its own", async () => {
      const queue = newQueue();
      for (const n of [1, 2]) expect(await attempt(toQueue(queue), { attempt: n })).toEqual({ kind: "succeeded" });
      expect((await queue.getJobs()).map((job) => [job.id, job.data.punctual.attempt])).toEqual([[RUN, 1]]);

      const waiting = newQueue();
      const job = toQueue(waiting, { completion: "callback" });
      for (const n of [1, 2]) expect(await attempt(job, { attempt: n })).toEqual({ kind: "detached" });
      const jobs = (await waiting.getJobs()).toSorted((a, b) => a.timestamp - b.timestamp || (a.id! < b.id! ? -1 : 1));
      expect(jobs.map((one) => one.id)).toEqual([`${RUN}-1`, `${RUN}-2`]);
      expect(jobs[0]!.data.punctual.callback).toMatchObject({ ...CALLBACK, until: expect.stringMatching(/Z$/) });
    });

    it("with a wrong password, a database that is not there, or a right it lacks is refused for good", async () => {
      const queue = newQueue();
      const refused = { transient: false, code: "broker-refused" };
      const wrong = await attempt(toQueue(queue), { payload: { broker: { password: "hunter2-wrong" } } });
      expect(wrong).toMatchObject(refused);
      expect(JSON.stringify(wrong)).not.toContain("hunter2");
      expect(await attempt(toQueue(queue, { url: `${broker.url}/9999` }))).toMatchObject(refused);
      await admin.acl("SETUSER", "reader", "on", ">hunter2-reader", "~*", "+@read", "+info", "+select");
      const url = broker.url.replace("://:", "://reader:");
      expect(
        await attempt(toQueue(queue, { url }), { payload: { broker: { password: "hunter2-reader" } } }),
      ).toMatchObject(refused);
      expect(await queue.getJobs()).toEqual([]);
    });

    it("that Redis does not take now is for later: it is full, or a replica", async () => {
      const queue = newQueue();
      const later = { transient: true, code: "broker-busy" };
      await admin.config("SET", "maxmemory", "1");
      expect(await attempt(toQueue(queue))).toMatchObject(later);
      await admin.config("SET", "maxmemory", "0");
      await admin.replicaof("127.0.0.1", 1);
      expect(await attempt(toQueue(queue))).toMatchObject(later);
      await admin.replicaof("NO", "ONE");
      expect(await attempt(toQueue(queue))).toEqual({ kind: "succeeded" });
    });

    it("whose answer got lost is delivered again, and is one job", async () => {
      const queue = newQueue();
      const middleman = await standBetween(server.port);
      const job = toQueue(queue, { url: broker.url.replace(String(server.port), String(middleman.port)) });
      expect(await attempt(job, { run: "run_first" })).toEqual({ kind: "succeeded" });
      const swallowed = middleman.swallow("the second");
      const [outcome] = await Promise.all([attempt(job, { payload: { text: "the second" } }), swallowed]);
      expect(outcome).toMatchObject({ transient: true, code: "delivery-unknown" });
      expect(await attempt(job, { payload: { text: "the second" }, attempt: 2 })).toEqual({ kind: "succeeded" });
      const jobs = await queue.getJobs();
      expect(jobs.map((one) => one.id).toSorted()).toEqual([RUN, "run_first"]);
      expect(jobs.find((one) => one.id === RUN)!.data.punctual.attempt).toBe(1);
      expect(middleman.connections).toBe(2);
      await middleman.close();
    });

    it("shares its connection with hundreds of others", async () => {
      const queue = newQueue();
      const runs = Array.from({ length: 300 }, (_, i) => `run_${i}x`);
      const outcomes = await Promise.all(runs.map((run) => attempt(toQueue(queue), { run })));
      expect(new Set(outcomes.map((one) => one.kind))).toEqual(new Set(["succeeded"]));
      expect(await queue.getWaitingCount()).toBe(300);
      expect([bench.dialled, bench.connections]).toEqual([1, 1]);
      await bench.close();
      expect(bench.connections).toBe(0);
      const others = async () =>
        String(await admin.client("LIST"))
          .split("\n")
          .filter((line) => line.includes("cmd=evalsha"));
      await until("nothing of it is left", async () => (await others()).length === 0);
    });

    it("to a Redis that keeps silent fails in time, and is delivered once it speaks", async () => {
      const queue = newQueue();
      await attempt(toQueue(queue), { run: "run_first" });
      process.kill(server.pid, "SIGSTOP");
      try {
        expect(await attempt(toQueue(queue, { timeoutMs: 1000 }))).toMatchObject({
          transient: true,
          code: "broker-timeout",
        });
        // A new connection is taken by the kernel, and nobody speaks on it.
        expect(await attempt(toQueue(queue, { timeoutMs: 1000 }))).toMatchObject({
          transient: true,
          code: "broker-timeout",
        });
      } finally {
        process.kill(server.pid, "SIGCONT");
      }
      expect(await attempt(toQueue(queue), { attempt: 2 })).toEqual({ kind: "succeeded" });
      expect((await queue.getJobs()).map((job) => job.id).toSorted()).toEqual([RUN, "run_first"]);
    });

    it("over TLS asks for the host's certificate", async () => {
      trustTestCertificate();
      const door = createSecureServer(TLS, (near) =>
        pipeline(near, connect(server.port, "127.0.0.1"), near, () => undefined),
      );
      door.listen(0, "127.0.0.1");
      await once(door, "listening");
      const { port } = door.address() as AddressInfo;
      const names = { "target.example": "127.0.0.1", "elsewhere.example": "127.0.0.1" };
      const secure = openBench({ outbound: outboundOf({ names }) });
      const queue = newQueue();
      const url = (host: string) =>
        broker.url.replace("redis://", "rediss://").replace(/127\.0\.0\.1:\d+/, `${host}:${port}`);
      const { payload } = broker;
      expect(await secure.attempt(toQueue(queue, { url: url("target.example") }), { payload })).toEqual({
        kind: "succeeded",
      });
      const another = await secure.attempt(toQueue(queue, { url: url("elsewhere.example") }), { payload });
      expect(another).toMatchObject({ transient: true, code: "broker-unavailable" });
      expect(JSON.stringify(another)).toContain("ERR_TLS_CERT_ALTNAME_INVALID");
      await secure.close();
      door.close();
    });
  });

  describe("a worker with runs for a BullMQ queue", () => {
    let installation: Installation;
    beforeAll(async () => {
      installation = await openInstallation();
    });
    afterAll(() => installation?.close());

    const payload = (more: Record<string, unknown> = {}) => ({
      payload: { broker: { password: { $secret: new URL(server.url).password } }, ...more },
    });

    it("delivers them, and they have succeeded, whatever becomes of the job", async () => {
      const queue = newQueue();
      const seen: Job[] = [];
      const worker = new Worker(queue.name, async (job) => void seen.push(job), { connection: { url: server.url } });
      open.add(worker.on("error", () => undefined));
      const run = await installation.run(toQueue(queue, { message: { n: "{{payload.n}}" } }), payload({ n: 1 }));
      await installation.becomes(run, "succeeded");
      await until("the job was done", () => seen.length === 1);
      expect([seen[0]!.id, seen[0]!.data.payload]).toEqual([run, { n: 1 }]);
    });

    it("lets them go, and they succeed once the consumer says so, who leaves out what is late: the example of docs/jobs.md", async () => {
      const queue = new Queue("invoices", { connection: { url: server.url } });
      open.add(queue.on("error", () => undefined));
      const callback = { url: "http://127.0.0.1:9", token: "cb_", until: "2026-01-01T00:00:00Z" };
      await queue.add("run", { punctual: { idempotencyKey: "run_", callback }, payload: { invoice: "2025-1" } });
      const sent: [string, string][] = [];
      open.add(consumeInvoices({ url: server.url }, async (invoice, key) => void sent.push([invoice, key])));
      const job = toQueue({ name: "invoices" }, { completion: "callback" });
      const run = await installation.run(job, payload({ invoice: "2026-114" }));
      await installation.becomes(run, "succeeded");
      expect(sent).toEqual([["2026-114", run]]);
    });

    it("delivers a run whose Redis was killed, once that is back", async () => {
      const queue = newQueue();
      process.kill(server.pid, "SIGKILL");
      await server.exited;
      const run = await installation.run(toQueue(queue), payload());
      await until("it was tried and tried again", async () => (await installation.attemptsOf(run)).length > 2);
      const codes = (await installation.attemptsOf(run)).flatMap(
        (one) => (one.error as { code: string } | null)?.code ?? [],
      );
      expect(new Set(codes)).toEqual(new Set(["broker-unavailable"]));
      const { password, port } = new URL(server.url);
      server = await startRedis({
        binary: inject("redisBinary"),
        dataDirectory: directory,
        port: Number(port),
        settings: { requirepass: password },
        log: () => undefined,
      });
      await installation.becomes(run, "succeeded");
      await until("it is there", async () => (await queue.getJobs()).some((job) => job.id === run));
    });
  });
}
