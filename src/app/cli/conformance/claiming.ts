import { randomUUID } from "node:crypto";
import type { WorkerGrant } from "../../../client/worker/calls.ts";
import { expectLike } from "./check.ts";
import { freshJob, type Stage } from "./stage.ts";

/** How a worker names an attempt in every call about it. */
export type AttemptSaid = { runId: string; attempt: number; fence: string; worker: string };

/** A run of a fresh job, claimed; or the next attempt of one. */
export async function claimOne(
  stage: Stage,
  draft: Record<string, unknown> = {},
  again?: { job: string; runId: string },
): Promise<{ said: AttemptSaid; job: string; runId: string }> {
  const job = again?.job ?? freshJob();
  const runId = again?.runId ?? (await stage.run(job, draft));
  const worker = "c1";
  const { body: polled } = await stage.say("poll", { worker, jobs: [job], waitMs: 10_000 });
  const claim = { worker, claimId: randomUUID(), hints: polled.hints, slots: 1 };
  const { body } = await stage.say("claim", claim);
  const [grant] = (body.grants ?? []) as WorkerGrant[];
  if (grant?.runId !== runId) throw new Error(`a claim: found ${JSON.stringify(body)}; expected a grant of ${runId}`);
  const { attempt, fence } = grant;
  return { said: { runId, attempt, fence, worker }, job, runId };
}

export async function expectSaid(stage: Stage, verb: string, body: object, wanted: object): Promise<void> {
  expectLike(await stage.say(verb, body), { status: 200, body: wanted }, verb);
}
