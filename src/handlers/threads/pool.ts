import { fileURLToPath } from "node:url";
import { MessageChannel, type Worker } from "node:worker_threads";
import type { Piscina } from "piscina";
import type { Clock } from "../../kernel/clock.ts";
import { messageOf } from "../../kernel/errors.ts";
import type { Log } from "../../kernel/log.ts";
import type { Metrics } from "../../kernel/metrics.ts";
import type { JobContext, JobResult } from "../context.ts";
import { type JobFailure, permanentFailure, transientFailure } from "../outcome.ts";
import { createHost } from "./host.ts";
import { SHARED_WORDS, type ThreadEnd, type ThreadTask } from "./messages.ts";
import { createTurns } from "./turns.ts";

/** Runs jobs that compute in threads of their own. */
export type ThreadPool = {
  /** Runs the module's `run` as the work of this attempt; rejects as a job does. */
  run(ctx: JobContext, module: string, input: unknown): Promise<JobResult>;
  stop(): Promise<void>;
};

export type ThreadPoolOptions = {
  size: number;
  /** What one thread may need: its heap, and its buffers beside that. */
  memoryMb: number;
  clock: Clock;
  log: Log;
  metrics: Metrics;
  /** A text without any secret that the process has opened: nobody knows any more whose an idle thread was. */
  scrub?: (text: string) => string;
  /** How long a thread that was told to stop may take. */
  graceMs?: number;
};

const GRACE_MS = 2_000;
const IDLE_MS = 30_000;
const LOOK_MS = 100;
/** How long is waited for what an ended thread had still to say. */
const LAST_WORDS_MS = 1_000;
const MIB = 1_048_576;
/**
 * Where V8 itself ends a thread, above what it may need. Within one operation (a growing array, a split) V8 cannot end
 * the thread and ends the process; the largest array it makes at all has 1 GiB.
 */
const HEADROOM_MB = 1_536;

type Busy = { worker: Worker | undefined; isOverMemory: boolean; end: AbortController };

/**
 * Whatever a job does in its thread ends its own attempt and nothing else. A thread that does not stop when it is told
 * to, or needs too much memory, is ended and replaced; one in which something of a job still goes on is not used again.
 */
export function createThreadPool(options: ThreadPoolOptions): ThreadPool {
  const { clock, log, metrics, memoryMb, scrub = (text) => text } = options;
  const turns = createTurns(options.size);
  const busy = new Set<Busy>();
  let made: Promise<Piscina> | undefined;
  let isLooking = false;

  async function make(): Promise<Piscina> {
    // Few workers have jobs for threads: the others do not load it.
    const { Piscina } = await import("piscina");
    const pool = new Piscina({
      filename: fileURLToPath(new URL("./entry.ts", import.meta.url)),
      name: "runTask",
      minThreads: 0,
      maxThreads: options.size,
      idleTimeout: IDLE_MS,
      // A thread that waits for work in the usual way is one whose timers and streams go on.
      atomics: "disabled",
      resourceLimits: { maxOldGenerationSizeMb: memoryMb + HEADROOM_MB },
    });
    pool.on("error", (error) => log.error({ reason: scrub(messageOf(error)) }, "an idle thread has failed"));
    return pool;
  }

  /** V8 would count no buffers, and could not always stop at the limit. */
  async function look(): Promise<void> {
    isLooking = true;
    for (const one of busy) {
      const stats = await one.worker?.getHeapStatistics().catch(() => undefined);
      if (stats === undefined || stats.used_heap_size + stats.external_memory <= memoryMb * MIB) continue;
      one.isOverMemory = true;
      one.end.abort();
    }
    isLooking = busy.size > 0;
    if (isLooking) clock.after(LOOK_MS, () => void look());
  }

  function count(): void {
    metrics.threads.set({ state: "busy" }, busy.size);
    metrics.threads.set({ state: "waited-for" }, turns.waiting);
  }

  async function runInThread(ctx: JobContext, module: string, input: unknown): Promise<JobResult> {
    made ??= make();
    const pool = await made;
    const one: Busy = { worker: undefined, isOverMemory: false, end: new AbortController() };
    const { port1, port2 } = new MessageChannel();
    const shared = new Int32Array(new SharedArrayBuffer(SHARED_WORDS * 4));
    const host = createHost({
      ctx,
      port: port1,
      shared,
      clock,
      onBegun: (id) => {
        one.worker = threadOf(pool, id);
      },
    });
    const { run, deadlineAt } = ctx;
    const logLevel = ctx.log.isLevelEnabled("info") ? ctx.log.level : "info";
    const task: ThreadTask = { module, input, run, deadlineAt, logLevel, port: port2, shared };
    let grace = { cancel: () => {} };
    const stop = () => {
      host.stop();
      grace = clock.after(options.graceMs ?? GRACE_MS, () => one.end.abort());
    };
    busy.add(one);
    count();
    if (!isLooking) void look();
    ctx.signal.addEventListener("abort", stop, { once: true });
    if (ctx.signal.aborted) stop();
    try {
      const told: ThreadEnd = await pool.run(task, { transferList: [port2], signal: one.end.signal });
      if (told.leftovers) await threadOf(pool, told.threadId)?.terminate();
      await host.hearOut(LAST_WORDS_MS);
      return host.settle(told.end);
    } catch (error) {
      if (one.worker !== undefined) await host.hearOut(LAST_WORDS_MS);
      throw explain(error, one) ?? error;
    } finally {
      ctx.signal.removeEventListener("abort", stop);
      grace.cancel();
      host.close();
      busy.delete(one);
      count();
    }
  }

  function explain(error: unknown, one: Busy): Error | JobFailure | undefined {
    const { name, code, message } = error as { name?: string; code?: string; message?: string };
    if (one.isOverMemory || code === "ERR_WORKER_OUT_OF_MEMORY") {
      return transientFailure("memory-exceeded", `the job needed more memory than the ${memoryMb} MB of a thread`);
    }
    if (one.end.signal.aborted) return new Error("the job did not stop when it was told to; its thread was ended");
    const exit = /^worker exited with code: (-?\d+)$/.exec(message ?? "");
    if (exit !== null) return transientFailure("process-exit", `the job ended its thread with exit code ${exit[1]}`);
    if (name === "DataCloneError") {
      return permanentFailure("not-transferable", `what the job's thread is given or returns: ${message}`);
    }
    return undefined;
  }

  const threadOf = (pool: Piscina, id: number) => pool.threads.find((thread) => thread.threadId === id);

  return {
    async run(ctx, module, input) {
      const turn = turns.take(ctx.signal);
      count();
      await turn;
      try {
        return await runInThread(ctx, module, input);
      } finally {
        turns.giveBack();
        count();
      }
    },
    async stop() {
      const pool = await made;
      await pool?.destroy();
    },
  };
}
