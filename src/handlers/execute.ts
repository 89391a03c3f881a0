import type { Job } from "../domain/definition.ts";
import type { JobContext, JobResult } from "./context.ts";
import { failureOf, type HandlerOutcome } from "./outcome.ts";
import type { JobRegistry } from "./registry.ts";

/**
 * Runs one attempt: look up, check the payload, work, stage the output. Never throws and never rejects.
 *
 * It settles when the job's own promise does, and not before: a job that ignores `ctx.signal` keeps running after the
 * abort, so only the caller can decide whether to wait (its slot is still in use) or to walk away. An outcome that
 * arrives after the abort may well be a success; whether it still counts is decided by the fence at completion.
 * An output that cannot be staged is a failed attempt like any other.
 */
export async function executeHandler(
  registry: JobRegistry,
  job: Pick<Job, "name" | "version">,
  ctx: JobContext,
  payload: unknown,
): Promise<HandlerOutcome> {
  try {
    ctx.signal.throwIfAborted();
    const result = await registry.get(job.name, job.version).run(ctx, payload);
    return await stage(ctx, result);
  } catch (thrown) {
    return failureOf(thrown, ctx.signal);
  }
}

async function stage(ctx: JobContext, result: JobResult): Promise<HandlerOutcome> {
  const output = result?.output;
  if (output === undefined) return { kind: "succeeded" };
  const staged = "bytes" in output ? await ctx.output(output.name, output.bytes, output.mediaType) : output;
  return { kind: "succeeded", output: staged };
}
