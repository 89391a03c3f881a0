import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";
import { buffer } from "node:stream/consumers";
import { setImmediate } from "node:timers/promises";
import { CreateMultipartUploadCommand, PutObjectCommand, S3Client, UploadPartCommand } from "@aws-sdk/client-s3";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createObjectKey } from "../../src/objects/key.ts";
import type { ObjectStore } from "../../src/objects/port.ts";
import type { S3Options } from "../../src/objects/s3/place.ts";
import { createS3Store } from "../../src/objects/s3/store.ts";
import { describeObjectStore, streamOf } from "./conformance.ts";
import { startS3rver } from "./s3/s3rver.ts";
import type { S3Server } from "./s3/server.ts";
import { startSwift, swiftAvailable } from "./s3/swift.ts";

if (!swiftAvailable) {
  console.log("No Swift on PATH: the S3 store is tested without a server that keeps versions and checks signatures.");
}

const plain = { mediaType: "text/plain" };
const RUN = "0196a0c1-5c00-8123-8abc-0123456789ab";
/** Four Python programs on a busy machine. */
const START_LIMIT_MS = 180_000;
let used = 0;
const freshKey = (name = "result.txt") => createObjectKey({ runId: RUN, attempt: ++used, fence: 3n, name });

let swift: Promise<S3Server> | undefined;
/** One for the file: it takes some seconds to start. */
const sharedSwift = async (): Promise<S3Server> => {
  swift ??= startSwift();
  return { ...(await swift), stop: async () => undefined };
};
afterAll(async () => (await swift)?.stop());

describeServer("s3rver with conditions in front", "once", () => startS3rver({ conditions: true }));
if (swiftAvailable) {
  describeServer("OpenStack Swift, versions", "versions", sharedSwift);
  describe("links of a server that checks signatures", () => {
    const { open } = serverFor(sharedSwift);

    it("a download link gives the very version, under the name and type that were asked for, and dies", async () => {
      const store = open({ presignsDownloads: true });
      const object = await created(store, "first");
      await overwrite(open.options(), object.uri, "second");
      const options = { mediaType: "text/csv", fileName: 'März "20%".csv', forMs: 60_000 };
      const link = (await store.downloadLink(object, options))!;
      const answer = await fetch(link);
      expect(await answer.text()).toBe("first");
      expect(answer.headers.get("content-type")).toMatch(/^text\/csv/);
      expect(answer.headers.get("content-disposition")).toBe(
        `attachment; filename="M_rz _20__.csv"; filename*=UTF-8''M%C3%A4rz%20%2220%25%22.csv`,
      );
      expect((await fetch(link.replace(/Signature=\w{8}/, "Signature=00000000"))).status).toBe(403);
      expect(link).not.toContain(open.options().credentials!.secretAccessKey);

      const short = (await store.downloadLink(object, { ...options, forMs: 1_000 }))!;
      while ((await fetch(short)).status === 200) await setImmediate();
      expect((await fetch(short)).status).toBe(403);
    });

    it("an upload link creates that key alone, of that type alone", async () => {
      const store = open();
      const key = freshKey();
      const link = (await store.uploadLink(key, { mediaType: "text/html", forMs: 60_000 }))!;
      const put = (url: string, headers: Record<string, string>) =>
        fetch(url, { method: "PUT", body: "report", headers }).then((answer) => answer.status);
      expect(await put(link.url.replace("result.txt", "other.txt"), link.headers)).toBe(403);
      expect(await put(link.url, { ...link.headers, "content-type": "text/plain" })).toBe(403);
      expect(await put(link.url, link.headers)).toBe(200);
      const found = await store.verify({ uri: store.uriOf(key), version: null }, await digestOf("report"));
      expect(found.kind).toBe("intact");
    });
  });
}

function describeServer(name: string, creates: "once" | "versions", start: () => Promise<S3Server>): void {
  describe(name, () => {
    const { open } = serverFor(start);
    describeObjectStore(`S3, ${name}`, async () => open(), { creates });

    it("bytes that were written over are not given out under the reference of the first ones", async () => {
      const store = open();
      const object = await created(store, "first");
      await overwrite(open.options(), object.uri, "second");
      if (creates === "versions") {
        expect(String(await buffer(await store.open(object)))).toBe("first");
        expect(await store.verify(object, object)).toEqual({ kind: "intact", object });
      } else {
        await expect(store.open(object)).rejects.toMatchObject({ code: "object-missing" });
        expect(await store.stat(object)).toBeUndefined();
      }
      await store.remove(object.uri);
      expect(await store.stat({ uri: object.uri, version: null })).toBeUndefined();
      expect(await store.stat(object)).toBeUndefined();
    });

    it("an upload goes on over a connection that was cut", async () => {
      const proxy = await startCuttingProxy(new URL(open.options().endpoint!).port);
      const store = open({ endpoint: proxy.url });
      await store.prepare();
      proxy.cutAfter(5 << 20);
      const chunk = Buffer.alloc(1 << 20, "x");
      const object = await created(store, streamOf(Array.from({ length: 20 }, () => chunk)));
      expect(proxy.cuts()).toBe(1);
      expect(await open().verify(object, object)).toMatchObject({ kind: "intact" });
      await proxy.close();
    });

    it("a server that does not answer is an operator's error that time may mend", async () => {
      const store = open({ endpoint: "http://127.0.0.1:1" });
      await expect(store.prepare()).rejects.toMatchObject({ code: "objects-unavailable", retryable: true });
      await expect(store.put(freshKey(), Buffer.from("x"), plain)).rejects.toMatchObject({ actor: "operator" });
    });

    it("wrong credentials are an operator's error that names neither them nor a path", async () => {
      const wrong = { accessKeyId: "AKIA-NOBODY", secretAccessKey: "a-wrong-secret" };
      const key = freshKey();
      const failed = await open({ credentials: wrong })
        .put(key, Buffer.from("x"), plain)
        .catch((error: unknown) => error);
      expect(failed).toMatchObject({ code: "objects-not-permitted", retryable: false, details: { bucket: "results" } });
      const told = JSON.stringify({ ...(failed as Error), message: (failed as Error).message });
      for (const secret of [...Object.values(wrong), RUN]) expect(told).not.toContain(secret);
    });

    it("a bucket that is not there is named", async () => {
      await expect(open({ bucket: "nowhere" }).prepare()).rejects.toMatchObject({
        code: "objects-no-bucket",
        details: { bucket: "nowhere" },
      });
    });
  });
}

