import type { Uuid } from "../../../src/kernel/ids.ts";

/** What the reference model speaks of. Times are whole µs, so that nothing is ever rounded. */

export type Policy = {
  overlap: "forbid" | "skip" | "bufferOne" | "cancelRunning" | "allow 2" | "allow 3" | "allow";
  everyMinutes: number;
  maxAttempts: number;
  maxElapsedMinutes: number;
  /** A run that could not start this long after its instant is skipped. */
  startWithinMs: number | undefined;
};

export type Tenant = { id: Uuid; limit: number | undefined };

export type Schedule = {
  /** Unknown until the authority has answered. */
  id: Uuid | undefined;
  tenant: Tenant;
  policy: Policy;
  revision: number;
  status: "active" | "paused" | "deleted";
  nextAt: number;
  settledAt: number;
};

export type Run = {
  id: Uuid | undefined;
  schedule: Schedule;
  policy: Policy;
  at: number;
  manual: boolean;
  state: "blocked" | "queued" | "running" | "retrying" | "succeeded" | "failed" | "canceled" | "skipped";
  /** A slot of its schedule, or `own`: it competes with nobody. */
  seat: "slot" | "own" | undefined;
  skipReason: string | undefined;
  notBefore: number;
  attempt: number;
  budgetFrom: number;
  spent: number;
  interruptions: number;
  expiries: number;
  cancelRequested: boolean;
  fence: bigint | undefined;
  /** Nobody, while the attempt is detached. */
  worker: string | undefined;
  leaseUntil: number;
  deadlineAt: number;
  /** Why it was given up, and what a person has decided about that. */
  letter: { reason: string; resolution: "replayed" | "dismissed" | undefined } | undefined;
  /** A person asked for it again: while it waits, nothing takes its place and nothing overtakes it. */
  asked: boolean;
  result: { fence: bigint; sha256: string | undefined } | undefined;
};

/** What a worker was given once; it may come back with it at any time. */
export type Grant = { run: Run; fence: bigint; worker: string };
export type Staged = { id: Uuid; run: Run; fence: bigint; sha256: string; grantedUntil: number };
export type Report = { transient: boolean; retryAfterMs: number | undefined };
