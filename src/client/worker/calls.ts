import type { Http } from "../http.ts";

/** The calls of docs/remote-workers.md, typed. Each is safe to repeat with the same arguments. */

/** An attempt, as every call about it names it. */
export type AttemptRef = { runId: string; attempt: number; fence: string };

/** Leave to run one attempt. Instants are RFC 3339 in UTC. */
export type WorkerGrant = AttemptRef & {
  /** The same in every attempt of the run. */
  idempotencyKey: string;
  scheduleId: string | null;
  scheduledAt: string;
  dueAt: string;
  startedAt: string;
  deadlineAt: string;
  timeoutMs: number;
  job: { name: string; version: number };
  payload: Record<string, unknown>;
};

/** A lease lasts `ttlMs` from each heartbeat on; trust it until `ttlMs - marginMs` after the call was sent. */
export type LeaseTerms = { ttlMs: number; heartbeatMs: number; marginMs: number };

export type Poll = {
  worker: string;
  /** `name@version` */
  jobs: readonly string[];
  slots: number;
  concurrency?: number;
  version?: string;
  waitMs?: number;
};

export type Beat = {
  runId: string;
  outcome: "renewed" | "stale-fence" | "not-holder" | "deadline" | "busy";
  cancelRequested: boolean;
  remainingMs: number;
};

export type StagedOutput = { objectId: string; sha256: string; size: number };
export type OutputFailure = { transient: boolean; code: string; message: string; retryAfterMs?: number };
export type Callback = { url: string; token: string };
type Link = { method: "PUT"; url: string; headers: Record<string, string>; expiresAt: string };
type Held = AttemptRef & { worker: string };
type Named = { name: string; mediaType: string };

export type WorkerCalls = {
  poll(poll: Poll, signal?: AbortSignal): Promise<{ hints: string[]; terms: LeaseTerms }>;
  /** Not repeated by itself: whoever does it knows how long that is worth it. */
  claim(claim: { worker: string; claimId: string; hints: readonly string[]; slots: number }): Promise<{
    grants: WorkerGrant[];
    terms: LeaseTerms;
  }>;
  /** Not repeated by itself: the next one is due soon. */
  heartbeat(
    beats: { worker: string; attempts: readonly AttemptRef[] },
    timeoutMs: number,
  ): Promise<{ attempts: Beat[] }>;
  progress(held: Held, progress: unknown): Promise<{ cancelRequested: boolean }>;
  log(held: Held, text: string): Promise<{ cancelRequested: boolean }>;
  /** Bytes through the API; a stream is sent once. */
  put(
    held: Held,
    output: Named & { bytes: Uint8Array<ArrayBuffer> | ReadableStream },
    signal?: AbortSignal,
  ): Promise<StagedOutput>;
  upload(held: Held, output: Named): Promise<{ objectId: string; upload: Link | null }>;
  stage(held: Held, output: StagedOutput): Promise<StagedOutput>;
  complete(held: Held, output: StagedOutput | null): Promise<{ outcome: "accepted" }>;
  fail(held: Held, failure: OutputFailure): Promise<{ outcome: "recorded" | "canceled" }>;
  release(held: Held): Promise<{ outcome: "released" | "canceled" }>;
  detach(
    held: Held,
    callbackWithinMs?: number,
  ): Promise<{ callbackDueAt: string; cancelRequested: boolean; callback: Callback }>;
  adopt(held: Held): Promise<{ grant: WorkerGrant; terms: LeaseTerms; cancelRequested: boolean }>;
};

/** An upload may take as long as its attempt; the answer to a poll comes when its wait is over. */
const LONGEST_UPLOAD_MS = 3_600_000;
const DEFAULT_WAIT_MS = 20_000;
const ANSWER_MS = 30_000;
const CLAIM_MS = 15_000;

export function workerCallsOf(http: Http): WorkerCalls {
  const say = <T>(
    verb: string,
    body: object,
    more: { once?: boolean; timeoutMs?: number; signal?: AbortSignal } = {},
  ) => http.call<T>({ method: "POST", path: `/v1/worker/${verb}`, body: JSON.stringify(body), ...more });
  return {
    poll: (poll, signal) =>
      say("poll", poll, {
        once: true,
        timeoutMs: (poll.waitMs ?? DEFAULT_WAIT_MS) + ANSWER_MS,
        ...(signal === undefined ? {} : { signal }),
      }),
    claim: (claim) => say("claim", claim, { once: true, timeoutMs: CLAIM_MS }),
    heartbeat: (beats, timeoutMs) => say("heartbeat", beats, { once: true, timeoutMs }),
    progress: (held, progress) => say("progress", { ...held, progress }),
    log: (held, text) => say("log", { ...held, text }),
    put: (held, { name, mediaType, bytes }, signal) =>
      http.call({
        method: "PUT",
        path: "/v1/worker/stage",
        query: { ...held, name },
        headers: { "content-type": mediaType },
        body: bytes,
        once: bytes instanceof ReadableStream,
        timeoutMs: LONGEST_UPLOAD_MS,
        ...(signal === undefined ? {} : { signal }),
      }),
    upload: (held, output) => say("upload", { ...held, ...output }),
    stage: (held, { objectId, sha256, size }) => say("stage", { ...held, objectId, sha256, size }),
    complete: (held, output) =>
      say("complete", { ...held, output: output && { objectId: output.objectId, sha256: output.sha256 } }),
    fail: (held, failure) => say("fail", { ...held, ...failure }),
    release: (held) => say("release", held),
    detach: (held, callbackWithinMs) => say("detach", { ...held, callbackWithinMs }),
    adopt: (held) => say("adopt", held),
  };
}
