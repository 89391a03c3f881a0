/** Bodies of the workers' protocol, for the reference page. */

const worker = "reports-7f9c-1";
const ATTEMPT = { runId: "run_01kct0v2mz8h3bmq5d0v5x2c9r", attempt: 1, fence: "1099511627904" };

export const POLL_BODY = { worker, jobs: ["report.monthly@1"], slots: 4, concurrency: 4, waitMs: 0 };
export const CLAIM_BODY = {
  worker,
  claimId: "5f0b1c9e-3a52-4d0e-9b1a-0c3f4f2f8a11",
  hints: ["bm90LWEtcmVhbC1oaW50"],
  slots: 4,
};
export const HEARTBEAT_BODY = { worker, attempts: [ATTEMPT] };
export const PROGRESS_BODY = { ...ATTEMPT, worker, progress: { pages: 3, of: 12 } };
export const RELEASE_BODY = { ...ATTEMPT, worker };
export const DETACH_BODY = { ...ATTEMPT, worker, callbackWithinMs: 3_600_000 };
export const ADOPT_BODY = { ...ATTEMPT, worker: "reports-7f9c-2" };

export const LOG_BODY = { ...ATTEMPT, worker, text: "3 of 12 pages\n" };
export const UPLOAD_BODY = { ...ATTEMPT, worker, name: "report.csv", mediaType: "text/csv" };
export const STAGE_BODY = {
  ...ATTEMPT,
  worker,
  objectId: "obj_01kct0v2mz8h3bmq5d0v5x2c9r",
  sha256: "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
  size: 4,
};

export const COMPLETE_BODY = {
  ...ATTEMPT,
  worker,
  output: {
    objectId: "obj_01kct0v2mz8h3bmq5d0v5x2c9r",
    sha256: "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
  },
};

export const FAIL_BODY = {
  ...ATTEMPT,
  worker,
  transient: true,
  code: "bank-busy",
  message: "the bank wants to be asked later",
  retryAfterMs: 60_000,
};
