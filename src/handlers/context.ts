import type { Instant } from "../kernel/clock.ts";
import type { Uuid } from "../kernel/ids.ts";
import type { Log } from "../kernel/log.ts";
import type { Bytes, StoredObject } from "../objects/port.ts";
import type { CallbackPass } from "./callbacks.ts";
import type { RunReader } from "./run-reader.ts";

/** Everything a job may know and touch. It is given per attempt; nothing in it outlives the attempt. */
export type JobContext = {
  run: {
    /** The stable run key (`run_…`): the same over all attempts, so it is the key for idempotent calls elsewhere. */
    id: string;
    /** `sch_…`; null for an ad hoc run. */
    scheduleId: string | null;
    tenantId: Uuid;
    /** Nominal instant: the same for every attempt, so it is what "now" should mean to a job. */
    scheduledAt: Instant;
    dueAt: Instant;
    attempt: number;
    fence: bigint;
  };
  /** Aborts at a cancellation, the deadline, a lost lease or shutdown. A job that ignores it holds its slot. */
  signal: AbortSignal;
  /** When the attempt is over at the latest (epoch ms). */
  deadlineAt: Instant;
  /** Carries run, attempt and fence. From `info` on its lines are kept with the attempt, too. */
  log: Log;
  /**
   * Adds raw output of the work to the attempt's kept log: what a container prints, what a server answered. Secrets are
   * taken out of its lines. It never waits and never fails.
   */
  capture(chunk: Uint8Array | string): void;
  /** Shows how far the attempt is; the last value wins and is written with a heartbeat. */
  progress(value: unknown): void;
  /**
   * Uploads and registers an object of this attempt. Return it as the job's `output` to make it the result: what was
   * staged and not returned is an orphan, cleared later. A name can be used once in an attempt.
   */
  output(name: string, bytes: Bytes, mediaType: string): Promise<StagedOutput>;
  /**
   * Leave for somebody elsewhere to say how this attempt ended, until `endsAt` (epoch ms) at the latest; for a job that
   * returns `detached`. Not in threads.
   * @throws JobFailure `callback-unavailable` (permanent) where the operator has not set what it takes.
   */
  callback(endsAt: Instant): CallbackPass;
  read: RunReader;
};

/** An object that exists and was registered for this attempt. */
export type StagedOutput = StoredObject & { name: string; mediaType: string };

/** Bytes still to be staged: executeHandler does it. */
export type OutputBytes = { name: string; mediaType: string; bytes: Bytes };

/**
 * The work goes on elsewhere (a queue, a container, an HTTP 202): the worker lets go of the attempt, and whoever knows run
 * and fence says how it ended. `callbackWithinMs`: by when at the latest; the attempt's deadline if nothing is said.
 */
export type Detached = { callbackWithinMs?: number };

/** A job without output returns nothing; one with output returns the one object that becomes the run's result. */
// biome-ignore lint/suspicious/noConfusingVoidType: a job that returns nothing has the type void.
export type JobResult = void | { output: OutputBytes | StagedOutput } | { detached: Detached };
