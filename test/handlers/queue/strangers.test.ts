import { once } from "node:events";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { knowSecrets } from "../../../src/domain/secrets/known.ts";
import { outboundOf } from "../../support/outbound.ts";
import {
  array,
  CHANNEL_OPEN_OK,
  close,
  frame,
  method,
  OPEN_OK,
  returned,
  SELECT_OK,
  START,
  shortText,
  tune,
  uint,
} from "./amqp-frames.ts";
import { type Bench, openBench } from "./scene.ts";

/** Who is at the other end is the tenant's business: it may be nobody, something else, or somebody who means harm. */
type Stranger = { port: number; connections: number; close(): Promise<void> };

const PASSWORD = "hunter2-hunter2";
const payload = { password: PASSWORD };
let bench: Bench;
const strangers: Stranger[] = [];
beforeEach(() => {
  bench = openBench();
});
afterEach(async () => {
  await bench.close();
  for (const stranger of strangers.splice(0)) await stranger.close();
});

/** `answer` is called with every piece that comes, and its number. */
async function meet(answer: (socket: Socket, bytes: Buffer, n: number) => void): Promise<Stranger> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    stranger.connections++;
    sockets.add(socket);
    let n = 0;
    socket.on("error", () => undefined).on("data", (bytes: Buffer) => answer(socket, bytes, n++));
  });
  const stranger: Stranger = {
    port: 0,
    connections: 0,
    async close() {
      for (const socket of sockets) socket.destroy();
      if (server.listening) await new Promise((done) => server.close(done));
    },
  };
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  stranger.port = (server.address() as AddressInfo).port;
  strangers.push(stranger);
  return stranger;
}

const amqpAt = (port: number, host = "127.0.0.1") => ({
  broker: "amqp",
  url: `amqp://tenant:{{payload.password}}@${host}:${port}`,
  exchange: "",
  timeoutMs: 20_000,
});
const bullmqAt = (port: number, host = "127.0.0.1") => ({
  broker: "bullmq",
  url: `redis://:{{payload.password}}@${host}:${port}`,
  queue: "q",
  timeoutMs: 20_000,
});
const UNAVAILABLE = { kind: "failed", transient: true, code: "broker-unavailable" };

