import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { newMasterKey } from "../../../src/app/secrets/key-list.ts";
import { createMasterKeys } from "../../../src/app/secrets/master-keys.ts";
import { adoptRuns } from "../../../src/authority/attempts/adopt.ts";
import { detachRuns } from "../../../src/authority/attempts/detach.ts";
import { failRuns } from "../../../src/authority/attempts/fail.ts";
import type { Grant } from "../../../src/authority/attempts/grant.ts";
import { grantUpload } from "../../../src/authority/objects/grant-upload.ts";
import { stageObject } from "../../../src/authority/objects/stage-object.ts";
import { cancelRuns } from "../../../src/authority/runs/cancel.ts";
import { showId } from "../../../src/kernel/ids.ts";
import { sql } from "../../../src/store/database.ts";
import { call, REPORT, startTestServer, type TestServer } from "../server.ts";
import { attemptOf, buildScene, END_LEASE, type Scene, tokenOf, tokens } from "./scene.ts";

/** How attempts end that others than our workers are at work on: by a worker's key, or by the token of a callback. */
let server: TestServer;
let scene: Scene;
let other: Scene;
beforeAll(async () => {
  server = await startTestServer({}, 0, 4, createMasterKeys(newMasterKey("test")));
  scene = await buildScene(server, "ends");
  other = await buildScene(server, "another");
});
afterAll(() => server?.close());

const MADE_DUE = sql(
  "test_made_due",
  `with due as (update live_run set not_before = clock_timestamp() where id = $1 returning id)
   update outbox set available_at = clock_timestamp() from due where due.id = any (runs)`,
);
const EVERY_TEXT = sql(
  "test_every_text",
  "select a::text || r::text as row from attempt a join run r on r.id = a.run_id",
);

async function staged({ runId, fence }: Grant, digit: string) {
  const sha256 = digit.repeat(64);
  const object = { runId, fence, name: `${digit}.txt`, uri: `memory:${runId}${digit}`, mediaType: "text/plain" };
  const granted = await grantUpload(server.authority, object);
  if (granted.kind !== "granted") throw new Error(granted.kind);
  const { objectId } = granted;
  await stageObject(server.authority, { runId, fence, objectId, uri: object.uri, version: "1", sha256, size: 1 });
  return { objectId: showId("obj", objectId), sha256 };
}

/** The attempt fails, and another worker has the run. */
async function takenOver(run: string, grant: Grant): Promise<Grant> {
  expect((await scene.say("fail", attemptOf(grant))).status).toBe(200);
  await server.db.query(MADE_DUE, [grant.runId]);
  return scene.claim(run, "w2");
}

const codeOf = ({ status, body }: { status: number; body: Record<string, unknown> }) => [status, body.code];

