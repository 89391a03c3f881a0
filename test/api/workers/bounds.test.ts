import { randomUUID } from "node:crypto";
import { request } from "node:http";
import { PassThrough } from "node:stream";
import { afterAll, beforeAll, expect, it } from "vitest";
import { createPresence } from "../../../src/api/worker/presence.ts";
import { announceRemoteWorker } from "../../../src/authority/dispatch/presence.ts";
import { grantUpload } from "../../../src/authority/objects/grant-upload.ts";
import { systemClock } from "../../../src/kernel/clock.ts";
import { createLog } from "../../../src/kernel/log.ts";
import { sql } from "../../../src/store/database.ts";
import { countLiveSlots } from "../../../src/store/rows/registry.ts";
import { call, startTestServer, type TestServer } from "../server.ts";
import { attemptOf, buildScene, type Scene } from "./scene.ts";

/** How much one tenant's workers may leave behind here. */
let server: TestServer;
let scene: Scene;
const said: string[] = [];
beforeAll(async () => {
  const lines = new PassThrough().on("data", (line) => said.push(String(line)));
  const log = createLog({ level: "debug", role: "test", destination: lines });
  server = await startTestServer({ log });
  scene = await buildScene(server, "bounds");
});
afterAll(() => server?.close());

const WORKERS = sql("test_workers", "select name, seen_at from worker where tenant_id = $1");
const MANY_WORKERS = sql(
  "test_many_workers",
  `insert into worker (id, tenant_id, name, jobs, concurrency, slots, version, started_at, seen_at)
   select gen_random_uuid(), $1, 'w' || n, '{}', 1, '{"short": {"slots": 5, "p95Ms": 1}}', '', now(), now()
     from generate_series(1, 999) n`,
);
const HEARD_AGO = sql(
  "test_heard_ago",
  "update worker set seen_at = clock_timestamp() - $2::int * interval '1 s' where id = $1",
);
const OBJECTS = sql("test_objects_of", "select state, count(*)::int as n from object where run_id = $1 group by state");

it("an attempt may have a hundred outputs, and says the same ones again", async () => {
  const grant = await scene.claim(await scene.run());
  const output = (n: number) => ({ name: `${n}.txt`, uri: `memory:${grant.runId}${n}`, mediaType: "text/plain" });
  for (let n = 0; n < 99; n++) {
    expect(await grantUpload(server.authority, { ...grant, ...output(n) })).toMatchObject({ kind: "granted" });
  }
  const ask = (name: string) => scene.say("upload", { ...attemptOf(grant), name, mediaType: "text/plain" });
  expect((await ask("last.txt")).status).toBe(200);
  expect(await ask("one-more.txt")).toMatchObject({ status: 409, body: { code: "too-many-outputs", limit: 100 } });
  expect((await ask("last.txt")).status).toBe(200);
  const another = await scene.claim(await scene.run());
  expect((await scene.say("upload", { ...attemptOf(another), name: "one.txt", mediaType: "text/plain" })).status).toBe(
    200,
  );
});

it("a worker that calls itself anew each time is written down a thousand times, and has no slots of ours", async () => {
  const { tenantId } = scene;
  await server.db.query(MANY_WORKERS, [tenantId]);
  const worker = { id: randomUUID(), tenantId, name: "last", jobs: [], concurrency: 1, version: "" };
  await announceRemoteWorker(server.authority, worker);
  await announceRemoteWorker(server.authority, { ...worker, id: randomUUID(), name: "one-more" });
  const before = await server.db.query<{ name: string; seen_at: number }>(WORKERS, [tenantId]);
  expect(before.length).toBe(1_000);
  await announceRemoteWorker(server.authority, worker);
  const seenAt = (rows: typeof before) => rows.find(({ name }) => name === "last")!.seen_at;
  expect(seenAt(await server.db.query(WORKERS, [tenantId]))).toBeGreaterThan(seenAt(before));
  expect(await countLiveSlots(server.db)).toEqual([]);
});

it("however many workers of a tenant are heard of at once, they take one connection, and others are written down beside them", async () => {
  const { db } = server;
  let [now, most] = [0, 0];
  const counted: typeof db.query = async (statement, values) => {
    most = Math.max(most, ++now);
    return await db.query<never>(statement, values).finally(() => now--);
  };
  const presence = createPresence({
    authority: { ...server.authority, db: { ...db, query: counted } },
    clock: systemClock,
  });
  const [crowd, other] = [await server.tenant("crowd"), await server.tenant("beside the crowd")];
  const asks = (tenantId: string, n: number) =>
    presence.asks({ tenantId, name: `w${n}`, jobs: [], concurrency: 1, version: "" });
  const heardOf = async (tenantId: string) => (await db.query(WORKERS, [tenantId])).length;
  for (let n = 0; n < 200; n++) asks(crowd, n);
  asks(other, 0);
  await expect.poll(() => heardOf(other)).toBe(1);
  // The first, and as many as may wait.
  await expect.poll(() => heardOf(crowd)).toBe(101);
  await expect.poll(() => now).toBe(0);
  expect(most).toBe(2);
  asks(crowd, 199);
  await expect.poll(() => heardOf(crowd)).toBe(102);
});

it("an idle worker that waits as long as a poll may is there until it polls again", async () => {
  const { tenantId, owner } = await buildScene(server, "idle");
  const worker = { id: randomUUID(), tenantId, name: "idle", jobs: [], concurrency: 1, version: "" };
  await announceRemoteWorker(server.authority, worker);
  const listed = async (agoS: number) => {
    await server.db.query(HEARD_AGO, [worker.id, agoS]);
    const { items } = (await call(server.url, "GET", "/v1/workers", { key: owner })).body;
    return (items as { name: string }[]).map(({ name }) => name);
  };
  expect([await listed(32), await listed(46)]).toEqual([["idle"], []]);
});

it("an upload whose sender goes away leaves nothing, and is no failure of ours", async () => {
  const grant = await scene.claim(await scene.run());
  const where = new URLSearchParams({ ...attemptOf(grant), attempt: String(grant.attempt), name: "broken.csv" });
  const upload = request(`${server.url}/v1/worker/stage?${where}`, {
    method: "PUT",
    headers: { authorization: `Bearer ${scene.key}`, "content-type": "text/csv", "content-length": "1000000" },
  });
  upload.on("error", () => undefined).write("a".repeat(100_000));
  const states = async () => await server.db.query(OBJECTS, [grant.runId]);
  await expect.poll(states).toEqual([{ state: "granted", n: 1 }]);
  upload.destroy();
  await expect.poll(() => said.join("")).toMatch(/"path":"\/v1\/worker\/stage"/);
  const again = await fetch(`${server.url}/v1/worker/stage?${where}`, {
    method: "PUT",
    headers: { authorization: `Bearer ${scene.key}`, "content-type": "text/csv" },
    body: "whole",
  });
  expect(again.status, await again.text()).toBe(200);
  expect(await states()).toEqual([{ state: "staged", n: 1 }]);
  expect(said.map((line) => JSON.parse(line)).filter(({ level }) => level !== "debug")).toEqual([]);
});
