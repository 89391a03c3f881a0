import { createHash, randomUUID } from "node:crypto";
import { download } from "../../../client/download.ts";
import { createHttp } from "../../../client/http.ts";
import { workerCallsOf } from "../../../client/worker/calls.ts";
import { systemClock } from "../../../kernel/clock.ts";
import { type Check, expectLike } from "./check.ts";
import { type AttemptSaid, claimOne, expectSaid } from "./claiming.ts";
import { freshJob, type Stage } from "./stage.ts";

/** What a server owes a worker that does everything right. */
export const SERVER_CHECKS: readonly Check<Stage>[] = [
  {
    name: "a poll that waits is answered when a run is born",
    async run(stage) {
      const job = freshJob();
      const waiting = stage.say("poll", { worker: "c1", jobs: [job], waitMs: 20_000 });
      await stage.run(job);
      const { status, body } = await waiting;
      expectLike([status, (body.hints as unknown[])?.length], [200, 1], "the answer");
    },
  },
  {
    name: "a claim grants what the run is, and is answered the same when it is sent again",
    async run(stage) {
      const job = freshJob();
      const payload = { text: "é", n: 1, deep: { list: [1, 2] } };
      const runId = await stage.run(job, { payload });
      const { body: polled } = await stage.say("poll", { worker: "c1", jobs: [job], waitMs: 5_000 });
      const claim = { worker: "c1", claimId: randomUUID(), hints: polled.hints, slots: 1 };
      const [first, again] = [await stage.say("claim", claim), await stage.say("claim", claim)];
      const [name] = job.split("@");
      const wanted = { runId, attempt: 1, idempotencyKey: runId, job: { name, version: 1 }, payload };
      expectLike(first.body.grants, [wanted], "grants");
      expectLike(again.body, first.body, "the repeated claim");
      const other = await stage.say("claim", { ...claim, claimId: randomUUID() });
      expectLike(other.body.grants, [], "another claim of the same hint");
    },
  },
  {
    name: "heartbeats renew the lease; progress and logs are kept",
    async run(stage) {
      const { said } = await claimOne(stage);
      const { worker, ...attempt } = said;
      const beat = await stage.say("heartbeat", { worker, attempts: [attempt] });
      expectLike(beat.body, { attempts: [{ outcome: "renewed", cancelRequested: false }] }, "the heartbeat");
      await expectSaid(
        stage,
        "progress",
        { ...said, progress: { at: 1 } },
        { outcome: "noted", cancelRequested: false },
      );
      await expectSaid(stage, "progress", said, { outcome: "noted", cancelRequested: false });
      expectLike((await stage.say("log", { ...said, text: "a line\n" })).status, 200, "the log");
      await expectSaid(stage, "complete", said, { outcome: "accepted" });
    },
  },
  {
    name: "an output is uploaded, becomes the one result, and a second result is a conflict",
    async run(stage) {
      const { said, runId } = await claimOne(stage);
      const calls = workerCallsOf(createHttp({ url: stage.url, key: stage.workerKey, sleep: systemClock.sleep }));
      const bytes = new TextEncoder().encode("a,b\n1,2\n");
      const output = await calls.put(said, { name: "r.csv", mediaType: "text/csv", bytes });
      expectLike(output.sha256, createHash("sha256").update(bytes).digest("hex"), "the checksum");
      const kept = { objectId: output.objectId, sha256: output.sha256 };
      await expectSaid(stage, "complete", { ...said, output: kept }, { outcome: "accepted" });
      await expectSaid(stage, "complete", { ...said, output: kept }, { outcome: "accepted" });
      expectRefused(await stage.say("complete", said), 409, "result-conflict");
      const chunks: Uint8Array[] = [];
      for await (const chunk of download(await stage.operator.runs.result(runId))) chunks.push(chunk);
      expectLike(Buffer.concat(chunks).toString(), "a,b\n1,2\n", "the result");
    },
  },
  {
    name: "a transient failure is tried again, and the fence of before is stale from then on",
    async run(stage) {
      const { said, job, runId } = await claimOne(stage, { retry: { baseMs: 1, capMs: 1 } });
      await expectSaid(stage, "fail", { ...said, code: "later" }, { outcome: "recorded" });
      await expectSaid(stage, "fail", { ...said, code: "later" }, { outcome: "recorded" });
      const next = await claimOne(stage, undefined, { job, runId });
      expectLike(next.said.attempt, 2, "the attempt");
      expectRefused(await stage.say("complete", said), 409, "stale-fence");
      expectRefused(await stage.say("progress", { ...said, progress: 1 }), 409, "stale-fence");
      await expectSaid(stage, "complete", next.said, { outcome: "accepted" });
    },
  },
  {
    name: "a permanent failure ends the run, with its code",
    async run(stage) {
      const { said, runId } = await claimOne(stage);
      await expectSaid(stage, "fail", { ...said, transient: false, code: "no" }, { outcome: "recorded" });
      expectLike(await stage.operator.runs.get(runId), { state: "failed", error: { code: "no" } }, "the run");
      expectRefused(await stage.say("complete", said), 409, "stale-fence");
    },
  },
  {
    name: "a cancellation is told with the next heartbeat, and the attempt's end cancels the run",
    async run(stage) {
      const { said, runId } = await claimOne(stage);
      await stage.operator.runs.cancel(runId);
      const { worker, ...attempt } = said;
      const beat = await stage.say("heartbeat", { worker, attempts: [attempt] });
      expectLike(beat.body, { attempts: [{ outcome: "renewed", cancelRequested: true }] }, "the heartbeat");
      await expectSaid(stage, "fail", said, { outcome: "canceled" });
      expectLike((await stage.operator.runs.get(runId)).state, "canceled", "the run");
    },
  },
  {
    name: "an attempt that is given back starts again, and is no longer its worker's",
    async run(stage) {
      const { said, job, runId } = await claimOne(stage);
      await expectSaid(stage, "release", said, { outcome: "released" });
      await expectSaid(stage, "release", said, { outcome: "released" });
      const next = await claimOne(stage, undefined, { job, runId });
      expectLike(next.said.attempt, 2, "the attempt");
      await expectSaid(stage, "complete", next.said, { outcome: "accepted" });
    },
  },
  {
    name: "a detached attempt is ended by its callback, which opens nothing else",
    async run(stage) {
      const [one, other] = [await claimOne(stage), await claimOne(stage)];
      const token = await detached(stage, one.said);
      expectRefused(await stage.say("complete", one.said), 409, "not-holder");
      expectLike((await stage.say("complete", other.said, token)).status, 403, "another attempt");
      expectLike((await stage.say("poll", { worker: "c1", jobs: [one.job] }, token)).status, 401, "a poll");
      expectLike(
        await stage.say("complete", {}, token),
        { status: 200, body: { outcome: "accepted" } },
        "the callback",
      );
      await expectSaid(stage, "complete", other.said, { outcome: "accepted" });
    },
  },
  {
    name: "a detached attempt can be adopted by another worker, and only a detached one",
    async run(stage) {
      const { said } = await claimOne(stage);
      const adopter = { ...said, worker: "c2" };
      expectRefused(await stage.say("adopt", adopter), 409, "not-detached");
      await detached(stage, said);
      const adopted = await stage.say("adopt", adopter);
      expectLike(adopted.body, { grant: { runId: said.runId, fence: said.fence } }, "the adoption");
      expectRefused(await stage.say("release", said), 409, "not-holder");
      await expectSaid(stage, "complete", adopter, { outcome: "accepted" });
    },
  },
  {
    name: "an attempt past its deadline cannot succeed any more",
    async run(stage) {
      const { said } = await claimOne(stage, { attemptTimeoutMs: 1_000 });
      await systemClock.sleep(1_200);
      const late = await stage.say("complete", said);
      // Whoever looks for leases that are over may have been faster.
      if (late.body.code !== "stale-fence") expectRefused(late, 409, "lease-lapsed");
    },
  },
];

async function detached(stage: Stage, said: AttemptSaid): Promise<string> {
  const { body } = await stage.say("detach", said);
  const { token } = (body.callback ?? {}) as { token?: string };
  if (token === undefined) throw new Error(`detach: found ${JSON.stringify(body)}; expected a callback`);
  return token;
}

export function expectRefused(
  { status, body }: { status: number; body: Record<string, unknown> },
  wanted: number,
  code: string,
): void {
  expectLike({ status, code: body.code }, { status: wanted, code }, "the refusal");
}
