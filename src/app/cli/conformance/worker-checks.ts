import { download } from "../../../client/download.ts";
import type { Run } from "../../../client/types.ts";
import type { LeaseTerms } from "../../../client/worker/calls.ts";
import { systemClock } from "../../../kernel/clock.ts";
import { type Check, expectLike, Skipped } from "./check.ts";
import type { Child } from "./child.ts";
import type { SeenCall, WorkerProxy } from "./proxy.ts";
import type { Stage } from "./stage.ts";

/** A worker under test behind a proxy; `child` where we have started it ourselves. */
export type WorkerStage = Stage & { proxy: WorkerProxy; child: Child | undefined; patienceMs: number };

const ECHO = "conformance.echo@1";
const FAIL = "conformance.fail@1";
const SLOW = "conformance.slow@1";
const OPEN = ["queued", "blocked", "running", "retrying"];
const hasEnded = (run: Run) => !OPEN.includes(run.state);

/** What a worker of any language owes the server. */
export const WORKER_CHECKS: readonly Check<WorkerStage>[] = [
  {
    name: "it asks for work",
    async run(stage) {
      await until(stage, "a poll for the conformance jobs", ({ verb, status, body }) => {
        const jobs = (body.jobs ?? []) as string[];
        return verb === "poll" && status === 200 && [ECHO, FAIL, SLOW].every((job) => jobs.includes(job));
      });
    },
  },
  {
    name: "it does a job and hands in its output, byte for byte",
    async run(stage) {
      const text = "Füße, 世界 🌍\n".repeat(50);
      const runId = await stage.run(ECHO, { payload: { text } });
      const run = await stage.runOnce(runId, hasEnded, stage.patienceMs, "the run has ended");
      expectLike(run, { state: "succeeded", attempt: 1 }, "the run");
      const chunks: Uint8Array[] = [];
      for await (const chunk of download(await stage.operator.runs.result(runId))) chunks.push(chunk);
      expectLike(Buffer.concat(chunks).toString(), text, "the result");
    },
  },
  {
    name: "a claim and a completion whose answers are lost are said again, with the same words",
    async run(stage) {
      stage.proxy.lose("claim");
      stage.proxy.lose("complete");
      const runId = await stage.run(ECHO, { payload: { text: "once" } });
      const run = await stage.runOnce(runId, hasEnded, stage.patienceMs, "the run has ended");
      expectLike(run, { state: "succeeded", attempt: 1 }, "the run");
      for (const verb of ["claim", "complete"]) {
        const lost = stage.proxy.calls.findLast((call) => call.verb === verb && call.isLost);
        await until(stage, `the same ${verb} again`, (call) => {
          const isSame = JSON.stringify(call.body) === JSON.stringify(lost?.body);
          return call.verb === verb && !call.isLost && isSame && call.status === 200;
        });
      }
    },
  },
  {
    name: "it reports a permanent failure, with its code and message",
    async run(stage) {
      const payload = { transient: false, code: "no-such-account", message: "the bank does not know ü-42" };
      const runId = await stage.run(FAIL, { payload });
      const run = await stage.runOnce(runId, hasEnded, stage.patienceMs, "the run has ended");
      const { code, message } = payload;
      expectLike(run, { state: "failed", attempt: 1, error: { code, message } }, "the run");
    },
  },
  {
    name: "it reports a transient failure, and takes the next attempt",
    async run(stage) {
      const payload = { transient: true, code: "bank-busy", message: "later" };
      const runId = await stage.run(FAIL, { payload, retry: { maxAttempts: 2, baseMs: 1, capMs: 1 } });
      const run = await stage.runOnce(runId, hasEnded, stage.patienceMs, "the run has ended");
      expectLike(run, { state: "failed", attempt: 2, error: { code: "bank-busy" } }, "the run");
    },
  },
  {
    name: "it sends heartbeats while a run takes its time",
    async run(stage) {
      const { heartbeatMs } = termsOf(stage);
      const workMs = heartbeatMs * 3 + 500;
      const runId = await stage.run(SLOW, { payload: { seconds: workMs / 1000 } });
      const run = await stage.runOnce(runId, hasEnded, workMs + stage.patienceMs, "the run has ended");
      expectLike(run, { state: "succeeded", attempt: 1 }, "the run");
      const beats = stage.proxy.calls.filter(
        (call) => call.verb === "heartbeat" && call.status === 200 && names(call, runId),
      );
      if (beats.length < 2) throw new Error(`found ${beats.length} heartbeats in ${workMs} ms; expected at least 2`);
    },
  },
  {
    name: "it heeds a cancellation",
    async run(stage) {
      const { heartbeatMs } = termsOf(stage);
      const runId = await stage.run(SLOW, { payload: { seconds: 600 } });
      await stage.runOnce(runId, (run) => run.state === "running", stage.patienceMs, "the run runs");
      await stage.operator.runs.cancel(runId);
      const run = await stage.runOnce(runId, hasEnded, 2 * heartbeatMs + stage.patienceMs, "the run has ended");
      expectLike(run, { state: "canceled", attempt: 1 }, "the run");
      await until(stage, "the attempt's end", (call) => call.verb === "fail" && call.body.runId === runId);
    },
  },
  {
    name: "it leaves an attempt alone that it has lost, and does the next one",
    async run(stage) {
      const { heartbeatMs } = termsOf(stage);
      const workMs = 2 * heartbeatMs + 500;
      const runId = await stage.run(SLOW, { payload: { seconds: workMs / 1000 } });
      const claim = await until(
        stage,
        "a claim of the run",
        (call) => call.verb === "claim" && grantOf(call, runId) !== undefined,
      );
      const { attempt, fence } = grantOf(claim, runId)!;
      // In the worker's name: it hears of it with its next heartbeat.
      const { status } = await stage.say("release", { runId, attempt, fence, worker: claim.body.worker });
      expectLike(status, 200, "the release in its name");
      const run = await stage.runOnce(runId, hasEnded, 3 * workMs + stage.patienceMs, "the run has ended");
      expectLike(run, { state: "succeeded", attempt: 2 }, "the run");
      const said = stage.proxy.calls.filter(
        ({ verb, body }) => ["complete", "fail"].includes(verb) && body.runId === runId && body.fence === fence,
      );
      expectLike(said.filter((call) => call.status === 200).length, 0, "what was accepted of the lost attempt");
    },
  },
  {
    name: "told to stop, it ends what it has begun, or gives it back, and exits",
    async run(stage) {
      const { child } = stage;
      if (child === undefined) throw new Skipped("--run has started no worker");
      const runId = await stage.run(SLOW, { payload: { seconds: 1.5 } });
      await stage.runOnce(runId, (run) => run.state === "running", stage.patienceMs, "the run runs");
      child.terminate();
      await child.exit(2 * stage.patienceMs);
      const run = await stage.operator.runs.get(runId);
      if (run.state === "running") throw new Error("the run is still running, and nobody is at work on it");
    },
  },
];

type Grant = { runId: string; attempt: number; fence: string };

function grantOf(call: SeenCall, runId: string): Grant | undefined {
  return ((call.answer.grants ?? []) as Grant[]).find((grant) => grant.runId === runId);
}

function names(call: SeenCall, runId: string): boolean {
  return ((call.body.attempts ?? []) as Grant[]).some((one) => one.runId === runId);
}

function termsOf({ proxy }: WorkerStage): LeaseTerms {
  const told = proxy.calls.findLast((call) => call.answer.terms !== undefined);
  if (told === undefined) throw new Error("no call of the worker was answered yet");
  return told.answer.terms as LeaseTerms;
}

/** The first call that the proxy saw of that kind, once there is one. */
async function until(stage: WorkerStage, what: string, isIt: (call: SeenCall) => boolean): Promise<SeenCall> {
  const endsMs = systemClock.monotonic() + stage.patienceMs;
  for (;;) {
    const found = stage.proxy.calls.find(isIt);
    if (found !== undefined) return found;
    if (systemClock.monotonic() >= endsMs) throw new Error(`${what}: not within ${stage.patienceMs} ms`);
    await systemClock.sleep(50);
  }
}
