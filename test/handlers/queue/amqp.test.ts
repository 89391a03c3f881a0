import { type AMQPChannel, AMQPClient, type AMQPProperties } from "@cloudamqp/amqp-client";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { consumeInvoices } from "../../docs/amqp-consumer.ts";
import { type RabbitmqServer, rabbitmqAvailable, startRabbitmq } from "../../support/rabbitmq.ts";
import { until } from "../../support/system.ts";
import { CALLBACK } from "../context.ts";
import { type Installation, openInstallation } from "./installation.ts";
import { type Bench, openBench, RUN, standBetween, withoutPassword } from "./scene.ts";

if (!rabbitmqAvailable) console.log("No RabbitMQ on this machine: the tests that need it are left out of this run.");

type Headers = Record<string, string>;

if (rabbitmqAvailable) {
  let server: RabbitmqServer;
  let owner: AMQPChannel;
  let broker: ReturnType<typeof withoutPassword>;
  let bench: Bench;
  let queues = 0;

  beforeAll(async () => {
    server = await startRabbitmq();
    broker = withoutPassword(server.url);
    owner = await channelTo(server);
  });
  afterAll(() => server?.stop());
  beforeEach(() => {
    bench = openBench();
  });
  afterEach(() => bench.close());

  const channelTo = async ({ url }: RabbitmqServer) => (await new AMQPClient(url).connect()).channel();

  async function newQueue(args: Record<string, unknown> = {}): Promise<string> {
    const name = `q${++queues}`;
    await owner.queueDeclare(name, {}, args);
    return name;
  }

  /** To a queue by its name, as the default exchange does it. */
  const toQueue = (routingKey: string, change: Record<string, unknown> = {}) => ({
    broker: "amqp",
    url: broker.url,
    exchange: "",
    routingKey,
    ...change,
  });

  const attempt = (job: Record<string, unknown>, change: Parameters<Bench["attempt"]>[1] = {}) =>
    bench.attempt(job, { ...change, payload: { ...broker.payload, ...change.payload } });

  /** What a consumer of the queue gets next, if there is something. */
  async function next(queue: string): Promise<{ body: unknown; properties: AMQPProperties; headers: Headers }> {
    const message = await owner.basicGet(queue);
    if (message === null) throw new Error("no message");
    const { properties } = message;
    return { body: JSON.parse(message.bodyString()!), properties, headers: properties.headers as Headers };
  }

  describe("a job of kind queue, to an AMQP exchange", () => {
    it("is one message that says whose run it is, and has succeeded once the broker has confirmed it", async () => {
      const queue = await newQueue();
      const outcome = await attempt(
        toQueue(queue, {
          message: { order: "{{payload.order}}", text: "at {{run.scheduledAt}}" },
          headers: { "x-region": "{{payload.region}}", "x-retry": 3, "x-late": false },
        }),
        { payload: { order: { lines: [1, 2] }, region: "süd" } },
      );
      expect(outcome).toEqual({ kind: "succeeded" });
      const { properties, body } = await next(queue);
      expect(body).toEqual({ order: { lines: [1, 2] }, text: "at 2026-11-29T18:00:00.000Z" });
      expect(properties).toMatchObject({
        contentType: "application/json",
        deliveryMode: 2,
        messageId: RUN,
        appId: "punctual",
        timestamp: expect.any(Date),
      });
      expect(properties.headers).toEqual({
        "x-region": "süd",
        "x-retry": 3,
        "x-late": false,
        "x-punctual-run-id": RUN,
        "x-punctual-scheduled-at": "2026-11-29T18:00:00.000Z",
        "x-punctual-due-at": "2026-11-29T18:00:00.000Z",
        "x-punctual-attempt": "1",
        "x-punctual-fence": "1",
        "x-punctual-idempotency-key": RUN,
      });
    });

    it("without a template is the payload; it outlives its broker only if it is to", async () => {
      const queue = await newQueue();
      await attempt(toQueue(queue, { persistent: false }), { payload: { n: 1 } });
      const { body, properties } = await next(queue);
      expect(body).toEqual({ n: 1, ...broker.payload });
      expect(properties.deliveryMode).toBe(1);
    });

    it("that waits for a callback brings the means for it, and goes on elsewhere", async () => {
      const queue = await newQueue();
      const job = toQueue(queue, { completion: "callback", callbackWithinMs: 60_000 });
      expect(await attempt(job)).toEqual({ kind: "detached", callbackWithinMs: 60_000 });
      expect((await next(queue)).headers).toMatchObject({
        "x-punctual-callback-url": CALLBACK.url,
        "x-punctual-callback-token": CALLBACK.token,
        "x-punctual-callback-until": expect.stringMatching(/^\d{4}-.*Z$/),
      });
    });

    it("that no queue takes has failed for good, unless it need not be taken", async () => {
      await owner.exchangeDeclare("news", "fanout", { durable: false });
      const job = { broker: "amqp", url: broker.url, exchange: "news", routingKey: "today" };
      expect(await attempt(job)).toMatchObject({
        transient: false,
        code: "queue-unroutable",
        message: 'no queue takes messages with exchange "news" and routing key "today": NO_ROUTE (312)',
      });
      expect(await attempt({ ...job, mandatory: false })).toEqual({ kind: "succeeded" });
    });

    it("for an exchange that is not there has failed for good, and takes nothing else of its connection along", async () => {
      const queue = await newQueue();
      const missing = { broker: "amqp", url: broker.url, exchange: "nowhere" };
      const outcomes = await Promise.all(
        Array.from({ length: 20 }, (_, i) => attempt(i % 2 === 0 ? missing : toQueue(queue), { run: `run_${i}x` })),
      );
      expect(outcomes.filter((one) => one.kind === "succeeded")).toHaveLength(10);
      const failures = outcomes.filter((one) => one.kind === "failed");
      expect(new Set(failures.map((one) => `${one.code} ${one.transient}`))).toEqual(
        new Set(["exchange-missing false"]),
      );
      expect(bench.dialled).toBe(1);
    });

    it("that the broker does not take now is for later", async () => {
      const full = await newQueue({ "x-max-length": 1, "x-overflow": "reject-publish" });
      expect(await attempt(toQueue(full))).toEqual({ kind: "succeeded" });
      expect(await attempt(toQueue(full))).toMatchObject({ transient: true, code: "broker-busy" });
    });

    it("whose message or headers are too large for it has failed for good", async () => {
      const queue = await newQueue();
      const tooLarge = { transient: false, code: "message-too-large" };
      const payload = { big: "x".repeat(140_000), bigger: "x".repeat(2 ** 20) };
      const job = toQueue(queue, { message: { n: 1 }, headers: { "x-big": "{{payload.big}}" } });
      expect(await attempt(job, { payload })).toMatchObject(tooLarge);
      expect(await attempt(toQueue(queue), { payload })).toMatchObject(tooLarge);
      const large = toQueue(queue, { message: "{{payload.big}}" });
      expect(await attempt(large, { payload })).toEqual({ kind: "succeeded" });
      expect((await next(queue)).body).toBe(payload.big);
    });

    it("with a wrong password, or for a virtual host that is not there, is refused for good", async () => {
      const job = toQueue("q");
      const wrong = await attempt(job, { payload: { broker: { password: "hunter2-wrong" } } });
      expect(wrong).toMatchObject({ transient: false, code: "broker-refused" });
      expect(JSON.stringify(wrong)).not.toContain("hunter2");
      expect(await attempt({ ...job, vhost: "nowhere" })).toMatchObject({ transient: false, code: "broker-refused" });
      const none = openBench();
      expect(await none.attempt(job)).toMatchObject({ transient: false, code: "broker-credentials-missing" });
      expect(none.dialled).toBe(0);
    });

    it("shares its connection with hundreds of others, and closes it once it is idle", async () => {
      const idle = openBench({ brokers: { idleMs: 50 } });
      const queue = await newQueue();
      const runs = Array.from({ length: 300 }, (_, i) => `run_${i}x`);
      const outcomes = await Promise.all(
        runs.map((run) => idle.attempt(toQueue(queue), { run, payload: broker.payload })),
      );
      expect(new Set(outcomes.map((one) => one.kind))).toEqual(new Set(["succeeded"]));
      expect((await owner.queueDeclare(queue, { passive: true })).messageCount).toBe(300);
      expect(idle.dialled).toBe(1);
      await until("the connection is closed", () => idle.connections === 0);
      expect(await idle.attempt(toQueue(queue), { payload: broker.payload })).toEqual({ kind: "succeeded" });
      expect(idle.dialled).toBe(2);
      await idle.close();
    });

    it("to a broker that keeps silent fails in time, and holds up no more than one more until it speaks", async () => {
      const queue = await newQueue();
      await attempt(toQueue(queue));
      const job = toQueue(queue, { timeoutMs: 1000 });
      process.kill(server.pid, "SIGSTOP");
      try {
        expect(await attempt(job)).toMatchObject({ transient: true, code: "broker-timeout" });
        const [asked, ...others] = await Promise.all([attempt(job), attempt(job), attempt(job)]);
        expect(asked).toMatchObject({ transient: true, code: "broker-timeout" });
        for (const other of others) {
          expect(other).toMatchObject({ transient: true, code: "broker-unavailable", retryAfterMs: 1000 });
        }
      } finally {
        process.kill(server.pid, "SIGCONT");
      }
      const again = toQueue(queue);
      await until("it speaks", async () => (await attempt(again)).kind === "succeeded");
      expect((await Promise.all([attempt(again), attempt(again)])).map((one) => one.kind)).toEqual([
        "succeeded",
        "succeeded",
      ]);
    });

    it("whose confirmation got lost is delivered again: it may be there twice, under one message id", async () => {
      const queue = await newQueue();
      const middleman = await standBetween(server.port);
      const job = toQueue(queue, { url: broker.url.replace(String(server.port), String(middleman.port)) });
      expect(await attempt(job)).toEqual({ kind: "succeeded" });
      const swallowed = middleman.swallow("the second");
      const [outcome] = await Promise.all([attempt(job, { payload: { text: "the second" } }), swallowed]);
      expect(outcome).toMatchObject({ transient: true, code: "delivery-unknown" });
      expect(await attempt(job, { payload: { text: "the second" }, attempt: 2 })).toEqual({ kind: "succeeded" });
      await until("all are there", async () => (await owner.queueDeclare(queue, { passive: true })).messageCount === 3);
      const ids = [await next(queue), await next(queue), await next(queue)].map(
        ({ properties }) => properties.messageId,
      );
      expect(ids).toEqual([RUN, RUN, RUN]);
      await middleman.close();
    });

    it("stops at once when it is told to", async () => {
      const queue = await newQueue();
      await attempt(toQueue(queue));
      process.kill(server.pid, "SIGSTOP");
      try {
        const stop = new AbortController();
        const ended = attempt(toQueue(queue), { signal: stop.signal });
        setImmediate(() => stop.abort("canceled"));
        expect(await ended).toMatchObject({ transient: true, code: "aborted" });
      } finally {
        process.kill(server.pid, "SIGCONT");
      }
    });
  });

  describe("a worker with runs for an AMQP exchange", () => {
    let installation: Installation;
    beforeAll(async () => {
      installation = await openInstallation();
    });
    afterAll(() => installation?.close());

    const secret = () => ({ payload: { broker: { password: { $secret: server.password } }, n: 1 } });

    it("delivers them, and they have succeeded; the password is nowhere but in the payload, sealed", async () => {
      const queue = await newQueue();
      const run = await installation.run(toQueue(queue, { message: { n: "{{payload.n}}" } }), secret());
      await installation.becomes(run, "succeeded");
      const { body, headers } = await next(queue);
      expect([body, headers["x-punctual-run-id"]]).toEqual([{ n: 1 }, run]);
      expect(JSON.stringify(await installation.stateOf(run))).not.toContain(server.password);
    });

    it("lets them go, and they succeed once the consumer says so, who leaves out what is late: the example of docs/jobs.md", async () => {
      await owner.queueDeclare("invoices", { durable: true });
      const late = {
        "x-punctual-callback-url": "http://127.0.0.1:9",
        "x-punctual-callback-until": "2026-01-01T00:00:00Z",
      };
      await owner.basicPublish("", "invoices", '{"invoice":"2025-1"}', { headers: late });
      const sent: [string, string][] = [];
      const consumer = await consumeInvoices(server.url, async (invoice, key) => void sent.push([invoice, key]));
      const job = toQueue("invoices", { completion: "callback" });
      const { broker } = secret().payload;
      const run = await installation.run(job, { payload: { broker, invoice: "2026-114" } });
      await installation.becomes(run, "succeeded");
      expect(sent).toEqual([["2026-114", run]]);
      await consumer.close();
    });

    it("hears nothing of an earlier attempt's callback: the fence is stale, and nothing changes", async () => {
      const queue = await newQueue();
      const job = toQueue(queue, { completion: "callback", callbackWithinMs: 1000 });
      const run = await installation.run(job, secret());
      const arrived = async (n: number) => (await owner.queueDeclare(queue, { passive: true })).messageCount >= n;
      await until("a second attempt is there, since nobody called back", () => arrived(2));
      const [first, second] = [(await next(queue)).headers, (await next(queue)).headers];
      expect([first["x-punctual-attempt"], second["x-punctual-attempt"]]).toEqual(["1", "2"]);
      expect(first["x-punctual-idempotency-key"]).toBe(second["x-punctual-idempotency-key"]);
      const passOf = (headers: Headers) => ({
        url: headers["x-punctual-callback-url"]!,
        token: headers["x-punctual-callback-token"]!,
      });
      const stale = await installation.callBack(passOf(first), "complete");
      expect([stale.status, stale.body.code]).toEqual([409, "stale-fence"]);
      expect((await installation.stateOf(run)).state).not.toBe("succeeded");
      const attempts = await installation.attemptsOf(run);
      expect(attempts.find((one) => one.attempt === 1)).toMatchObject({ error: { code: "callback-timeout" } });
    });

    it("delivers a run whose broker died before it had confirmed, once the broker is back", async () => {
      await owner.queueDeclare("lasting", { durable: true });
      await installation.becomes(await installation.run(toQueue("lasting"), secret()), "succeeded");
      process.kill(server.pid, "SIGSTOP");
      const run = await installation.run(toQueue("lasting", { timeoutMs: 60_000 }), secret());
      await installation.becomes(run, "running");
      await server.kill();
      await until("it was tried and tried again", async () => (await installation.attemptsOf(run)).length > 2);
      const codes = (await installation.attemptsOf(run)).flatMap(
        (one) => (one.error as { code: string } | null)?.code ?? [],
      );
      for (const code of codes) expect(["delivery-unknown", "broker-unavailable"]).toContain(code);
      await server.restart();
      await installation.becomes(run, "succeeded");
      owner = await channelTo(server);
      expect((await next("lasting")).headers["x-punctual-run-id"]).not.toBe(run);
      expect((await next("lasting")).headers["x-punctual-run-id"]).toBe(run);
    }, 180_000);
  });
}
