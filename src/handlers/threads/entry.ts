import { threadId } from "node:worker_threads";
import { messageOf } from "../../kernel/errors.ts";
import type { JobContext, JobResult, OutputBytes } from "../context.ts";
import { JobFailure, permanentFailure } from "../outcome.ts";
import { createGuest, Refused } from "./guest.ts";
import { LONGEST_MESSAGE, type ThreadEnd, type ThreadTask } from "./messages.ts";

/** What a thread of the pool does with a task. It never rejects: what the job threw is told in plain values. */
export async function runTask(task: ThreadTask): Promise<ThreadEnd> {
  const before = process.getActiveResourcesInfo().length;
  const guest = createGuest(task);
  const restore = divertConsole(guest.ctx);
  let end: ThreadEnd["end"];
  try {
    end = { kind: "returned", result: await stageResult(guest.ctx, await work(task, guest.ctx)) };
  } catch (thrown) {
    end = tell(thrown);
  }
  restore();
  await guest.close();
  return { end, threadId, leftovers: process.getActiveResourcesInfo().length > before };
}

type JobModule = { run?: (ctx: JobContext, input: unknown) => JobResult | Promise<JobResult> };

async function work(task: ThreadTask, ctx: JobContext): Promise<JobResult> {
  ctx.signal.throwIfAborted();
  const { run } = (await import(task.module)) as JobModule;
  if (typeof run !== "function") {
    throw permanentFailure("thread-module-invalid", `${task.module} exports no function called run`);
  }
  return run(ctx, task.input);
}

/** Bytes go out as they are made; what is left is small and can be cloned, or is what it should not be. */
async function stageResult(ctx: JobContext, result: JobResult): Promise<unknown> {
  if (result === undefined || result === null) return undefined;
  if (typeof result !== "object") return result;
  if ("detached" in result) return { detached: { ...result.detached } };
  const output = result.output as OutputBytes | undefined;
  if (output === undefined || !("bytes" in output)) return { output };
  return { output: await ctx.output(output.name, output.bytes, output.mediaType) };
}

function tell(thrown: unknown): ThreadEnd["end"] {
  try {
    if (thrown instanceof Refused) return { kind: "refused", id: thrown.id };
    const message = String(messageOf(thrown)).slice(0, LONGEST_MESSAGE);
    if (!(thrown instanceof JobFailure)) return { kind: "threw", message };
    const { transient, code, retryAfterMs } = thrown;
    const declared = { transient: transient !== false, code: String(code).slice(0, LONGEST_MESSAGE) };
    return {
      kind: "threw",
      message,
      declared: retryAfterMs === undefined ? declared : { ...declared, retryAfterMs: Number(retryAfterMs) },
    };
  } catch {
    return { kind: "threw", message: "The job threw something that cannot be shown" };
  }
}

/** What it prints is output of its attempt. */
function divertConsole(ctx: JobContext): () => void {
  const streams = [process.stdout, process.stderr];
  const writes = streams.map((stream) => stream.write);
  for (const stream of streams) {
    stream.write = ((chunk: Uint8Array | string, encoding?: unknown, done?: unknown) => {
      ctx.capture(chunk);
      const callback = typeof encoding === "function" ? encoding : done;
      if (typeof callback === "function") queueMicrotask(() => callback());
      return true;
    }) as typeof stream.write;
  }
  return () => {
    for (const [i, stream] of streams.entries()) stream.write = writes[i]!;
  };
}
