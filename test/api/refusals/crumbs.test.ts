import { connect, type Socket } from "node:net";
import { afterAll, beforeAll, expect, it } from "vitest";
import { systemClock } from "../../../src/kernel/clock.ts";
import { sql } from "../../../src/store/database.ts";
import { call, REPORT, startTestServer, type TestServer } from "../server.ts";
import { attemptOf, buildScene, type Scene } from "../workers/scene.ts";

const MIB = 1_048_576;
/** Whoever was answered has so long to send the rest of its body. */
const PATIENCE_MS = 5_000;

let server: TestServer;
let scene: Scene;
let hangUps: (() => void)[] = [];
beforeAll(async () => {
  const after: typeof systemClock.after = (ms, callback) => {
    if (ms === PATIENCE_MS) hangUps.push(callback);
    return systemClock.after(ms, callback);
  };
  server = await startTestServer({ clock: { ...systemClock, after } });
  scene = await buildScene(server, "acme");
});
afterAll(() => server?.close());

/** Those who were answered and did not end have had their time. */
function losePatience(): void {
  for (const hangUp of hangUps) hangUp();
  hangUps = [];
}

type Caller = { socket: Socket; heard(): string; written(): number; ended: Promise<unknown> };

/** A connection of raw bytes: what comes first, and then `again`, for as long as anybody reads it or so many times. */
function pour(head: string, again: string, times = Number.POSITIVE_INFINITY, last = ""): Caller {
  const socket = connect(Number(new URL(server.url).port), "127.0.0.1");
  let heard = "";
  let written = 0;
  socket.on("error", () => undefined);
  socket.on("data", (bytes) => {
    heard += String(bytes);
  });
  const ended = new Promise((resolve) => void socket.once("close", resolve));
  const more = () => {
    while (!socket.destroyed && times-- > 0) {
      written += again.length;
      if (!socket.write(again)) return void socket.once("drain", more);
    }
    if (!socket.destroyed) socket.write(last);
  };
  socket.write(head);
  more();
  return { socket, heard: () => heard, written: () => written, ended };
}

const hears = (caller: Caller) => expect.poll(caller.heard);

/** Whatever it would go on to write, nobody takes: not while fifty others are answered. */
async function standsStill(caller: Caller): Promise<void> {
  for (let before = -1; before !== caller.written(); ) {
    before = caller.written();
    for (let n = 0; n < 50; n++) await call(server.url, "GET", "/healthz");
  }
  // What is in buffers of sockets on both sides, and the little that was read.
  expect(caller.written()).toBeLessThan(16 * MIB);
}

const head = (line: string, key: string, framing = "transfer-encoding: chunked", type = "application/json") =>
  `${line} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${key}\r\ncontent-type: ${type}\r\n${framing}\r\n\r\n`;
const piece = (text: string) => `${text.length.toString(16)}\r\n${text}\r\n`;
const bytesOneByOne = piece(" ").repeat(1_000);

it("a body that comes byte by byte is refused long before it is as long as it may be, and says what is allowed", async () => {
  const caller = pour(head("POST /v1/runs", scene.owner), bytesOneByOne);
  await hears(caller).toMatch(/^HTTP\/1\.1 400 /);
  expect(caller.heard()).toContain("5,000 pieces of less than 64 bytes on average; allowed: larger pieces");
  // Nobody reads it any more: what was written is in buffers of sockets on both sides.
  await standsStill(caller);
  losePatience();
  await caller.ended;
});

it("a body that is written word by word, as some libraries do, is a body like others", async () => {
  const words = `{ "job": ${JSON.stringify(REPORT)}, ${" ".repeat(4_000)} "payload": {} }`.split(/(?=[ ,:])/);
  const caller = pour(head("POST /v1/runs", scene.owner), "", 0, `${words.map(piece).join("")}0\r\n\r\n`);
  await hears(caller).toMatch(/^HTTP\/1\.1 201 /);
  caller.socket.destroy();
});

it("who is nobody and sends without end, after it was told so, is hung up on: in crumbs, and in any other way", async () => {
  for (const again of [bytesOneByOne, piece("x".repeat(16_384)).repeat(10)]) {
    const caller = pour(head("POST /v1/runs", "pk_nobody"), again);
    await hears(caller).toMatch(/^HTTP\/1\.1 401 /);
    await standsStill(caller);
    losePatience();
    await caller.ended;
  }
});

it("who is nobody and sends on, a byte now and then, is hung up on", async () => {
  const caller = pour(head("POST /v1/runs", "pk_nobody", "content-length: 100000"), "{", 1);
  await hears(caller).toMatch(/^HTTP\/1\.1 401 /);
  const drip = setInterval(() => caller.socket.write(" "), 20);
  losePatience();
  await caller.ended;
  clearInterval(drip);
});

it("who is refused before its body was read may send it to its end, and call again on the same connection", async () => {
  const bytes = 300_000;
  const first = pour(head("POST /v1/runs", "pk_nobody", `content-length: ${bytes}`), "x".repeat(1_000), bytes / 1_000);
  await hears(first).toMatch(/^HTTP\/1\.1 401 /);
  first.socket.write("GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n");
  await hears(first).toContain("HTTP/1.1 200 ");
  first.socket.destroy();
});

it("an output that comes byte by byte is refused and not kept; one that comes row by row is an output like others", async () => {
  const mine = attemptOf(await scene.claim(await scene.run()));
  const upload = (name: string) =>
    head(
      `PUT /v1/worker/stage?${new URLSearchParams({ ...mine, attempt: "1", name })}`,
      scene.key,
      undefined,
      "text/csv",
    );
  const crumbs = pour(upload("crumbs"), bytesOneByOne);
  await hears(crumbs).toMatch(/^HTTP\/1\.1 400 /);
  losePatience();
  await crumbs.ended;
  expect(crumbs.heard()).toContain("5,000 pieces of less than 8 bytes on average");

  const rows = pour(upload("rows"), piece("2026-11-30,17\n").repeat(1_000), 20, "0\r\n\r\n");
  await hears(rows).toMatch(/^HTTP\/1\.1 200 /);
  rows.socket.destroy();
  const staged = sql("test_staged_names", "select name from object where state = 'staged'");
  expect(await server.db.query(staged, [])).toEqual([{ name: "rows" }]);
});

it("an output that is larger than it may be, and did not say so before, is refused in words", async () => {
  const mine = attemptOf(await scene.claim(await scene.run()));
  const query = new URLSearchParams({ ...mine, attempt: "1", name: "large" });
  const caller = pour(head(`PUT /v1/worker/stage?${query}`, scene.key), piece("x".repeat(16_384)));
  await hears(caller).toMatch(/^HTTP\/1\.1 413 /);
  await standsStill(caller);
  losePatience();
  await caller.ended;
});
