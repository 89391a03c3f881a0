/** Time and chance of a worker. It runs in its tenant's own process, so it brings them itself. */
export type WorkerClock = {
  /** Milliseconds that only grow. */
  monotonic(): number;
  /** Resolves after so long, or early when `signal` aborts. Never rejects. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
  /** A number in [0, 1). */
  chance(): number;
};

export const systemWorkerClock: WorkerClock = {
  monotonic: () => performance.now(),
  sleep(ms, signal) {
    return new Promise((resolve) => {
      if (signal?.aborted) return resolve();
      const wake = () => {
        clearTimeout(timer);
        signal?.removeEventListener("abort", wake);
        resolve();
      };
      const timer = setTimeout(wake, Math.min(Math.max(0, ms), 2 ** 31 - 1));
      signal?.addEventListener("abort", wake);
    });
  },
  chance: () => Math.random(),
};
