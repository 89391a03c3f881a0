import { createHash, randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { newMasterKey } from "../../../src/app/secrets/key-list.ts";
import { createMasterKeys } from "../../../src/app/secrets/master-keys.ts";
import { expireLeases } from "../../../src/authority/attempts/expire.ts";
import { hasWaitingRows, publishOutbox } from "../../../src/authority/dispatch/publish.ts";
import { readId, showId } from "../../../src/kernel/ids.ts";
import { createObjectCleaner } from "../../../src/loops/objects/object-cleaner.ts";
import { sql } from "../../../src/store/database.ts";
import { call, startTestServer, type TestServer } from "../server.ts";
import { buildScene, END_LEASE, type Scene, tokenOf } from "./scene.ts";

/** The protocol of workers that are not ours, call by call. */
let server: TestServer;
let scene: Scene;
let other: Scene;
beforeAll(async () => {
  server = await startTestServer({}, 0, 6, createMasterKeys(newMasterKey("test")));
  scene = await buildScene(server, "protocol");
  other = await buildScene(server, "another");
});
afterAll(() => server?.close());

const NAMED_BY = sql(
  "test_named_by",
  "select job, cardinality(runs) as names, published_at from outbox where $1::uuid = any (runs)",
);
const PROGRESS = sql("test_progress_of", "select progress from attempt where run_id = $1");
const OBJECTS = sql("test_objects_of", "select state from object where run_id = $1 order by id");
const OVERDUE = sql(
  "test_overdue",
  "update object set granted_until = clock_timestamp() - interval '1 s' where run_id = $1",
);
const QUOTA = sql("test_quota", "update usage set max_running = $2 where tenant_id = $1 and class = 'remote'");

type Shown = { runId: string; attempt: number; fence: string; [more: string]: unknown };
const named = (name: string) => ({ job: { kind: "remote", name } });
const jobOf = (name: string) => [`${name}@1`];
let names = 0;
/** A job of its own for each story: they share a tenant. */
const fresh = () => `test.job-${++names}`;

const poll = (name: string, more: Record<string, unknown> = {}, key = scene.key) =>
  scene.say("poll", { worker: "w1", jobs: jobOf(name), waitMs: 0, ...more }, key);
const hintsOf = async (name: string, slots = 10) => (await poll(name, { slots })).body.hints as string[];
const claim = async (hints: readonly string[], more: Record<string, unknown> = {}, key = scene.key) => {
  const body = { worker: "w1", claimId: randomUUID(), hints, slots: 10, ...more };
  const answer = await scene.say("claim", body, key);
  expect(answer.status, answer.text).toBe(200);
  return answer.body.grants as Shown[];
};
const granted = async (change: Record<string, unknown> = {}) => {
  const name = fresh();
  const run = await scene.run({ ...named(name), ...change });
  const [grant] = await claim(await hintsOf(name));
  return { run, grant: grant!, mine: mineOf(grant!) };
};
const mineOf = ({ runId, attempt, fence }: Shown) => ({ runId, attempt, fence, worker: "w1" });
const uuidOf = (run: string) => readId("run", run)!;
const codeOf = ({ status, body }: { status: number; body: Record<string, unknown> }) => [status, body.code];
const beat = async (...attempts: Shown[]) => {
  const said = attempts.map(({ runId, attempt, fence }) => ({ runId, attempt, fence }));
  return (await scene.say("heartbeat", { worker: "w1", attempts: said })).body.attempts as Record<string, unknown>[];
};
const put = (
  mine: object,
  name: string,
  bytes: string | Uint8Array<ArrayBuffer> | ReadableStream,
  more: Record<string, string> = {},
  key = scene.key,
) =>
  fetch(
    `${server.url}/v1/worker/stage?${new URLSearchParams({ ...(mine as Record<string, string>), name, ...more })}`,
    {
      method: "PUT",
      body: bytes,
      headers: { authorization: `Bearer ${key}`, "content-type": "text/csv" },
      ...(bytes instanceof ReadableStream ? { duplex: "half" } : {}),
    } as RequestInit,
  );

describe("a run of a tenant's own job", () => {
  it("waits in a row that names it alone and its job, and is never published", async () => {
    const name = fresh();
    const runs = [await scene.run(named(name)), await scene.run(named(name))];
    for (const run of runs) {
      expect(await server.db.query(NAMED_BY, [uuidOf(run)])).toEqual([
        { job: `${name}@1`, names: 1, published_at: null },
      ]);
    }
    expect(await hasWaitingRows(server.authority)).toBe(false);
    expect((await publishOutbox(server.authority, new Map([["remote", 100]]))).rows).toEqual([]);
    expect((await hintsOf(name)).length).toBe(2);
  });
});

describe("a poll", () => {
  it("that waits is answered when a run of its job is born, and by no other job or tenant", async () => {
    const name = fresh();
    const waiting = poll(name, { waitMs: 20_000 });
    await scene.run(named(fresh()));
    expect((await poll(name, {}, other.key)).body.hints).toEqual([]);
    const run = await scene.run(named(name));
    const { hints } = (await waiting).body as { hints: string[] };
    expect(await claim(hints)).toMatchObject([{ runId: run, attempt: 1, job: { name, version: 1 } }]);
  });

  it("brings nothing while its tenant is at its limit, and nothing to a suspended one", async () => {
    const { grant } = await granted();
    const name = fresh();
    await scene.run(named(name));
    await server.db.query(QUOTA, [scene.tenantId, 1]);
    expect(await hintsOf(name)).toEqual([]);
    await server.db.query(QUOTA, [scene.tenantId, null]);
    const hints = await hintsOf(name);
    await server.db.query(QUOTA, [scene.tenantId, 0]);
    expect(await claim(hints)).toEqual([]);
    await server.db.query(QUOTA, [scene.tenantId, null]);
    expect((await claim(await hintsOf(name))).length).toBe(1);
    expect((await scene.say("complete", mineOf(grant))).status).toBe(200);
  });

  it("makes its worker seen in its tenant, and in no other", async () => {
    await poll(fresh(), { worker: "seen", slots: 3, version: "1.2" });
    const seen = async (key: string) =>
      (await call(server.url, "GET", "/v1/workers", { key })).body.items as { name: string }[];
    await expect
      .poll(async () => (await seen(scene.owner)).filter(({ name }) => name === "seen"))
      .toMatchObject([{ kind: "own", slots: { remote: 3 }, version: "1.2" }]);
    expect((await seen(other.owner)).filter(({ name }) => name === "seen")).toEqual([]);
  });
});

describe("a claim", () => {
  it("that is sent again is answered the same, and another one gets nothing", async () => {
    const name = fresh();
    const run = await scene.run({ ...named(name), payload: { x: 1 } });
    const hints = await hintsOf(name);
    const claimId = randomUUID();
    const [first] = await claim(hints, { claimId });
    expect(await claim(hints, { claimId })).toEqual([first]);
    expect(first).toMatchObject({ runId: run, idempotencyKey: run, payload: { x: 1 }, scheduleId: null });
    expect(await claim(hints)).toEqual([]);
    // Not even by the claim's own id and worker's name.
    expect(await claim(hints, { claimId }, other.key)).toEqual([]);
  });

  it("does nothing with another tenant's hints, forged ones, and those of our own classes", async () => {
    const name = fresh();
    await scene.run(named(name));
    const hints = await hintsOf(name);
    expect(await claim(hints, {}, other.key)).toEqual([]);
    expect(await claim(["x", `A${hints[0]}`, "0".repeat(60)])).toEqual([]);
    expect((await claim(hints)).length).toBe(1);
  });

  it("grants no more than its slots; the others go to who asks next", async () => {
    const name = fresh();
    await Promise.all([scene.run(named(name)), scene.run(named(name))]);
    const hints = await hintsOf(name);
    expect(hints.length).toBe(2);
    expect((await claim(hints, { slots: 1 })).length).toBe(1);
    expect((await claim(await hintsOf(name))).length).toBe(1);
  });

  it("opens the secrets of payloads; what cannot be opened has failed, and is tried again", async () => {
    const { grant } = await granted({ payload: { token: { $secret: "s3cret-of-mine" } } });
    expect(grant.payload).toEqual({ token: "s3cret-of-mine" });
    await scene.say("progress", { ...mineOf(grant), progress: { at: "s3cret-of-mine", n: 3 } });
    expect(await server.db.query(PROGRESS, [uuidOf(grant.runId)])).toEqual([{ progress: { at: "[secret]", n: 3 } }]);
    await scene.say("log", { ...mineOf(grant), text: "with s3cret-of-mine\n" });
    const logs = await call(server.url, "GET", `/v1/runs/${grant.runId}/logs`, { key: scene.owner });
    expect(logs.text).toContain("with [secret]");
  });

  it("knows the secrets of a payload also of what is first said of it after its end", async () => {
    const { run, mine } = await granted({ payload: { token: { $secret: "s3cret-of-mine" } } });
    expect((await scene.say("complete", mine)).status).toBe(200);
    expect((await scene.say("log", { ...mine, text: "late, with s3cret-of-mine\n" })).status).toBe(200);
    const logs = await call(server.url, "GET", `/v1/runs/${run}/logs`, { key: scene.owner });
    expect(logs.text).toContain("late, with [secret]");
  });
});

describe("heartbeats", () => {
  it("renew leases, revive one that is over, and tell of cancellations and of what is lost", async () => {
    const [one, two, three] = [await granted(), await granted(), await granted()];
    await server.db.query(END_LEASE, [uuidOf(one.run)]);
    await call(server.url, "POST", `/v1/runs/${two.run}/cancel`, { key: scene.owner, body: {} });
    await scene.say("fail", { ...three.mine, transient: false });
    const alien = { runId: showId("run", other.tenantId), attempt: 1, fence: "1" };
    expect(await beat(one.grant, two.grant, three.grant, alien)).toMatchObject([
      { runId: one.run, outcome: "renewed", cancelRequested: false },
      { runId: two.run, outcome: "renewed", cancelRequested: true },
      { runId: three.run, outcome: "stale-fence", remainingMs: 0 },
      { runId: alien.runId, outcome: "stale-fence" },
    ]);
    expect((await scene.say("complete", one.mine)).status).toBe(200);
    expect((await scene.say("fail", two.mine)).body.outcome).toBe("canceled");
  });
});

describe("an attempt that changes hands", () => {
  it("is given back, and starts again elsewhere at once without having spent a try", async () => {
    const { grant, mine } = await granted();
    const again = [await scene.say("release", mine), await scene.say("release", mine)];
    expect(again.map(({ body }) => body.outcome)).toEqual(["released", "released"]);
    const [next] = await claim(await hintsOf((grant.job as { name: string }).name));
    expect(next).toMatchObject({ runId: grant.runId, attempt: 2 });
    expect(codeOf(await scene.say("complete", mine))).toEqual([409, "stale-fence"]);
  });

  it("is detached, may be ended by its callback, or adopted, and then is its adopter's alone", async () => {
    const [one, two] = [await granted(), await granted()];
    const detach = async (mine: object) => (await scene.say("detach", mine)).body;
    const callback = (await detach(one.mine)).callback as { url: string; token: string };
    expect((await detach(one.mine)).callback).toEqual(callback);
    expect(await beat(one.grant)).toMatchObject([{ outcome: "not-holder" }]);
    const ended = await fetch(`${callback.url}/complete`, {
      method: "POST",
      headers: { authorization: `Bearer ${callback.token}` },
    });
    expect(await ended.json()).toEqual({ runId: one.run, outcome: "accepted" });

    const adopt = (worker: string) => scene.say("adopt", { ...two.mine, worker });
    expect(codeOf(await adopt("w2"))).toEqual([409, "not-detached"]);
    await detach(two.mine);
    const adopted = [await adopt("w2"), await adopt("w2")];
    expect(adopted.map(({ body }) => body)).toMatchObject(
      Array(2).fill({ grant: { runId: two.run, fence: two.grant.fence }, cancelRequested: false }),
    );
    expect(codeOf(await scene.say("release", two.mine))).toEqual([409, "not-holder"]);
    expect((await scene.say("complete", { ...two.mine, worker: "w2" })).status).toBe(200);
  });
});

describe("an output", () => {
  const text = "a,b\n1,2\n";
  const sha256 = createHash("sha256").update(text).digest("hex");

  it("goes through the API byte by byte, and becomes the run's result", async () => {
    const { run, mine } = await granted();
    const answers = [await put(mine, "r.csv", text), await put(mine, "r.csv", text, { sha256, size: "8" })];
    const staged = (await Promise.all(answers.map((answer) => answer.json()))) as { objectId: string }[];
    const { objectId } = staged[0]!;
    expect(staged).toEqual(Array(2).fill({ objectId, sha256, size: 8 }));
    expect((await scene.say("complete", { ...mine, output: { objectId, sha256 } })).status).toBe(200);
    expect(await scene.stateOf(run)).toMatchObject({ result: { sha256, size: 8, mediaType: "text/csv" } });
  });

  it("may come from a callback that knows nothing but its token", async () => {
    const claimed = await scene.claim(await scene.run(named(fresh())));
    const answer = await put({}, "r.csv", text, {}, tokenOf(claimed));
    expect([answer.status, await answer.json()]).toMatchObject([200, { sha256 }]);
  });

  it("that is damaged, too large, misnamed or another under the same name is refused, and leaves nothing", async () => {
    const { run, mine } = await granted();
    const refused = async (answer: Promise<Response>) =>
      codeOf({ status: (await answer).status, body: (await (await answer).json()) as Record<string, unknown> });
    expect(await refused(put(mine, "r.csv", text, { sha256: "0".repeat(64) }))).toEqual([400, "invalid-request"]);
    expect(await refused(put(mine, "../r.csv", text))).toEqual([400, "invalid-request"]);
    const endless = new ReadableStream({ pull: (to) => to.enqueue(new Uint8Array(65_536)) });
    expect(await refused(put(mine, "r.csv", endless))).toEqual([413, "output-too-large"]);
    expect(await refused(put(mine, "r.csv", new Uint8Array(1_000_001)))).toEqual([413, "output-too-large"]);
    expect((await put(mine, "r.csv", text)).status).toBe(200);
    expect(await refused(put(mine, "r.csv", "other"))).toEqual([409, "output-unusable"]);
    expect((await server.db.query(OBJECTS, [uuidOf(run)])).length).toBe(1);
    expect(await refused(put({ ...mine, worker: "w2" }, "s.csv", text))).toEqual([409, "not-holder"]);
  });

  it("has no link of its own where results are files, and the API says so", async () => {
    const { mine } = await granted();
    const { body } = await scene.say("upload", { ...mine, name: "r.csv", mediaType: "text/csv" });
    expect(body.upload).toBeNull();
    const facts = { objectId: body.objectId, sha256, size: 8 };
    expect(codeOf(await scene.say("stage", { ...mine, ...facts }))).toEqual([409, "output-unusable"]);
    expect((await put(mine, "r.csv", text)).status).toBe(200);
    expect((await scene.say("stage", { ...mine, ...facts })).body).toEqual(facts);
  });

  it("of a worker that was killed before it could complete is cleared away, and the run is tried again", async () => {
    const { run, grant, mine } = await granted();
    expect((await put(mine, "r.csv", text)).status).toBe(200);
    await server.db.query(END_LEASE, [uuidOf(run)]);
    expect(await expireLeases(server.authority, [uuidOf(run)], 0)).toBe(1);
    await server.db.query(OVERDUE, [uuidOf(run)]);
    const { objectId } = (await (await put(mine, "r.csv", text)).json()) as { objectId?: string };
    expect(objectId).toBeUndefined();
    const cleaner = createObjectCleaner({ authority: server.authority, objects: server.stored, keptMs: 86_400_000 });
    await cleaner.pass(new AbortController().signal);
    expect(await server.db.query(OBJECTS, [uuidOf(run)])).not.toContainEqual({ state: "staged" });
    expect((await server.stored.list(undefined)).objects.filter(({ uri }) => uri.includes(uuidOf(run)))).toEqual([]);
    await server.db.query(MADE_DUE, [uuidOf(run)]);
    const [next] = await claim(await hintsOf((grant.job as { name: string }).name));
    expect(next).toMatchObject({ runId: run, attempt: 2 });
  });
});

describe("a server that closes", () => {
  it("answers who waits for work at once, and keeps nobody", async () => {
    const before = server.authority.clock.monotonic();
    const waiting = poll(fresh(), { waitMs: 30_000 });
    // It is there once its worker is seen to ask.
    await poll(fresh(), { worker: "w2" });
    await server.close();
    expect((await waiting).body).toMatchObject({ hints: [] });
    expect(server.authority.clock.monotonic() - before).toBeLessThan(20_000);
  });
});

const MADE_DUE = sql(
  "test_made_due_again",
  `with due as (update live_run set not_before = clock_timestamp() where id = $1 returning id)
   update outbox set available_at = clock_timestamp() from due where due.id = any (runs)`,
);
