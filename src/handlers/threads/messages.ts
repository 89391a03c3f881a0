import type { MessagePort } from "node:worker_threads";
import type { Instant } from "../../kernel/clock.ts";
import type { Uuid } from "../../kernel/ids.ts";
import type { JobContext, StagedOutput } from "../context.ts";
import type { RunSummaryRow } from "../run-reader.ts";

/** What a job in a thread and its attempt say to each other. Everything in it can be cloned, and is of bounded size. */

/** What a thread is given to do. */
export type ThreadTask = {
  /** URL of the module whose `run` is called. */
  module: string;
  input: unknown;
  run: JobContext["run"];
  deadlineAt: Instant;
  /** Least severe lines of its log that are of any use. */
  logLevel: string;
  port: MessagePort;
  shared: Int32Array<SharedArrayBuffer>;
};

/** Places in `shared`: what can be seen, and waited for, without a turn of the event loop. */
export const UNREAD = 0;
export const STOPPED = 1;
export const SHARED_WORDS = 2;
/** So many messages may be unread before the thread waits: it can go no faster than it is heard. */
export const MOST_UNREAD = 64;
/** Longest text or bytes of one message. */
export const LONGEST_MESSAGE = 65_536;

export const STOP_REASONS = ["canceled", "deadline", "lease-doubtful", "stale-fence", "shutdown", "stopped"] as const;

export type FromThread =
  | { kind: "begun"; threadId: number }
  /** A line of pino's. */
  | { kind: "log"; line: string }
  | { kind: "capture"; chunk: Uint8Array | string }
  /** JSON. */
  | { kind: "progress"; json: string }
  | { kind: "output"; id: number; name: string; mediaType: string }
  /** What was asked for with `pull`; without bytes: the output has ended, or (`broken`) never will. */
  | { kind: "chunk"; id: number; bytes?: Uint8Array; broken?: string }
  | { kind: "read"; id: number; tenantId: Uuid; fromAt: Instant; toAt: Instant }
  /** The next page; `enough`: no more of them. */
  | { kind: "more"; id: number; enough?: true };

export type ToThread =
  | { kind: "stop" }
  | { kind: "pull"; id: number }
  | { kind: "staged"; id: number; output: StagedOutput }
  | { kind: "page"; id: number; runs: readonly RunSummaryRow[] | undefined }
  | { kind: "refused"; id: number; message: string };

/** How a thread's job ended. */
export type ThreadEnd = {
  end:
    | { kind: "returned"; result: unknown }
    | { kind: "threw"; message: string; declared?: { transient: boolean; code: string; retryAfterMs?: number } }
    /** It passed on what the attempt refused it. */
    | { kind: "refused"; id: number };
  threadId: number;
  /** Something of the job is still going on in the thread. */
  leftovers: boolean;
};