describe("a worker with its tenant's key", () => {
  it("completes what it holds; a repeat is answered the same, another result is a conflict", async () => {
    const run = await scene.run();
    const grant = await scene.claim(run);
    const [one, two] = [await staged(grant, "a"), await staged(grant, "b")];
    const say = (output: unknown) => scene.say("complete", { ...attemptOf(grant), output });
    const accepted = { runId: run, outcome: "accepted" };
    expect([(await say(one)).body, (await say(one)).body]).toEqual([accepted, accepted]);
    expect(codeOf(await say(two))).toEqual([409, "result-conflict"]);
    expect(await scene.stateOf(run)).toMatchObject({ state: "succeeded", result: { sha256: one.sha256 } });
  });

  it("is told that its fence is stale once another attempt has the run, and changes nothing", async () => {
    const run = await scene.run();
    const old = await scene.claim(run);
    const current = await takenOver(run, old);
    expect(codeOf(await scene.say("complete", attemptOf(old)))).toEqual([409, "stale-fence"]);
    expect(codeOf(await scene.say("complete", { ...attemptOf(current), attempt: 1 }))).toEqual([409, "stale-fence"]);
    // It had failed before: that is what it hears again.
    expect((await scene.say("fail", attemptOf(old))).body).toEqual({ runId: run, outcome: "recorded" });
    expect((await scene.say("complete", attemptOf(current))).body.outcome).toBe("accepted");
    expect(codeOf(await scene.say("fail", attemptOf(current)))).toEqual([409, "stale-fence"]);
  });

  it("whose lease is over is told so, and may still fail", async () => {
    const run = await scene.run();
    const grant = await scene.claim(run);
    await server.db.query(END_LEASE, [grant.runId]);
    expect(codeOf(await scene.say("complete", attemptOf(grant)))).toEqual([409, "lease-lapsed"]);
    const failed = { ...attemptOf(grant), transient: false, code: "no", message: "m".repeat(9_000) };
    expect((await scene.say("fail", failed)).body.outcome).toBe("recorded");
    const { state, error } = await scene.stateOf(run);
    expect([state, String((error as { message: string }).message).length]).toEqual(["failed", 4_000]);
  });

  it("ends nothing that another worker holds, nothing detached, nothing of our workers, nothing of another tenant", async () => {
    const grant = await scene.claim(await scene.run());
    const mine = attemptOf(grant);
    for (const verb of ["complete", "fail"]) {
      const refused = await scene.say(verb, { ...mine, worker: "w2" });
      expect(codeOf(refused), verb).toEqual([409, "not-holder"]);
      expect(refused.body.detail).toBe('The attempt is held by another worker than "w2"');
      expect(codeOf(await other.say(verb, mine)), verb).toEqual([404, "not-found"]);
      expect((await call(server.url, "POST", `/v1/worker/${verb}`, { key: scene.owner, body: mine })).status).toBe(403);
    }
    const ours = await scene.claim(await scene.run({ job: REPORT }), "w1");
    expect(codeOf(await scene.say("complete", attemptOf(ours)))).toEqual([404, "not-found"]);
    await detachRuns(server.authority, [{ runId: grant.runId, fence: grant.fence, worker: "w1" }]);
    expect(codeOf(await scene.say("complete", mine))).toEqual([409, "not-holder"]);
    await adoptRuns(server.authority, [{ runId: grant.runId, fence: grant.fence, worker: "w9" }]);
    expect(codeOf(await scene.say("complete", mine))).toEqual([409, "not-holder"]);
    expect((await scene.say("complete", { ...mine, worker: "w9" })).status).toBe(200);
  });

  it("says what is missing or unusable, field by field", async () => {
    const grant = await scene.claim(await scene.run());
    const mine = attemptOf(grant);
    for (const field of ["runId", "attempt", "fence", "worker"]) {
      const { body } = await scene.say("complete", { ...mine, [field]: undefined });
      expect(body.errors, field).toMatchObject([{ field, message: "is missing" }]);
    }
    expect((await scene.say("fail", { ...mine, fence: 7 })).body.errors).toMatchObject([{ field: "fence" }]);
    expect((await scene.say("fail", { ...mine, fence: "9".repeat(19) })).body.errors).toMatchObject([
      { field: "fence" },
    ]);
    const output = { objectId: showId("obj", grant.runId), sha256: "0".repeat(64) };
    expect(codeOf(await scene.say("complete", { ...mine, output }))).toEqual([409, "output-unusable"]);
    expect((await scene.say("fail", mine)).status).toBe(200);
  });
});

