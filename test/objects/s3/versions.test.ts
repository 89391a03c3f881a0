import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { buffer } from "node:stream/consumers";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createObjectKey } from "../../../src/objects/key.ts";
import { createS3Store } from "../../../src/objects/s3/store.ts";

/**
 * What is said on the wire to a server that keeps versions, as far as one can tell without one: s3.test.ts asks a real one
 * where it is installed.
 */
describe("a bucket that keeps versions", () => {
  const KEY = createObjectKey({ runId: "0196a0c1-5c00-8123-8abc-0123456789ab", attempt: 1, fence: 3n, name: "a.txt" });
  const PATH = `/results/t/${KEY}`;
  const plain = { mediaType: "text/plain" };
  /** What it answers to a PUT of the object. */
  let versionOfPut: string | undefined;
  let isThere: boolean;
  /** PUTs of the object that meet another one's. */
  let conflicts: number;
  let heard: string[];
  const server = createServer((request, response) => void answer(request, response));

  beforeEach(async () => {
    versionOfPut = "v2";
    isThere = false;
    conflicts = 0;
    heard = [];
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
  });
  afterEach(async () => {
    server.closeAllConnections();
    await new Promise((closed) => server.close(closed));
  });

  async function answer(request: IncomingMessage, response: ServerResponse) {
    await buffer(request);
    const url = new URL(request.url!, "http://server");
    const version = url.searchParams.get("versionId");
    if (url.pathname === PATH) heard.push(`${request.method} ${version ?? "-"}`);
    const say = (status: number, headers: Record<string, string | undefined> = {}, body = "") => {
      for (const [name, value] of Object.entries(headers)) if (value !== undefined) response.setHeader(name, value);
      response.writeHead(status).end(body);
    };
    if (request.headers["if-none-match"] !== undefined) return say(501);
    if (url.searchParams.has("versions")) {
      const one = (tag: string, key: string, id: string) =>
        `<${tag}><Key>t/${key}</Key><VersionId>${id}</VersionId></${tag}>`;
      const found = [
        one("Version", KEY, "v1"),
        one("Version", KEY, "v2"),
        one("Version", `${KEY}.other`, "v9"),
        one("DeleteMarker", KEY, "gone"),
      ];
      return say(
        200,
        { "content-type": "application/xml" },
        `<ListVersionsResult>${found.join("")}</ListVersionsResult>`,
      );
    }
    if (request.method === "PUT" && url.pathname === PATH && conflicts-- > 0) return say(409);
    if (request.method === "PUT") {
      return say(200, { etag: '"e"', "x-amz-version-id": url.pathname === PATH ? versionOfPut : "probe" });
    }
    if (request.method === "DELETE") {
      return say(204, version === null ? { "x-amz-delete-marker": "true", "x-amz-version-id": "gone" } : {});
    }
    if (request.method === "HEAD" && version === null && !isThere) return say(404);
    return say(
      200,
      { etag: '"e"', "x-amz-version-id": version ?? "v2" },
      request.method === "HEAD" ? "" : `of ${version}`,
    );
  }

  const open = () =>
    createS3Store({
      endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
      region: "us-east-1",
      pathStyle: true,
      credentials: { accessKeyId: "a", secretAccessKey: "s" },
      bucket: "results",
      prefix: "t/",
      timeoutMs: 10_000,
      presignsDownloads: true,
    });

  it("is asked for the version that was published, by readers and by links, whatever came after it", async () => {
    const store = open();
    const put = await store.put(KEY, Buffer.from("report"), plain);
    expect(put).toMatchObject({ kind: "created", object: { version: "id:v2" } });
    const object = { uri: store.uriOf(KEY), version: "id:v1" };
    expect(String(await buffer(await store.open(object)))).toBe("of v1");
    await store.stat(object);
    expect(heard).toEqual(["HEAD -", "PUT -", "GET v1", "HEAD v1"]);
    const link = await store.downloadLink(object, { ...plain, fileName: "a.txt", forMs: 60_000 });
    expect(new URL(link!).searchParams.get("versionId")).toBe("v1");
  });

  it.each([undefined, "null"])(
    "that has stopped doing so (version %s) is told, and publishes nothing",
    async (version) => {
      versionOfPut = version;
      await expect(open().put(KEY, Buffer.from("report"), plain)).rejects.toMatchObject({
        code: "objects-unguarded",
        message: expect.stringContaining("does not keep versions any more"),
      });
    },
  );

  it("is not given a second version of what is there", async () => {
    isThere = true;
    expect(await open().put(KEY, Buffer.from("another"), plain)).toMatchObject({ kind: "exists" });
    expect(heard).toEqual(["HEAD -"]);
  });

  it("is asked again when somebody else's create of the same key is under way: that one may yet fail", async () => {
    conflicts = 1;
    expect(await open().put(KEY, Buffer.from("report"), plain)).toMatchObject({ kind: "created" });
    expect(heard).toEqual(["HEAD -", "PUT -", "PUT -"]);
  });

  it("loses every version of what is removed, and the marker; its neighbours stay", async () => {
    const store = open();
    await store.remove(store.uriOf(KEY));
    expect(heard).toEqual(["DELETE -", "DELETE v1", "DELETE v2", "DELETE gone"]);
  });
});
