import { once } from "node:events";
import { createServer, type Socket } from "node:net";
import { brotliCompressSync, constants, deflateSync, gzipSync, zstdCompressSync } from "node:zlib";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { systemClock } from "../../../src/kernel/clock.ts";
import { attempt, HERE, openTarget, reset, type Target } from "./scene.ts";

let target: Target;
beforeAll(async () => {
  target = await openTarget();
});
afterAll(() => target.close());
beforeEach(() => reset(target));

const MIB = 1_048_576;

describe("a target that takes its time", () => {
  const late = { kind: "failed", transient: true, code: "http-timeout" };

  it("before its headers is given up after timeoutMs, and its connection is closed", async () => {
    const gone = new Promise<void>((resolve) => {
      target.answer = (response) => void response.once("close", resolve);
    });
    const { outcome } = await attempt({ url: target.url, timeoutMs: 1000 });
    expect(outcome).toMatchObject({ ...late, message: `${target.url} did not answer within 1000 ms` });
    await gone;
  });

  it("in the middle of its body is given up as well", async () => {
    target.answer = (response) => void response.writeHead(200).write("half of it");
    const { outcome, ctx } = await attempt({ url: target.url, timeoutMs: 300 });
    expect(outcome).toMatchObject(late);
    expect(ctx.staged).toEqual([]);
  });

  it("a byte at a time is given up when all of it has taken too long, not when one byte has", async () => {
    target.answer = (response) => {
      response.writeHead(200);
      const drip = setInterval(() => response.write("x"), 20);
      response.once("close", () => clearInterval(drip));
    };
    expect((await attempt({ url: target.url, timeoutMs: 400 })).outcome).toMatchObject(late);
  });

  it("between two redirects has one time for all of it", async () => {
    target.answer = (response, { path }) => {
      if (path === "/") response.writeHead(302, { location: "/silent" }).end();
    };
    const job = { url: `${target.url}/`, timeoutMs: 1000, redirects: { policy: "follow", max: 5 } } as const;
    expect((await attempt(job)).outcome).toMatchObject(late);
    expect(target.calls).toHaveLength(2);
  });

  it("is let go of at once when the attempt is told to stop", async () => {
    const stop = new AbortController();
    const gone = new Promise<void>((resolve) => {
      target.answer = (response) => {
        response.once("close", resolve);
        stop.abort("canceled");
      };
    });
    const { outcome } = await attempt({ url: target.url }, { signal: stop.signal });
    expect(outcome).toMatchObject({ kind: "failed", code: "aborted" });
    await gone;
  });
});

describe("a large answer", () => {
  /** Writes as long as somebody reads; says how much was taken. */
  function pouring(packed?: Buffer): { written: number } {
    const poured = { written: 0 };
    const piece = packed ?? Buffer.alloc(65_536, "x");
    target.answer = (response) => {
      response.writeHead(200, packed === undefined ? {} : { "content-encoding": "gzip" });
      if (packed !== undefined) return void response.end(packed);
      const more = () => {
        while (!response.destroyed) {
          poured.written += piece.length;
          if (!response.write(piece)) return void response.once("drain", more);
        }
      };
      more();
    };
    return poured;
  }

  it("is a failure, and no more of it is read than may be kept", async () => {
    const poured = pouring();
    const { outcome } = await attempt({ url: target.url, responseLimitBytes: MIB });
    expect(outcome).toMatchObject({ kind: "failed", transient: false, code: "response-too-large" });
    // What is beyond the limit is in buffers of sockets on both sides.
    expect(poured.written).toBeLessThan(16 * MIB);
  });

  it("is cut where the job says so", async () => {
    pouring();
    const job = { url: target.url, responseLimitBytes: 100_000, largeResponse: "truncate" } as const;
    const { outcome, ctx } = await attempt(job);
    expect(outcome.kind).toBe("succeeded");
    expect(ctx.staged[0]!.text).toHaveLength(100_000);
  });

  it("is as large as it is unpacked", async () => {
    const bomb = gzipSync(Buffer.alloc(64 * MIB));
    expect(bomb.length).toBeLessThan(100_000);
    pouring(bomb);
    expect((await attempt({ url: target.url })).outcome).toMatchObject({ code: "response-too-large" });
  });

  it("of exactly the limit is kept whole, and of nothing where nothing may be kept", async () => {
    target.answer = (response) => void response.end("x".repeat(1000));
    expect((await attempt({ url: target.url, responseLimitBytes: 1000 })).outcome.kind).toBe("succeeded");
    expect((await attempt({ url: target.url, responseLimitBytes: 999 })).outcome).toMatchObject({
      code: "response-too-large",
    });
    const none = { url: target.url, responseLimitBytes: 0, largeResponse: "truncate" } as const;
    expect((await attempt(none)).outcome).toEqual({ kind: "succeeded" });
  });
});

