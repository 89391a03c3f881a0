import type { MessagePort } from "node:worker_threads";
import type { Clock } from "../../kernel/clock.ts";
import { bug, messageOf } from "../../kernel/errors.ts";
import type { JobContext, JobResult } from "../context.ts";
import { JobFailure } from "../outcome.ts";
import type { RunSummaryRow } from "../run-reader.ts";
import { type FromThread, STOP_REASONS, STOPPED, type ThreadEnd, type ToThread, UNREAD } from "./messages.ts";

/** The attempt's side of a job in a thread: does for the thread what a context does. */
export type Host = {
  /** Tells the thread why it is to stop. */
  stop(): void;
  /** What the job's end means to its attempt. @throws what it threw. */
  settle(end: ThreadEnd["end"]): JobResult;
  /** Resolves when all was heard that the thread had to say, at the latest after `ms`. */
  hearOut(ms: number): Promise<void>;
  close(): void;
};

export function createHost(options: {
  ctx: JobContext;
  port: MessagePort;
  shared: Int32Array<SharedArrayBuffer>;
  clock: Clock;
  onBegun(threadId: number): void;
}): Host {
  const { ctx, port, shared } = options;
  const outputs = new Map<number, (chunk: { bytes?: Uint8Array; broken?: string }) => void>();
  const readers = new Map<number, AsyncIterator<readonly RunSummaryRow[]>>();
  const refusals = new Map<number, unknown>();
  const say = (message: ToThread) => port.postMessage(message);

  function refuse(id: number, error: unknown): void {
    refusals.set(id, error);
    say({ kind: "refused", id, message: messageOf(error).slice(0, 1_000) });
  }

  /** The chunks of an output, each asked for when the one before was taken. */
  async function* pulled(id: number): AsyncGenerator<Uint8Array> {
    for (;;) {
      const { promise, resolve, reject } = Promise.withResolvers<Uint8Array | undefined>();
      outputs.set(id, ({ bytes, broken }) => (broken === undefined ? resolve(bytes) : reject(new Error(broken))));
      const end = () => reject(new Error("the job has ended before its output"));
      ended.signal.addEventListener("abort", end, { once: true });
      say({ kind: "pull", id });
      const bytes = await promise.finally(() => ended.signal.removeEventListener("abort", end));
      if (bytes === undefined) return;
      yield bytes;
    }
  }
  const ended = new AbortController();

  async function turnPage(id: number, enough: boolean): Promise<void> {
    const reader = readers.get(id);
    if (enough) {
      readers.delete(id);
      await reader?.return?.();
      return;
    }
    const page = await reader?.next();
    say({ kind: "page", id, runs: page?.done === false ? page.value : undefined });
  }

  function hear(message: FromThread): void {
    switch (message.kind) {
      case "begun":
        options.onBegun(message.threadId);
        return;
      case "log":
        repeatLine(ctx, message.line);
        return;
      case "capture":
        ctx.capture(message.chunk);
        return;
      case "progress":
        ctx.progress(JSON.parse(message.json));
        return;
      case "output": {
        const { id, name, mediaType } = message;
        void ctx
          .output(name, pulled(id), mediaType)
          .then((output) => say({ kind: "staged", id, output }))
          .catch((error) => refuse(id, error))
          .finally(() => outputs.delete(id));
        return;
      }
      case "chunk":
        outputs.get(message.id)?.(message);
        return;
      case "read":
        readers.set(
          message.id,
          ctx.read.runsBetween(message.tenantId, message.fromAt, message.toAt)[Symbol.asyncIterator](),
        );
        return;
      case "more":
        void turnPage(message.id, message.enough === true).catch((error) => refuse(message.id, error));
    }
  }

  // Comes after the last message.
  const closed = Promise.withResolvers<void>();
  port.once("close", () => closed.resolve());
  port.on("message", (message: FromThread) => {
    try {
      hear(message);
    } finally {
      Atomics.sub(shared, UNREAD, 1);
      Atomics.notify(shared, UNREAD);
    }
  });

  return {
    stop() {
      const reason = STOP_REASONS.indexOf(ctx.signal.reason as (typeof STOP_REASONS)[number]);
      Atomics.store(shared, STOPPED, reason < 0 ? STOP_REASONS.length : reason + 1);
      say({ kind: "stop" });
    },
    settle(end) {
      if (end.kind === "returned") return end.result as JobResult;
      if (end.kind === "refused") throw refusals.get(end.id) ?? bug("A thread was refused something unknown");
      const { message, declared } = end;
      throw declared === undefined ? new Error(message) : new JobFailure({ ...declared, message });
    },
    async hearOut(ms) {
      const timer = options.clock.after(ms, closed.resolve);
      await closed.promise;
      timer.cancel();
    },
    close() {
      ended.abort();
      for (const reader of readers.values()) void reader.return?.()?.catch(() => undefined);
      port.close();
    },
  };
}

const LEVELS = ["fatal", "error", "warn", "info", "debug", "trace"] as const;

/** Says a line of the thread's log in the attempt's. */
function repeatLine(ctx: JobContext, line: string): void {
  try {
    const { level, time: _time, role: _role, msg, ...fields } = JSON.parse(line);
    const found = LEVELS.find((one) => one === level) ?? "info";
    ctx.log[found](fields, typeof msg === "string" ? msg : "");
  } catch {
    // It was too long and was cut.
    ctx.log.info({ line }, "a long line of a job's log");
  }
}
