import type { Payload } from "../domain/definition.ts";
import type { Job } from "../domain/jobs/job.ts";
import { type KnownSecrets, NO_SECRETS } from "../domain/secrets/known.ts";
import type { Detached, JobContext, JobResult } from "./context.ts";
import { type JobKinds, runJob } from "./kinds.ts";
import { failureOf, type HandlerOutcome, type JobFailure, permanentFailure } from "./outcome.ts";

/**
 * Runs one attempt: look up, check the payload, work, stage the output or let the work go on elsewhere. Never throws and never rejects.
 *
 * It settles when the job's own promise does, and not before: a job that ignores `ctx.signal` keeps running after the
 * abort, so only the caller can decide whether to wait (its slot is still in use) or to walk away. An outcome that
 * arrives after the abort may well be a success; whether it still counts is decided by the fence at completion.
 * An output that cannot be staged is a failed attempt like any other. What a failure says, it says without `secrets`.
 */
export async function executeHandler(
  kinds: JobKinds,
  job: Job,
  ctx: JobContext,
  payload: Payload,
  secrets: KnownSecrets = NO_SECRETS,
): Promise<HandlerOutcome> {
  try {
    ctx.signal.throwIfAborted();
    const result = await runJob(kinds, ctx, job, payload, secrets);
    return await outcomeOf(ctx, result);
  } catch (thrown) {
    return failureOf(thrown, ctx.signal, secrets);
  }
}

async function outcomeOf(ctx: JobContext, result: JobResult): Promise<HandlerOutcome> {
  if (result === undefined || result === null) return { kind: "succeeded" };
  if (typeof result === "object" && "detached" in result) return detachedFrom(result.detached);
  if (typeof result !== "object" || !isRecord(result.output)) throw resultInvalid(result);
  const { output } = result;
  const staged = "bytes" in output ? await ctx.output(output.name, output.bytes, output.mediaType) : output;
  return { kind: "succeeded", output: staged };
}

function detachedFrom(detached: Detached): HandlerOutcome {
  const ms = isRecord(detached) ? detached.callbackWithinMs : Number.NaN;
  if (ms === undefined) return { kind: "detached" };
  if (!Number.isFinite(ms) || ms <= 0) {
    throw permanentFailure("result-invalid", `detached.callbackWithinMs: found ${ms}; allowed: milliseconds above 0`);
  }
  return { kind: "detached", callbackWithinMs: Math.ceil(ms) };
}

const isRecord = (value: unknown): value is object => typeof value === "object" && value !== null;

/** The types of a result are promises of the job only. What nobody can keep is a failure, not a silent success. */
function resultInvalid(result: unknown): JobFailure {
  const found = isRecord(result) ? `an object with ${Object.keys(result).join(", ") || "no fields"}` : typeof result;
  return permanentFailure(
    "result-invalid",
    `the job returned ${found}; allowed: nothing, { output } or { detached }. Bytes to keep are an output`,
  );
}