describe("jobs of kind queue", () => {
  it("do not reach what their tenant may not reach: no connection is made", async () => {
    const stranger = await meet(() => undefined);
    const guarded = openBench({
      outbound: outboundOf({ allow: [], names: { "inside.example": "127.0.0.1", "meta.example": "169.254.169.254" } }),
    });
    for (const host of ["127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "inside.example", "meta.example"]) {
      for (const job of [amqpAt(stranger.port, host), bullmqAt(stranger.port, host)]) {
        expect(await guarded.attempt(job, { payload })).toMatchObject({ transient: false, code: "target-blocked" });
      }
    }
    expect([stranger.connections, guarded.connections]).toEqual([0, 0]);
  });

  it("whose templates would become too long fail before anybody is connected to, and say where", async () => {
    const many = "{{payload}}".repeat(90);
    const large = { password: "x".repeat(60_000) };
    const long = { code: "message-too-large", transient: false };
    for (const [job, failure, field] of [
      [{ ...amqpAt(1), message: 1, headers: { a: "{{run.id}}", b: many } }, long, "headers.b: "],
      [{ ...amqpAt(1), message: [many] }, long, "message: "],
      [{ ...bullmqAt(1), message: many }, long, "message: "],
      [bullmqAt(1), { code: "broker-credentials-too-long", transient: false }, "the URL's password: "],
    ] as const) {
      const payload = field.startsWith("the URL") ? large : { ...large, password: PASSWORD, a: "x".repeat(60_000) };
      const outcome = await bench.attempt(job, { payload });
      expect(outcome).toMatchObject({ kind: "failed", ...failure });
      expect((outcome as { message: string }).message.startsWith(field)).toBe(true);
    }
    expect(bench.dialled).toBe(0);
  });

  it("are for later where nobody listens, or nobody is known by the name", async () => {
    const gone = await meet(() => undefined);
    await gone.close();
    for (const [job, why] of [
      [amqpAt(gone.port), "ECONNREFUSED"],
      [bullmqAt(gone.port), "ECONNREFUSED"],
      [amqpAt(gone.port, "nobody.example"), "ENOTFOUND"],
    ] as const) {
      expect(await bench.attempt(job, { payload })).toMatchObject({
        ...UNAVAILABLE,
        message: expect.stringContaining(why),
      });
    }
  });

  it("know a web server from a broker", async () => {
    const web = await meet((socket) => socket.end("HTTP/1.1 400 Bad Request\r\nconnection: close\r\n\r\n"));
    expect(await bench.attempt(amqpAt(web.port), { payload })).toMatchObject({
      ...UNAVAILABLE,
      message: expect.stringContaining("no AMQP 0-9-1"),
    });
    expect(await bench.attempt(bullmqAt(web.port), { payload })).toMatchObject(UNAVAILABLE);
    const newer = await meet((socket) => socket.end(Buffer.from("AMQP\x00\x01\x00\x00")));
    expect(await bench.attempt(amqpAt(newer.port), { payload })).toMatchObject(UNAVAILABLE);
    expect(bench.connections).toBe(0);
  });

  it("wait for who says nothing so long and no longer", async () => {
    const silent = await meet(() => undefined);
    const late = {
      transient: true,
      code: "broker-timeout",
      message: "there was no connection to the broker within 1000 ms",
    };
    const outcomes = await Promise.all([
      bench.attempt({ ...amqpAt(silent.port), timeoutMs: 1000 }, { payload }),
      bench.attempt({ ...bullmqAt(silent.port), timeoutMs: 1000 }, { payload }),
    ]);
    expect(outcomes).toMatchObject([late, late]);
    expect(bench.connections).toBe(0);
  });

  it.each([
    ["a frame that never ends", Buffer.concat([Buffer.from([1, 0, 0, 0xff, 0xff, 0xff, 0xff]), Buffer.alloc(100)])],
    ["a text that is longer than its frame", close(320, Buffer.from([0xff, 0x41]))],
    ["frames that end in something else", Buffer.concat([START.subarray(0, -1), Buffer.from([0])])],
    ["an array that is longer than its frame", returned(Buffer.concat([shortText("x"), array(2 ** 32 - 1)]))],
    [
      "arrays in arrays in arrays",
      returned(Buffer.concat([shortText("x"), ...Array.from({ length: 6_000 }, (_, n) => array(5 * (6_000 - n)))])),
    ],
    ["heartbeats without end", Buffer.concat([START, ...Array.from({ length: 40_000 }, () => frame(0, 8))])],
    ["a confirmation of more than can be", method(1, 60, 80, uint(2n ** 60n, 8), [0])],
    [
      "what nobody consumes",
      method(1, 60, 60, shortText("tag"), uint(2n ** 60n, 8), [0], shortText(""), shortText("q")),
    ],
  ])("let a broker go at once that sends %s", async (_what, bytes) => {
    const stranger = await meet((socket) => void socket.write(bytes));
    expect(await bench.attempt(amqpAt(stranger.port), { payload })).toMatchObject({
      ...UNAVAILABLE,
      message: expect.stringContaining("no AMQP 0-9-1"),
    });
    expect(bench.connections).toBe(0);
  });

  it("are for later where a broker has an alarm, or too many connections", async () => {
    const opened = Buffer.concat([tune(131_072), OPEN_OK, method(0, 10, 60, shortText("low on memory"))]);
    const alarmed = await meet((socket, _, n) => void socket.write([START, opened][n] ?? ""));
    expect(await bench.attempt(amqpAt(alarmed.port), { payload })).toMatchObject({
      transient: true,
      code: "broker-busy",
      message: expect.stringContaining("low on memory"),
    });
    const full = close(530, shortText("NOT_ALLOWED - access refused: connection limit (1) is reached"));
    const crowded = await meet((socket, _, n) => void socket.write(n === 0 ? START : full));
    expect(await bench.attempt(amqpAt(crowded.port), { payload })).toMatchObject(UNAVAILABLE);
  });

  it("show nobody what else is in memory: a reason that is longer than its frame is none", async () => {
    const blocked = method(0, 10, 60, [0xff, 0x41]);
    const liar = await meet(
      (socket, _, n) => void socket.write([START, Buffer.concat([tune(131_072), OPEN_OK, blocked])][n] ?? ""),
    );
    expect(await bench.attempt(amqpAt(liar.port), { payload })).toMatchObject(UNAVAILABLE);
  });

  it("let a broker go that allows no frames worth the name, and one that returns what nobody sent", async () => {
    const crumbs = await meet(
      (socket, _, n) => void socket.write(n === 0 ? START : Buffer.concat([tune(16), OPEN_OK])),
    );
    expect(await bench.attempt(amqpAt(crumbs.port), { payload })).toMatchObject(UNAVAILABLE);
    // 64 MiB are about to come back.
    const returned = Buffer.concat([
      method(1, 60, 50, uint(312, 2), shortText("NO_ROUTE"), shortText(""), shortText("")),
      frame(1, 2, uint(60, 2), uint(0, 2), uint(2n ** 26n, 8), uint(0, 2)),
    ]);
    const steps = [START, Buffer.concat([tune(131_072), OPEN_OK]), CHANNEL_OPEN_OK, SELECT_OK, returned];
    const pourer = await meet((socket, bytes, n) => {
      // Its answer to the tuning and the opening that follows may come in one piece or in two.
      if (n > 1 && bytes.includes(Buffer.from([0, 10, 0, 40])) && !bytes.includes(Buffer.from([0, 10, 0, 31]))) return;
      socket.write(steps.shift() ?? "");
    });
    expect(await bench.attempt(amqpAt(pourer.port), { payload })).toMatchObject({
      transient: true,
      code: "delivery-unknown",
    });
    expect(bench.connections).toBe(0);
  });

  it("stop listening to a Redis that never ends what it says", async () => {
    let poured = 0;
    const pourer = await meet((socket) => {
      const pour = () => {
        while (!socket.destroyed && socket.write(Buffer.alloc(65_536, 65))) poured += 65_536;
      };
      socket.write("$2000000000\r\n");
      socket.on("drain", pour);
      pour();
    });
    expect(await bench.attempt({ ...bullmqAt(pourer.port), timeoutMs: 10_000 }, { payload })).toMatchObject({
      ...UNAVAILABLE,
      message: expect.stringContaining("too much"),
    });
    expect(poured).toBeLessThan(64 * 2 ** 20);
  });

  it.each([
    ["room for 600 million elements", "*30000000\r\n".repeat(20), "too much"],
    ["a map in a map in a map", "%1\r\n".repeat(1_000), "too much"],
    ["a string of 100 GB", "$99999999999\r\nabc", "too much"],
    ["a line without an end", `+${"x".repeat(300_000)}`, "too much"],
    ["a length below nothing", "*-7\r\n", "no RESP"],
    ["what is only for subscribers", ">2\r\n+message\r\n+x\r\n", "no RESP"],
    ["two answers to one question", "$-1\r\n$-1\r\n", "nobody has asked"],
    ["answers without end", "+OK\r\n".repeat(100_000), "nobody has asked"],
  ])("let a Redis go at once that announces %s", async (_what, bytes, why) => {
    const liar = await meet((socket) => void socket.write(bytes));
    const before = process.memoryUsage().rss;
    expect(await bench.attempt(bullmqAt(liar.port), { payload })).toMatchObject({
      ...UNAVAILABLE,
      message: expect.stringContaining(why),
    });
    expect(process.memoryUsage().rss - before).toBeLessThan(100 * 2 ** 20);
    expect(bench.connections).toBe(0);
  });

  it("do not know of a delivery to a Redis that lies when it is to take the message", async () => {
    const HELLO = "%1\r\n+proto\r\n:3\r\n";
    const liar = await meet((socket, bytes) => {
      const said = bytes.toString().toLowerCase();
      socket.write(
        said.includes("hello") ? HELLO : said.includes("info") ? "+redis_version:8.0.0\r\n" : "*9999999\r\n",
      );
    });
    expect(await bench.attempt(bullmqAt(liar.port), { payload })).toMatchObject({
      transient: true,
      code: "delivery-unknown",
      message: expect.stringContaining("too much"),
    });
    expect(bench.connections).toBe(0);
  });

  it("do not repeat a secret that a broker says back", async () => {
    const secrets = knowSecrets([{ path: ["password"], value: PASSWORD }]);
    const rabbit = await meet((socket, bytes, n) =>
      socket.write(
        n === 0
          ? START
          : close(
              403,
              shortText(
                `no: ${bytes
                  .toString("latin1")
                  .replace(/[^ -~]/g, "")
                  .slice(-40)}`,
              ),
            ),
      ),
    );
    const redis = await meet((socket, bytes) => socket.write(`-ERR ${bytes.toString().replaceAll("\r\n", " ")}\r\n`));
    for (const job of [amqpAt(rabbit.port), bullmqAt(redis.port)]) {
      const outcome = await bench.attempt(job, { payload, secrets });
      expect(outcome).toMatchObject({ kind: "failed", message: expect.stringContaining("[secret]") });
      expect(JSON.stringify(outcome)).not.toContain("hunter2");
    }
  });
});
