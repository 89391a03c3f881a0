import type { Uuid } from "../../../src/kernel/ids.ts";

/** What the reference model speaks of. Times are whole µs, so that nothing is ever rounded. */

export type Policy = {
  overlap: "forbid" | "skip" | "bufferOne" | "cancelRunning" | "allow 2" | "allow 3" | "allow";
  everyMinutes: number;
  maxAttempts: number;
  maxElapsedMinutes: number;
  /** A run that could not start this long after its instant is skipped. */
  startWithinMs: number | undefined;
  /** What is sent when a run has succeeded. */
  effects: readonly EffectName[];
};

/** How long the other side knows a key again, and what is done when nobody knows what came of it. */
type Sending = {
  kind: "webhook" | "email";
  windowMinutes: number;
  onUncertain: "hold" | "resend" | "drop";
  maxAttempts: number;
  maxElapsedMinutes: number;
};
export const SENDINGS = {
  hook: { kind: "webhook", windowMinutes: 5, onUncertain: "hold", maxAttempts: 3, maxElapsedMinutes: 1440 },
  call: { kind: "webhook", windowMinutes: 5, onUncertain: "drop", maxAttempts: 9, maxElapsedMinutes: 10 },
  mail: { kind: "email", windowMinutes: 0, onUncertain: "hold", maxAttempts: 2, maxElapsedMinutes: 1440 },
  note: { kind: "email", windowMinutes: 0, onUncertain: "resend", maxAttempts: 3, maxElapsedMinutes: 1440 },
  card: { kind: "email", windowMinutes: 0, onUncertain: "drop", maxAttempts: 3, maxElapsedMinutes: 1440 },
} as const satisfies Record<string, Sending>;
export type EffectName = keyof typeof SENDINGS;

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

/** A row of the registry: bytes that an attempt may upload, has uploaded, or that are its run's result. */
export type StoredObject = {
  id: Uuid | undefined;
  run: Run;
  fence: bigint;
  name: string;
  grantedUntil: number;
  state: "granted" | "staged" | "referenced" | "deleting" | "deleted" | "forgotten";
  sha256: string | undefined;
  referencedAt: number | undefined;
  pinUntil: number | undefined;
  deletedAt: number | undefined;
  cleanAt: number | undefined;
  cleanTries: number;
};

export type Effect = {
  id: Uuid | undefined;
  run: Run;
  name: EffectName;
  object: StoredObject | undefined;
  state: "pending" | "sending" | "sent" | "uncertain" | "failed" | "resolved";
  resolution: "sent" | "dropped" | undefined;
  dueAt: number;
  spent: number;
  budgetFrom: number;
  firstSentAt: number | undefined;
  /** An earlier attempt may have reached the other side. */
  inDoubt: boolean;
  /** A try before a person asked for it anew may have happened. */
  doubtedBefore: boolean;
  leaseUntil: number;
  /** Every attempt to send it, the newest last; one without an outcome is being made. */
  sends: Send[];
};
export type Send = { fence: bigint | undefined; outcome: SendReport["kind"] | "lapsed" | undefined };
export type SendReport = {
  kind: "sent" | "refused" | "unknown" | "not-sent";
  transient: boolean;
  retryAfterMs: number | undefined;
};
/** What a sender was given once; it may come back with it at any time. */
export type SendGrant = { effect: Effect; send: Send };
export type Report = { transient: boolean; retryAfterMs: number | undefined };
