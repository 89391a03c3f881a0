import type { Callback, StagedOutput, WorkerGrant } from "./calls.ts";

/** Why an attempt is told to stop: `signal.reason`. */
export type StopReason = "canceled" | "deadline" | "lease-doubtful" | "stale-fence" | "shutdown";

/** Bytes, a stream of them, or what makes such a stream: only that can be sent again after a lost answer. */
export type OutputBytes =
  | Uint8Array<ArrayBuffer>
  | string
  | AsyncIterable<Uint8Array>
  | (() => AsyncIterable<Uint8Array>);

export type WorkerJobContext = {
  readonly run: Omit<WorkerGrant, "payload" | "job" | "runId" | "timeoutMs"> & { readonly id: string };
  /** Ends when the attempt is to stop; `reason` says why. Hand it on. */
  readonly signal: AbortSignal;
  /** How far the attempt is: any JSON. Best effort. */
  progress(value: unknown): Promise<void>;
  /** Whole lines for the attempt's log. Best effort. */
  log(text: string): Promise<void>;
  /** Uploads an output; return what it answers. */
  output(name: string, bytes: OutputBytes, mediaType?: string): Promise<StagedOutput>;
  /** The work goes on elsewhere: hand the callback on, and return. What the job returns counts no more. */
  detach(options?: { callbackWithinMs?: number }): Promise<Callback>;
};

/** Does one attempt. Returns its staged output, if it has one; throws where it fails. */
export type WorkerJob = (
  ctx: WorkerJobContext,
  payload: Record<string, unknown>,
  // biome-ignore lint/suspicious/noConfusingVoidType: a job that returns nothing is the ordinary one
) => Promise<StagedOutput | undefined | void>;

/** What a job throws to say what kind of failure it is; anything else is a transient `handler-error`. */
export class JobFailed extends Error {
  readonly transient: boolean;
  readonly code: string;
  readonly retryAfterMs: number | undefined;

  constructor(code: string, message: string, options: { transient: boolean; retryAfterMs?: number }) {
    super(message);
    this.name = "JobFailed";
    this.code = code;
    this.transient = options.transient;
    this.retryAfterMs = options.retryAfterMs;
  }
}