describe("a callback", () => {
  const by = (token: string, verb: string, body: unknown = {}) => scene.say(verb, body, token);

  it("ends the attempt its token names, of whatever class, held or detached, and needs to say no more", async () => {
    const run = await scene.run({ job: REPORT });
    const grant = await scene.claim(run);
    await detachRuns(server.authority, [{ runId: grant.runId, fence: grant.fence, worker: "w1" }]);
    const answers = [await by(tokenOf(grant), "complete"), await by(tokenOf(grant), "complete")];
    expect(answers.map(({ body }) => body)).toEqual(Array(2).fill({ runId: run, outcome: "accepted" }));
    const held = await scene.claim(await scene.run({ job: REPORT }));
    expect((await by(tokenOf(held), "fail", { transient: false, message: "no" })).body.outcome).toBe("recorded");
  });

  it("with an old fence is told that it is stale", async () => {
    const run = await scene.run();
    const old = await scene.claim(run);
    const current = await takenOver(run, old);
    expect(codeOf(await by(tokenOf(old), "complete"))).toEqual([409, "stale-fence"]);
    expect((await scene.stateOf(run)).state).toBe("running");
    expect((await by(tokenOf(current), "complete")).status).toBe(200);
  });

  it("opens no other attempt, no other route, no session, and nothing once it is over or altered", async () => {
    const [grant, another] = [await scene.claim(await scene.run()), await scene.claim(await scene.run())];
    const token = tokenOf(grant);
    expect((await by(token, "complete", attemptOf(another))).status).toBe(403);
    expect((await by(token, "fail", { ...attemptOf(grant), attempt: 2 })).status).toBe(403);
    const of = (key: string, path: string) => call(server.url, "GET", path, { key });
    expect((await of(token, "/v1/me")).status).toBe(401);
    expect((await of(token, `/v1/runs/${showId("run", grant.runId)}`)).status).toBe(401);
    expect((await call(server.url, "POST", "/v1/session", { body: { key: token } })).status).toBe(401);
    expect((await by(tokenOf(grant, -1), "complete")).status).toBe(401);
    expect(
      (
        await by(
          token.replace(/^cb_./, (start) => (start === "cb_A" ? "cb_B" : "cb_A")),
          "complete",
        )
      ).status,
    ).toBe(401);
    const { runId, attempt, fence } = grant;
    const alien = tokens.issue({ tenantId: other.tenantId, runId, attempt, fence, endsAt: Date.now() + 60_000 });
    // Nobody but us can make such a one; it opens what it names, which is the run.
    expect((await by(alien, "fail")).status).toBe(200);
  });

  it("for a run that is to be canceled says the end it has, and is told that it was canceled", async () => {
    const run = await scene.run();
    const grant = await scene.claim(run);
    await cancelRuns(server.authority, [{ tenantId: scene.tenantId, runId: grant.runId, actor: "test" }]);
    const answers = [await by(tokenOf(grant), "fail"), await by(tokenOf(grant), "fail")];
    expect(answers.map(({ body }) => body.outcome)).toEqual(["canceled", "canceled"]);
  });

  it("hears that the run is to be canceled whenever it says how far it is, adds to the log, or just asks", async () => {
    const run = await scene.run({ job: REPORT });
    const grant = await scene.claim(run);
    const cancel = () => call(server.url, "POST", `/v1/runs/${run}/cancel`, { key: scene.owner, body: {} });
    const asked = async () => {
      const said = [{ progress: { pages: 3 } }, {}].map((body) => by(tokenOf(grant), "progress", body));
      const answers = [...(await Promise.all(said)), await by(tokenOf(grant), "log", { text: "a line\n" })];
      return answers.map(({ body }) => body.cancelRequested);
    };
    const detachment = { runId: grant.runId, fence: grant.fence, worker: "w1", callbackWithinMs: 60_000 };
    await detachRuns(server.authority, [detachment]);
    expect(await asked()).toEqual([false, false, false]);
    const { callbackDueAt } = await scene.stateOf(run);
    expect(callbackDueAt).toEqual(expect.any(String));
    expect((await cancel()).body).toEqual({ runId: run, requested: true, accepted: false, callbackDueAt });
    expect(await asked()).toEqual([true, true, true]);
    // A question changes nothing of what was said before.
    const { items } = (await call(server.url, "GET", `/v1/runs/${run}/attempts`, { key: scene.owner })).body;
    expect(items).toMatchObject([{ progress: { pages: 3 } }]);
    expect((await by(tokenOf(grant), "fail")).body.outcome).toBe("canceled");
    expect(codeOf(await by(tokenOf(grant), "progress"))).toEqual([409, "stale-fence"]);
    expect((await by(tokenOf(grant), "log", { text: "last words\n" })).body.cancelRequested).toBe(false);
  });

  it("is heard while its tenant is suspended: what runs goes on", async () => {
    const [mine, held] = [await buildScene(server, "suspended"), await server.key(await server.tenant("p"), "admin")];
    const [one, two] = [await mine.claim(await mine.run()), await mine.claim(await mine.run())];
    const tenant = `/v1/tenants/${showId("ten", mine.tenantId)}`;
    expect((await call(server.url, "PATCH", tenant, { key: held, body: { status: "suspended" } })).status).toBe(200);
    expect((await by(tokenOf(one), "complete")).status).toBe(200);
    expect((await mine.say("complete", attemptOf(two))).status).toBe(200);
  });
});

describe("secrets of a payload", () => {
  it("do not stand in what is said of a failure, in whatever form", async () => {
    const secret = "hunter2-and-more";
    const payload = { password: { $secret: secret } };
    const [byKey, byToken] = [
      await scene.claim(await scene.run({ payload })),
      await scene.claim(await scene.run({ payload })),
    ];
    const message = `login with ${secret} (${Buffer.from(secret).toString("base64")}) failed`;
    const failure = { transient: false, code: secret, message };
    expect((await scene.say("fail", { ...attemptOf(byKey), ...failure })).status).toBe(200);
    expect((await scene.say("fail", failure, tokenOf(byToken))).status).toBe(200);
    const { error } = await scene.stateOf(showId("run", byKey.runId));
    expect(error).toEqual({ code: "[secret]", message: "login with [secret] ([secret]) failed" });
    const rows = await server.db.query<{ row: string }>(EVERY_TEXT);
    expect(rows.filter(({ row }) => row.includes("hunter2"))).toEqual([]);
  });

  it("are known of a run that is replayed, whatever was said of it after its end", async () => {
    const secret = "hunter3-and-more";
    const run = await scene.run({ payload: { password: { $secret: secret } } });
    const grant = await scene.claim(run);
    const token = tokenOf(grant);
    // Nobody has said anything of it here before it ended.
    await failRuns(server.authority, [{ ...grant, failure: { transient: false, code: "away", message: "no word" } }]);
    expect(codeOf(await scene.say("progress", { progress: 1 }, token))).toEqual([409, "stale-fence"]);
    const replayed = await call(server.url, "POST", `/v1/dead-letters/${run}/replay`, { key: scene.owner, body: {} });
    expect(replayed.status, replayed.text).toBe(200);
    const again = await scene.claim(run);
    const message = `login with ${secret} failed`;
    expect((await scene.say("fail", { ...attemptOf(again), transient: false, message })).status).toBe(200);
    expect(await scene.stateOf(run)).toMatchObject({ error: { message: "login with [secret] failed" } });
  });
});
