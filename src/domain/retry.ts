import { backoffMs } from "../kernel/backoff.ts";
import type { Instant } from "../kernel/clock.ts";
import type { Retry } from "./definition.ts";

export type Failure = {
  transient: boolean;
  code: string;
  message: string;
  /** The other side asked for this much patience; believed up to RETRY_AFTER_LIMIT_MS. */
  retryAfterMs?: number | undefined;
};

/** Why a run is given up. */
export const GIVE_UP_REASONS = [
  "permanent",
  "non-retryable",
  "attempts-exhausted",
  "elapsed-exhausted",
  "crash-loop",
  "interrupted-too-often",
] as const;
export type GiveUpReason = (typeof GIVE_UP_REASONS)[number];

export type RetryDecision = { kind: "retry"; notBefore: Instant } | { kind: "give-up"; reason: GiveUpReason };

/**
 * `attemptsSpent` counts the attempts of this budget that ended, the failing one included; `budgetFrom` is the birth
 * of the run or its last replay.
 */
export function decideRetry(
  failure: Failure,
  policy: Retry,
  spent: { attempts: number; budgetFrom: Instant },
  nowAt: Instant,
  chance: number,
): RetryDecision {
  if (!failure.transient) return { kind: "give-up", reason: "permanent" };
  if (policy.nonRetryable?.includes(failure.code)) return { kind: "give-up", reason: "non-retryable" };
  if (spent.attempts >= policy.maxAttempts) return { kind: "give-up", reason: "attempts-exhausted" };
  const waitMs = Math.max(
    Math.min(failure.retryAfterMs ?? 0, RETRY_AFTER_LIMIT_MS),
    backoffMs(spent.attempts, { baseMs: policy.baseMs, capMs: policy.capMs }, chance),
  );
  const notBefore = nowAt + waitMs;
  if (notBefore - spent.budgetFrom > policy.maxElapsedMs) return { kind: "give-up", reason: "elapsed-exhausted" };
  return { kind: "retry", notBefore };
}

/** Nobody is believed who asks for more patience than this: an absurd Retry-After must not strand a run. */
export const RETRY_AFTER_LIMIT_MS = 86_400_000;
/** Leases that ran out in a row before a run is taken for one that kills its workers. */
export const CRASH_LOOP_LIMIT = 5;
/** Releases (deploys, shutdowns) one run may live through; they spend no retry budget but are not endless. */
export const INTERRUPTION_LIMIT = 50;