describe("an answer that was packed although nobody asked for it", () => {
  const packing = (encoding: string, bytes: Uint8Array) => {
    target.answer = (response) =>
      void response.writeHead(200, { "content-encoding": encoding, "content-type": "text/plain" }).end(bytes);
  };

  it.each([
    ["gzip", gzipSync("hello")],
    ["X-GZIP", gzipSync("hello")],
    ["deflate", deflateSync("hello")],
    ["br", brotliCompressSync("hello")],
    ["identity", Buffer.from("hello")],
    ["gzip, identity", gzipSync("hello")],
    ["zstd", zstdCompressSync("hello")],
  ])("as %s is unpacked", async (encoding, bytes) => {
    packing(encoding, bytes);
    expect((await attempt({ url: target.url })).ctx.staged).toEqual([
      { name: "response", mediaType: "text/plain", text: "hello" },
    ]);
    expect(target.calls[0]!.headers["accept-encoding"]).toBe("identity");
  });

  it.each(["zip", "gzip, gzip", "gzip, br", "constructor"])("as %s is a failure", async (encoding) => {
    packing(encoding, Buffer.from("hello"));
    expect((await attempt({ url: target.url })).outcome).toMatchObject({
      transient: false,
      code: "response-unreadable",
    });
  });

  /** 20 bytes that hold none. */
  const EMPTY = gzipSync("");

  it("and holds nothing is ended long before its end, however much of it comes", async () => {
    let sent = 0;
    const nothing = Buffer.alloc(60_000, EMPTY);
    target.answer = (response) => {
      response.writeHead(200, { "content-encoding": "gzip" });
      const more = () => {
        while (!response.destroyed) {
          sent += nothing.length;
          if (!response.write(nothing)) return void response.once("drain", more);
        }
      };
      more();
    };
    for (const largeResponse of ["fail", "truncate"] as const) {
      const { outcome, ctx } = await attempt({ url: target.url, largeResponse });
      expect(outcome).toMatchObject({ transient: false, code: "response-unreadable" });
      expect(ctx.staged).toEqual([]);
    }
    expect(sent).toBeLessThan(16 * MIB);
  });

  it("and holds a byte now and then is ended once it is longer than what it may hold", async () => {
    const next = Buffer.concat([Buffer.alloc(400_000, EMPTY), gzipSync("x")]);
    packing("gzip", Buffer.concat(Array.from({ length: 10 }, () => next)));
    expect((await attempt({ url: target.url, responseLimitBytes: 1000 })).outcome).toMatchObject({
      transient: false,
      code: "response-unreadable",
    });
  });

  it("and wants more memory to be unpacked than an answer may is a failure", async () => {
    const wide = { params: { [constants.ZSTD_c_windowLog]: 27, [constants.ZSTD_c_compressionLevel]: 1 } };
    packing("zstd", zstdCompressSync(Buffer.alloc(32 * MIB), wide));
    expect((await attempt({ url: target.url })).outcome).toMatchObject({
      transient: false,
      code: "response-unreadable",
    });
    packing("zstd", zstdCompressSync(Buffer.alloc(MIB), wide));
    expect((await attempt({ url: target.url })).outcome.kind).toBe("succeeded");
  });

  it("and was cut on its way, or is no such thing, is tried again", async () => {
    packing("gzip", gzipSync("hello ".repeat(1000)).subarray(0, 30));
    expect((await attempt({ url: target.url })).outcome).toMatchObject({ transient: true, code: "http-connection" });
    packing("gzip", Buffer.from("plain text"));
    expect((await attempt({ url: target.url })).outcome).toMatchObject({ transient: true, code: "http-connection" });
  });
});

describe("a connection that breaks (B58)", () => {
  const broken = { kind: "failed", transient: true, code: "http-connection" };

  it("before the answer, or within it, is tried again", async () => {
    target.answer = (_response, _call, request) => request.socket.destroy();
    expect((await attempt({ url: target.url })).outcome).toMatchObject(broken);
    target.answer = (response, _call, request) => {
      response.writeHead(200, { "content-length": "100" }).write("half", () => request.socket.destroy());
    };
    expect((await attempt({ url: target.url })).outcome).toMatchObject(broken);
    target.answer = (response, _call, request) => {
      response.writeHead(200).write("a chunk and no end", () => request.socket.destroy());
    };
    const { outcome, ctx } = await attempt({ url: target.url });
    expect(outcome).toMatchObject(broken);
    expect(ctx.staged).toEqual([]);
  });

  it("because nobody listens, or speaks HTTP, is tried again", async () => {
    expect((await attempt({ url: `http://${HERE}:1` })).outcome).toMatchObject({
      ...broken,
      message: expect.stringContaining("ECONNREFUSED"),
    });
    const stranger = createServer((socket: Socket) => void socket.end("220 mail.example.com ESMTP\r\n"));
    stranger.listen(0, HERE);
    await once(stranger, "listening");
    const { port } = stranger.address() as { port: number };
    expect((await attempt({ url: `http://${HERE}:${port}` })).outcome).toMatchObject(broken);
    expect((await attempt({ url: `https://${HERE}:${port}` })).outcome).toMatchObject({
      transient: true,
      code: expect.stringMatching(/^http-(tls|connection)$/),
    });
    stranger.close();
  });

  it("because the name is not known is tried again", async () => {
    expect((await attempt({ url: "http://nowhere.example/" })).outcome).toMatchObject({
      transient: true,
      code: "dns-failed",
    });
  });

  it("is not waited for beyond the time of a connection", async () => {
    const clock = { ...systemClock };
    const silent = createServer();
    silent.listen(0, HERE);
    await once(silent, "listening");
    const { port } = silent.address() as { port: number };
    // It takes the connection and says nothing: no TLS comes about.
    const { outcome } = await attempt({ url: `https://${HERE}:${port}`, timeoutMs: 500 }, { tools: { clock } });
    expect(outcome).toMatchObject({ transient: true, code: "http-timeout" });
    silent.close();
  });
});
