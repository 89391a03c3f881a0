import { once } from "node:events";
import { threadId } from "node:worker_threads";
import { createLog } from "../../kernel/log.ts";
import { jsonOf } from "../../kernel/storable.ts";
import type { Bytes } from "../../objects/port.ts";
import type { JobContext, StagedOutput } from "../context.ts";
import { permanentFailure } from "../outcome.ts";
import type { RunSummaryRow } from "../run-reader.ts";
import {
  type FromThread,
  LONGEST_MESSAGE,
  MOST_UNREAD,
  STOP_REASONS,
  STOPPED,
  type ThreadTask,
  type ToThread,
  UNREAD,
} from "./messages.ts";

/** What the attempt refused: passed on, it is told there as it was. */
export class Refused extends Error {
  readonly id: number;

  constructor(id: number, message: string) {
    super(message);
    this.id = id;
  }
}

export type Guest = { ctx: JobContext; close(): Promise<void> };

/** The context of a job in a thread: what it says goes over a port, what it asks for comes back over it. */
export function createGuest(task: ThreadTask): Guest {
  const { port, shared } = task;
  const stop = new AbortController();
  const waiting = new Map<number, { on(message: ToThread): void; reject(error: Error): void }>();
  let ids = 0;

  function post(message: FromThread): void {
    for (let unread = Atomics.load(shared, UNREAD); unread >= MOST_UNREAD; unread = Atomics.load(shared, UNREAD)) {
      Atomics.wait(shared, UNREAD, unread, 1_000);
    }
    Atomics.add(shared, UNREAD, 1);
    port.postMessage(message);
  }

  function look(): void {
    const reason = Atomics.load(shared, STOPPED);
    if (reason > 0 && !stop.signal.aborted) stop.abort(STOP_REASONS[reason - 1]);
  }

  port.on("message", (message: ToThread) => {
    if (message.kind === "stop") return look();
    const one = waiting.get(message.id);
    if (message.kind === "refused") one?.reject(new Refused(message.id, message.message));
    else one?.on(message);
  });

  function capture(chunk: Uint8Array | string): void {
    for (let at = 0; at < chunk.length; at += LONGEST_MESSAGE) {
      post({ kind: "capture", chunk: chunk.slice(at, at + LONGEST_MESSAGE) });
    }
  }

  const log = createLog({
    level: task.logLevel,
    role: "thread",
    destination: { write: (line) => post({ kind: "log", line: line.slice(0, LONGEST_MESSAGE) }) },
  });

  async function output(name: string, bytes: Bytes, mediaType: string): Promise<StagedOutput> {
    const id = ++ids;
    const chunks = chunksOf(bytes);
    const { promise, resolve, reject } = Promise.withResolvers<StagedOutput>();
    const give = async () => {
      try {
        const { value, done } = await chunks.next();
        post(done ? { kind: "chunk", id } : { kind: "chunk", id, bytes: value });
      } catch (error) {
        post({ kind: "chunk", id, broken: String(error).slice(0, 1_000) });
        reject(error);
      }
    };
    waiting.set(id, {
      on(message) {
        if (message.kind === "pull") void give();
        if (message.kind === "staged") resolve(message.output);
      },
      reject,
    });
    post({ kind: "output", id, name: String(name), mediaType: String(mediaType) });
    try {
      return await promise;
    } finally {
      waiting.delete(id);
      await chunks.return(undefined).catch(() => undefined);
    }
  }

  async function* runsBetween(tenantId: string, fromAt: number, toAt: number) {
    const id = ++ids;
    let page = Promise.withResolvers<readonly RunSummaryRow[] | undefined>();
    waiting.set(id, {
      on: (message) => message.kind === "page" && page.resolve(message.runs),
      reject: (error) => page.reject(error),
    });
    post({ kind: "read", id, tenantId, fromAt, toAt });
    try {
      for (;;) {
        post({ kind: "more", id });
        const runs = await page.promise;
        if (runs === undefined) return;
        page = Promise.withResolvers();
        yield runs;
      }
    } finally {
      post({ kind: "more", id, enough: true });
      waiting.delete(id);
    }
  }

  post({ kind: "begun", threadId });
  return {
    ctx: {
      run: task.run,
      signal: seenAtOnce(stop.signal, look),
      deadlineAt: task.deadlineAt,
      log,
      capture,
      progress(value) {
        const json = jsonOf(value);
        if (json !== undefined && json.length <= LONGEST_MESSAGE) post({ kind: "progress", json });
        else log.warn("progress was left out: it is no JSON, or longer than 4,000 characters");
      },
      output,
      callback() {
        throw permanentFailure(
          "callback-unavailable",
          "What a thread does is done when it ends: it gives nobody a callback",
        );
      },
      read: { runsBetween },
    },
    async close() {
      const closed = once(port, "close");
      port.close();
      await closed;
    },
  };
}

/** A loop that computes gives its event loop no turn: whoever asks the signal in it is told all the same. */
function seenAtOnce(signal: AbortSignal, look: () => void): AbortSignal {
  const aborted = Object.getOwnPropertyDescriptor(AbortSignal.prototype, "aborted")!.get!;
  Object.defineProperty(signal, "aborted", {
    get() {
      look();
      return aborted.call(signal);
    },
  });
  Object.defineProperty(signal, "throwIfAborted", {
    value() {
      if (signal.aborted) throw signal.reason;
    },
  });
  return signal;
}

async function* chunksOf(bytes: Bytes): AsyncGenerator<Uint8Array> {
  for await (const chunk of bytes instanceof Uint8Array ? [bytes] : bytes) {
    if (!(chunk instanceof Uint8Array)) {
      throw permanentFailure("output-invalid", `a chunk of an output: found ${typeof chunk}; allowed: Uint8Array`);
    }
    for (let at = 0; at < chunk.length; at += LONGEST_MESSAGE) yield chunk.slice(at, at + LONGEST_MESSAGE);
  }
}
