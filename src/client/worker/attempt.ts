import { ApiProblem } from "../errors.ts";
import type { OutputFailure, StagedOutput, WorkerCalls } from "./calls.ts";
import type { WorkerClock } from "./clock.ts";
import type { HeldAttempt, HeldAttempts } from "./held.ts";
import { insist } from "./insist.ts";
import { JobFailed, type OutputBytes, type StopReason, type WorkerJob, type WorkerJobContext } from "./job.ts";
import { uploadOutput } from "./uploads.ts";

export type AttemptTools = {
  calls: WorkerCalls;
  clock: WorkerClock;
  worker: string;
  held: HeldAttempts;
  /** Nobody waits for answers any more: the process is ending. */
  ending: AbortSignal;
  log(message: string, fields: Record<string, unknown>): void;
};

type Ended =
  | { kind: "succeeded"; output: StagedOutput | null }
  | { kind: "failed"; failure: OutputFailure }
  | { kind: "detached" };

/** One attempt, from its grant to its report. Never rejects: what cannot be reported is ended by its lease. */
export async function runAttempt(tools: AttemptTools, attempt: HeldAttempt, job: WorkerJob | undefined): Promise<void> {
  const fields = { run: attempt.grant.runId, attempt: attempt.grant.attempt };
  try {
    // Granted while the worker was told to stop: nothing of it has begun.
    await report(tools, attempt, attempt.stop.signal.aborted ? NOT_BEGUN : await work(tools, attempt, job));
  } catch (error) {
    tools.log("an attempt could not be reported; its lease will end it", { ...fields, reason: String(error) });
  }
}

const NOT_BEGUN: Ended = { kind: "failed", failure: { transient: true, code: "not-begun", message: "" } };

async function work(tools: AttemptTools, attempt: HeldAttempt, job: WorkerJob | undefined): Promise<Ended> {
  const { grant } = attempt;
  if (job === undefined) {
    const message = `this worker has no job ${grant.job.name}@${grant.job.version}`;
    return { kind: "failed", failure: { transient: false, code: "job-unknown", message } };
  }
  let isDetached = false;
  const ctx = contextOf(tools, attempt, () => {
    isDetached = true;
  });
  try {
    const output = (await job(ctx, grant.payload)) ?? null;
    return isDetached ? { kind: "detached" } : { kind: "succeeded", output };
  } catch (error) {
    if (!isDetached) return { kind: "failed", failure: failureOf(error) };
    tools.log("a job failed after it had detached its attempt", { run: grant.runId, reason: String(error) });
    return { kind: "detached" };
  }
}

const LONGEST_RETRY_AFTER_MS = 86_400_000;

const UNNAMED = "handler-error";

function failureOf(error: unknown): OutputFailure {
  const message = error instanceof Error ? error.message : String(error);
  // Texts that the API takes: of anything else it could not be told.
  const sendable = (text: string) => text.slice(0, 10_000).toWellFormed().replaceAll("\0", "\uFFFD");
  if (error instanceof JobFailed) {
    const { transient, code, retryAfterMs } = error;
    const waitMs = Math.min(LONGEST_RETRY_AFTER_MS, Math.max(0, Math.ceil(retryAfterMs ?? Number.NaN)));
    const wait = Number.isNaN(waitMs) ? {} : { retryAfterMs: waitMs };
    return { transient, code: sendable(code) || UNNAMED, message: sendable(message), ...wait };
  }
  return { transient: true, code: UNNAMED, message: sendable(message) };
}

const TIMED_OUT = { transient: true, code: "attempt-timeout", message: "the attempt ran past its deadline" };

