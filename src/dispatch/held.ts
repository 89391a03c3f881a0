import type { Grant } from "../authority/attempts/grant.ts";
import type { KnownSecrets } from "../domain/secrets/known.ts";
import type { Uuid } from "../kernel/ids.ts";
import type { AttemptLog } from "./logs/attempt-log.ts";

/** Why a running attempt is told to stop. */
export type StopReason = "canceled" | "deadline" | "lease-doubtful" | "stale-fence" | "shutdown";

/** An attempt that this process is at work on. */
export type HeldAttempt = {
  readonly grant: Grant;
  readonly stop: AbortController;
  /** Monotonic ms of this process until which the lease is trusted. */
  trustedUntilMs: number;
  /** Monotonic ms at which the lease was given or last renewed. */
  renewedMs: number;
  /** Monotonic ms at which the attempt is over at the latest. */
  readonly deadlineMs: number;
  /** What its handler last said of its progress and no heartbeat has carried yet: storable JSON text. */
  progress: string | undefined;
  /** What was opened for it: whatever it says goes out without that. */
  secrets: KnownSecrets;
  /** What its job has said so far, if anything. */
  log: AttemptLog | undefined;
};

/** The attempts of this process by run; a fence that is not here is nobody's business any more. */
export type HeldAttempts = {
  add(attempt: HeldAttempt): void;
  remove(attempt: HeldAttempt): void;
  get(runId: Uuid): HeldAttempt | undefined;
  all(): Iterable<HeldAttempt>;
  readonly size: number;
  /** Resolves when nothing is held, or at the latest when `signal` aborts. */
  empty(signal: AbortSignal): Promise<void>;
};

export function createHeldAttempts(): HeldAttempts {
  const held = new Map<Uuid, HeldAttempt>();
  const waiters = new Set<() => void>();
  return {
    add(attempt) {
      held.set(attempt.grant.runId, attempt);
    },
    remove(attempt) {
      // The run may have come back to this process under a newer fence.
      if (held.get(attempt.grant.runId) === attempt) held.delete(attempt.grant.runId);
      if (held.size === 0) for (const wake of waiters) wake();
    },
    get: (runId) => held.get(runId),
    all: () => held.values(),
    get size() {
      return held.size;
    },
    empty(signal) {
      return new Promise((resolve) => {
        if (held.size === 0 || signal.aborted) return resolve();
        const wake = () => {
          waiters.delete(wake);
          signal.removeEventListener("abort", wake);
          resolve();
        };
        waiters.add(wake);
        signal.addEventListener("abort", wake);
      });
    },
  };
}