describe("a server with neither conditional writes nor versions", () => {
  const { open } = serverFor(() => startS3rver({ conditions: false }));

  it("is refused in words, before anything is stored in it", async () => {
    const store = open();
    await expect(store.prepare()).rejects.toMatchObject({
      code: "objects-unguarded",
      actor: "operator",
      message: expect.stringContaining("neither conditional writes (If-None-Match) nor versions in bucket results"),
    });
    await expect(store.put(freshKey(), Buffer.from("x"), plain)).rejects.toMatchObject({ code: "objects-unguarded" });
    expect(await store.list(undefined)).toEqual({ objects: [], next: undefined });
  });
});

if (swiftAvailable) {
  describe("multipart uploads that broke off", () => {
    const { open } = serverFor(sharedSwift);

    it("are ended when they are old, with what they had stored", async () => {
      const client = clientOf(open.options());
      const at = { Bucket: open.options().bucket, Key: `t/${freshKey()}` };
      const { UploadId } = await client.send(new CreateMultipartUploadCommand(at));
      await client.send(new UploadPartCommand({ ...at, UploadId, PartNumber: 1, Body: Buffer.alloc(1000) }));
      const store = open();
      expect(await store.removeAbandoned(Date.now() - 60_000)).toBe(0);
      expect(await store.removeAbandoned(Date.now() + 60_000)).toBe(1);
      expect(await store.removeAbandoned(Date.now() + 60_000)).toBe(0);
    });
  });
}

function serverFor(start: () => Promise<S3Server>) {
  let server: S3Server;
  beforeAll(async () => {
    server = await start();
  }, START_LIMIT_MS);
  afterAll(() => server.stop());
  const options = (change: Partial<S3Options> = {}): S3Options => ({
    prefix: "t/",
    timeoutMs: 10_000,
    presignsDownloads: false,
    ...server.options,
    ...change,
  });
  return { open: Object.assign((change?: Partial<S3Options>) => createS3Store(options(change)), { options }) };
}

async function created(store: ObjectStore, bytes: string | AsyncIterable<Uint8Array>) {
  const outcome = await store.put(freshKey(), typeof bytes === "string" ? Buffer.from(bytes) : bytes, plain);
  if (outcome.kind !== "created") throw new Error(`expected a new object, found ${outcome.kind}`);
  return outcome.object;
}

const clientOf = (options: S3Options) =>
  new S3Client({
    endpoint: options.endpoint!,
    region: options.region,
    forcePathStyle: true,
    credentials: options.credentials!,
    requestChecksumCalculation: "WHEN_REQUIRED",
  });

/** As somebody with other tools would. */
async function overwrite(options: S3Options, uri: string, text: string): Promise<void> {
  const Key = options.prefix + uri.slice("s3:".length);
  await clientOf(options).send(new PutObjectCommand({ Bucket: options.bucket, Key, Body: text }));
}

async function digestOf(text: string) {
  const hash = Buffer.from(await crypto.subtle.digest("SHA-256", Buffer.from(text)));
  return { sha256: hash.toString("hex"), size: text.length };
}

/** Passes bytes on, and resets one connection when so many have gone to the server. */
async function startCuttingProxy(port: string) {
  let left = Number.POSITIVE_INFINITY;
  let cuts = 0;
  const open = new Set<Socket>();
  const server = createServer((client) => {
    open.add(client);
    const upstream = connect(Number(port), "127.0.0.1");
    for (const socket of [client, upstream]) socket.on("error", () => undefined);
    upstream.on("close", () => client.destroy());
    client.on("close", () => upstream.destroy());
    client.on("data", (chunk: Buffer) => {
      left -= chunk.byteLength;
      if (left >= 0) return upstream.write(chunk);
      left = Number.POSITIVE_INFINITY;
      cuts++;
      return client.resetAndDestroy();
    });
    upstream.pipe(client);
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as { port: number }).port}`,
    cutAfter: (bytes: number) => {
      left = bytes;
    },
    cuts: () => cuts,
    close: () => {
      for (const socket of open) socket.destroy();
      return new Promise<void>((done) => server.close(() => done()));
    },
  };
}