async function report(tools: AttemptTools, attempt: HeldAttempt, ended: Ended): Promise<void> {
  const { calls, clock, ending, log } = tools;
  const held = heldOf(tools, attempt);
  const { signal } = attempt.stop;
  const reason = signal.aborted ? (signal.reason as StopReason) : undefined;
  // Somebody else has the run, or will say how it ends: whatever this attempt says would be refused.
  if (reason === "stale-fence" || ended.kind === "detached") return;
  const say = <T>(what: () => Promise<T>) => insist(clock, ending, what);
  try {
    if (ended.kind === "succeeded") {
      const { output } = ended;
      await whileLapsed(tools, attempt, () => say(() => calls.complete(held, output)));
    } else if (reason === "shutdown") await say(() => calls.release(held));
    else await say(() => calls.fail(held, reason === "deadline" ? { ...ended.failure, ...TIMED_OUT } : ended.failure));
  } catch (error) {
    if (!(error instanceof ApiProblem)) throw error;
    log("what an attempt said was not accepted", { run: held.runId, attempt: held.attempt, code: error.code });
    if (ended.kind !== "succeeded" || !NO_OUTPUT.includes(error.code)) return;
    // What is no output at all will be none the next time, either.
    const transient = error.code !== "invalid-request";
    await say(() => calls.fail(held, { transient, code: "output-unusable", message: error.message }));
  }
}

/** Refusals of what a job has returned. */
const NO_OUTPUT = ["output-unusable", "invalid-request"];

/** Where the lease was over, a heartbeat revives it, and it is said again: the work is as good as it was. */
async function whileLapsed<T>(tools: AttemptTools, attempt: HeldAttempt, say: () => Promise<T>): Promise<T> {
  const { clock, ending, held } = tools;
  for (;;) {
    try {
      return await say();
    } catch (error) {
      if (!(error instanceof ApiProblem) || error.code !== "lease-lapsed") throw error;
      const outcome = await insist(clock, ending, () => held.revive(attempt));
      if (outcome === "busy" && !ending.aborted) await clock.sleep(BUSY_MS, ending);
      else if (outcome !== "renewed") throw error;
    }
  }
}

/** Somebody is at the attempt's row just now. */
const BUSY_MS = 250;

/** It is read once, and cannot be sent again. */
const isStream = (bytes: OutputBytes) => typeof bytes === "object" && !(bytes instanceof Uint8Array);

const heldOf = ({ worker }: AttemptTools, { grant: { runId, attempt, fence } }: HeldAttempt) => ({
  runId,
  attempt,
  fence,
  worker,
});

function contextOf(tools: AttemptTools, attempt: HeldAttempt, detached: () => void): WorkerJobContext {
  const { calls, clock, ending, held: all, log } = tools;
  const held = heldOf(tools, attempt);
  const { payload: _payload, job: _job, runId: id, timeoutMs: _timeoutMs, ...facts } = attempt.grant;
  const bestEffort = async (what: string, say: () => Promise<{ cancelRequested: boolean }>) => {
    try {
      if ((await say()).cancelRequested) attempt.stop.abort("canceled" satisfies StopReason);
    } catch (error) {
      log(`${what} was not kept`, { run: id, reason: String(error) });
    }
  };
  return {
    run: { id, ...facts },
    signal: attempt.stop.signal,
    progress: (value) => bestEffort("progress", () => calls.progress(held, value)),
    log: (text) => bestEffort("a log", () => calls.log(held, text)),
    output: (name, bytes, mediaType = "application/octet-stream") => {
      // Who was told to stop before may still offer what is finished.
      const { signal } = attempt.stop;
      const patience = { calls, clock, signal: signal.aborted ? ending : signal };
      const upload = () => uploadOutput(patience, held, { name, mediaType }, bytes);
      return isStream(bytes) ? upload() : whileLapsed(tools, attempt, upload);
    },
    async detach({ callbackWithinMs } = {}) {
      attempt.isLeaving = true;
      try {
        const { callback } = await insist(clock, ending, () => calls.detach(held, callbackWithinMs));
        detached();
        all.detach(attempt);
        return callback;
      } finally {
        attempt.isLeaving = false;
      }
    },
  };
}
