import { once } from "node:events";
import { createServer, type Server, type Socket } from "node:net";
import { afterEach, expect, it } from "vitest";
import { systemClock } from "../../../src/kernel/clock.ts";
import { outboundOf } from "../../support/outbound.ts";
import { attempt, HERE } from "./scene.ts";

let server: Server | undefined;
afterEach(() => void server?.close());

/** A target of raw sockets, which does this once it was asked something. */
async function target(answer: (socket: Socket) => void): Promise<string> {
  server = createServer((socket: Socket) => {
    socket.on("error", () => undefined).resume();
    socket.once("data", () => answer(socket));
  });
  server.listen(0, HERE);
  await once(server, "listening");
  return `http://${HERE}:${(server.address() as { port: number }).port}`;
}

/** One that never ends: what comes first, and then the same again until nobody listens any more. */
async function pouring(first: string, again: string): Promise<{ url: string; written: () => number }> {
  let written = 0;
  const url = await target((socket) => {
    const more = () => {
      while (!socket.destroyed) {
        written += again.length;
        if (!socket.write(again)) return void socket.once("drain", more);
      }
    };
    socket.write(first);
    more();
  });
  return { url, written: () => written };
}

const CHUNKED = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
const MIB = 1_048_576;

it("an answer that comes a byte at a time is ended long before it is as long as it may be", async () => {
  const { url, written } = await pouring(CHUNKED, "1\r\nA\r\n".repeat(10_000));
  const { outcome, ctx } = await attempt({ url, responseLimitBytes: 64 * MIB });
  expect(outcome).toMatchObject({
    transient: true,
    code: "http-connection",
    message: expect.stringContaining("a flood of pieces"),
  });
  expect(ctx.staged).toEqual([]);
  // 6 bytes a piece, and what is in buffers of sockets on both sides.
  expect(written()).toBeLessThan(32 * MIB);
});

it("interim answers without end are an answer that never comes", async () => {
  const { url, written } = await pouring("", "HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n".repeat(1_000));
  const { outcome } = await attempt({ url });
  expect(outcome).toMatchObject({
    transient: true,
    code: "http-connection",
    message: expect.stringContaining("a flood of interim answers"),
  });
  expect(written()).toBeLessThan(32 * MIB);
});

it("a table that is written row by row, however many rows, and a few bytes that come alone, are an answer like others", async () => {
  const row = "2026-11-30,17\n";
  const rows = `${row.length.toString(16)}\r\n${row}\r\n`.repeat(50_000);
  const crumbs = "1\r\nA\r\n".repeat(1_000);
  const hints = "HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n".repeat(3);
  const url = await target((socket) => void socket.end(`${hints}${CHUNKED}${crumbs}${rows}0\r\n\r\n`));
  const { outcome, ctx } = await attempt({ url });
  expect(outcome.kind).toBe("succeeded");
  expect(ctx.staged[0]!.text).toHaveLength(1_000 + 50_000 * row.length);
});

it("a byte and an interim answer now and then, for hours, are an answer like others", async () => {
  let now = 0;
  const slowly = outboundOf({ allow: [HERE], clock: { ...systemClock, monotonic: () => (now += 60_000) } });
  const hints = "HTTP/1.1 102 Processing\r\n\r\n".repeat(500);
  const dots = "1\r\n.\r\n".repeat(20_000);
  const url = await target((socket) => void socket.end(`${hints}${CHUNKED}${dots}0\r\n\r\n`));
  const { outcome, ctx } = await attempt({ url }, { tools: { outbound: slowly } });
  await slowly.close();
  expect(outcome.kind).toBe("succeeded");
  expect(ctx.staged[0]!.text).toHaveLength(20_000);
});
