/** Epoch milliseconds; may carry a microsecond fraction when it came from PostgreSQL. */
export type Instant = number;

export type Timer = { cancel(): void };

/**
 * The only door to time for loops and timers. Leases never use it: they live on database time.
 * `now` is wall-clock epoch ms; `monotonic` is ms that only grow, comparable within one process only.
 */
export type Clock = {
  now(): Instant;
  monotonic(): number;
  /** Calls `fn` once after `delayMs` (any length; negative means at once). */
  after(delayMs: number, fn: () => void): Timer;
  /** Resolves after `delayMs`, or early when `signal` aborts. Never rejects. */
  sleep(delayMs: number, signal?: AbortSignal): Promise<void>;
};

// setTimeout silently turns longer delays into 1 ms.
const LONGEST_TIMEOUT_MS = 2 ** 31 - 1;

function after(delayMs: number, fn: () => void): Timer {
  const endsAt = performance.now() + delayMs;
  let handle: NodeJS.Timeout | undefined;
  const arm = () => {
    const leftMs = endsAt - performance.now();
    handle = leftMs > LONGEST_TIMEOUT_MS ? setTimeout(arm, LONGEST_TIMEOUT_MS) : setTimeout(fn, Math.max(0, leftMs));
  };
  arm();
  return { cancel: () => clearTimeout(handle) };
}

function sleep(delayMs: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted) return resolve();
    const wake = () => {
      timer.cancel();
      signal?.removeEventListener("abort", wake);
      resolve();
    };
    const timer = after(delayMs, wake);
    signal?.addEventListener("abort", wake);
  });
}

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  after,
  sleep,
};
