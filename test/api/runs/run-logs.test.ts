import { Readable } from "node:stream";
import { afterAll, beforeAll, expect, it } from "vitest";
import type { Grant } from "../../../src/authority/attempts/grant.ts";
import { heartbeat } from "../../../src/authority/attempts/heartbeat.ts";
import { keepLog, type LogStore } from "../../../src/authority/attempts/keep-log.ts";
import { createClient } from "../../../src/client/client.ts";
import { readId } from "../../../src/kernel/ids.ts";
import { call, REPORT, startTestServer, type TestServer } from "../server.ts";
import { claimRun } from "./claims.ts";

let server: TestServer;
let key: string;
/** Parts in the test's own object store. */
let store: LogStore;

beforeAll(async () => {
  server = await startTestServer();
  key = await server.key(await server.tenant("acme"), "owner");
  store = {
    limitBytes: 40,
    async put({ part }, bytes) {
      const uri = `memory:${part}`;
      server.objects.set(uri, Buffer.from(bytes).toString());
      return { name: `log-${part}.txt`, uri, version: "1", sha256: "0".repeat(64), size: bytes.byteLength };
    },
    remove: async (uri) => void server.objects.delete(uri),
  };
});
afterAll(() => server?.close());

const send = (path: string) => call(server.url, "GET", path, { key });
const say = ({ runId, attempt, fence }: Grant, text: string) =>
  keepLog(server.authority, store, { runId, attempt, fence, bytes: Buffer.from(text) });

async function begin(): Promise<{ run: string; grant: Grant }> {
  const made = await call(server.url, "POST", "/v1/runs", { key, body: { job: REPORT, payload: {} } });
  const run = String(made.body.runId);
  return { run, grant: await claimRun(server, run) };
}

it("the log of a running attempt is read as it grows, from where one has got to", async () => {
  const { run, grant } = await begin();
  expect(await send(`/v1/runs/${run}/logs`)).toMatchObject({ status: 200, text: "" });
  await say(grant, "one\n");
  const first = await send(`/v1/runs/${run}/logs`);
  expect(first).toMatchObject({ status: 200, text: "one\n" });
  expect(first.headers.get("content-type")).toBe("text/plain; charset=utf-8");
  expect(first.headers.get("punctual-log-attempt")).toBe("1");
  await say(grant, "zwölf\n");
  const next = first.headers.get("punctual-log-next");
  expect((await send(`/v1/runs/${run}/logs?fromByte=${next}`)).text).toBe("zwölf\n");
  // From the middle of a character: from the one after it.
  expect((await send(`/v1/runs/${run}/logs?tailBytes=4`)).text).toBe("lf\n");
  expect((await send(`/v1/runs/${run}/logs?fromByte=999`)).headers.get("punctual-log-next")).toBe("999");
});

it("what is not kept any more is said in its place", async () => {
  const { run, grant } = await begin();
  for (const letter of "abc") await say(grant, `${letter.repeat(19)}\n`);
  expect((await send(`/v1/runs/${run}/logs`)).text).toBe(
    `[20 bytes are not kept]\n${"b".repeat(19)}\n${"c".repeat(19)}\n`,
  );
  server.objects.delete([...server.objects.keys()].at(-1)!);
  expect((await send(`/v1/runs/${run}/logs?tailBytes=30`)).text).toBe(`${"b".repeat(9)}\n[20 bytes are not kept]\n`);
});

it("attempts tell how far they are and how long their log is", async () => {
  const { run, grant } = await begin();
  const attempts = () => send(`/v1/runs/${run}/attempts`);
  expect((await attempts()).body).toMatchObject({ items: [{ progress: null, logBytes: null }] });
  await heartbeat(server.authority, [{ ...grant, progress: '{"rows": 12}' }]);
  await say(grant, "twelve rows\n");
  expect((await attempts()).body).toMatchObject({ items: [{ progress: { rows: 12 }, logBytes: 12 }] });
});

it("an attempt that is not there has no log", async () => {
  const { run } = await begin();
  expect(await send(`/v1/runs/${run}/logs?attempt=2`)).toMatchObject({ status: 404, body: { code: "not-found" } });
  expect(await send(`/v1/runs/${run}/logs?attempt=x`)).toMatchObject({ status: 400 });
});

it("the client reads a log as it comes", async () => {
  const { run, grant } = await begin();
  await say(grant, "hello\n");
  const client = createClient({ url: server.url, key, sleep: async () => {} });
  const log = await client.runs.logs(run);
  expect(log).toMatchObject({ attempt: 1, nextByte: 6 });
  expect(Buffer.concat(await Readable.from(log.text).toArray()).toString()).toBe("hello\n");
  expect(readId("run", run)).toBe(grant.runId);
});
