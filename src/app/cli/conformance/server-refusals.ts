import { randomUUID } from "node:crypto";
import { type Check, expectLike, Skipped } from "./check.ts";
import { claimOne, expectSaid } from "./claiming.ts";
import { expectRefused } from "./server-checks.ts";
import { freshJob, type Stage } from "./stage.ts";

/** What a server refuses, and how. */
export const SERVER_REFUSALS: readonly Check<Stage>[] = [
  {
    name: "another tenant's hints and attempts are as unknown as ones that never were",
    async run(stage) {
      if (stage.otherKey === undefined) throw new Skipped("--other-key names no worker's key of another tenant");
      const job = freshJob();
      await stage.run(job);
      const { body } = await stage.say("poll", { worker: "c1", jobs: [job], waitMs: 5_000 });
      const claim = { worker: "c1", claimId: randomUUID(), hints: body.hints, slots: 1 };
      const theirs = await stage.say("claim", claim, stage.otherKey);
      expectLike(theirs, { status: 200, body: { grants: [] } }, "a claim of another tenant");
      const mine = await stage.say("claim", claim);
      const [grant] = mine.body.grants as { runId: string; attempt: number; fence: string }[];
      if (grant === undefined) throw new Error("the tenant's own claim was granted nothing");
      const { runId, attempt, fence } = grant;
      const said = { runId, attempt, fence, worker: "c1" };
      expectRefused(await stage.say("complete", said, stage.otherKey), 404, "not-found");
      const beat = { worker: "c1", attempts: [{ runId, attempt, fence }] };
      expectLike(
        (await stage.say("heartbeat", beat, stage.otherKey)).body,
        { attempts: [{ outcome: "stale-fence" }] },
        "a heartbeat of another tenant",
      );
      await expectSaid(stage, "complete", said, { outcome: "accepted" });
    },
  },
  {
    name: "hints that are none grant nothing",
    async run(stage) {
      const claim = { worker: "c1", claimId: randomUUID(), hints: ["none", "A".repeat(60)], slots: 1 };
      expectLike(await stage.say("claim", claim), { status: 200, body: { grants: [] } }, "the claim");
    },
  },
  {
    name: "an attempt that another worker holds is not this one's",
    async run(stage) {
      const { said } = await claimOne(stage);
      for (const verb of ["complete", "fail", "release"]) {
        expectRefused(await stage.say(verb, { ...said, worker: "c2" }), 409, "not-holder");
      }
      const { worker: _, ...attempt } = said;
      const beat = await stage.say("heartbeat", { worker: "c2", attempts: [attempt] });
      expectLike(beat.body, { attempts: [{ outcome: "not-holder" }] }, "the heartbeat");
      await expectSaid(stage, "complete", said, { outcome: "accepted" });
    },
  },
  {
    name: "without a credential, and with another role's, no call is answered",
    async run(stage) {
      const poll = { worker: "c1", jobs: [freshJob()], waitMs: 0 };
      expectRefused(await stage.say("poll", poll, null), 401, "unauthenticated");
      expectRefused(await stage.say("poll", poll, stage.operatorKey), 403, "forbidden");
    },
  },
  {
    name: "bad input is refused with the field that is wrong",
    async run(stage) {
      const { said } = await claimOne(stage);
      const cases: readonly [string, unknown, string][] = [
        ["fail", { ...said, fence: undefined }, "fence"],
        ["fail", { ...said, fence: 7 }, "fence"],
        ["fail", { ...said, nonsense: 1 }, "nonsense"],
        ["fail", { ...said, message: "a\0b" }, "message"],
        ["poll", { worker: "c1", jobs: ["no version"] }, "jobs[0]"],
        ["claim", { worker: "c1", claimId: "x", hints: ["x"] }, "claimId"],
        ["heartbeat", { worker: "a b", attempts: [] }, "worker"],
      ];
      for (const [verb, body, field] of cases) {
        const answer = await stage.say(verb, body);
        const named = ((answer.body.errors ?? []) as { field: string }[]).some((one) => one.field === field);
        expectLike({ status: answer.status, named }, { status: 400, named: true }, `${verb} with a wrong ${field}`);
      }
      expectRefused(await stage.say("fail", "{"), 400, "invalid-json");
      expectRefused(await stage.say("log", { ...said, text: "x".repeat(1_100_000) }), 413, "body-too-large");
      await expectSaid(stage, "complete", said, { outcome: "accepted" });
    },
  },
  {
    name: "an output is not taken that is not what was announced, nor one that nobody staged",
    async run(stage) {
      const { said } = await claimOne(stage);
      const query = new URLSearchParams({
        ...said,
        attempt: String(said.attempt),
        name: "r.txt",
        sha256: "0".repeat(64),
      });
      const answer = await fetch(`${stage.url}/v1/worker/stage?${query}`, {
        method: "PUT",
        headers: { authorization: `Bearer ${stage.workerKey}`, "content-type": "text/plain" },
        body: "text",
      });
      expectLike(answer.status, 400, "the upload");
      const output = { objectId: `obj_${"0".repeat(26)}`, sha256: "0".repeat(64) };
      expectRefused(await stage.say("complete", { ...said, output }), 409, "output-unusable");
      await expectSaid(stage, "complete", said, { outcome: "accepted" });
    },
  },
];
