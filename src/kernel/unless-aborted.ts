/**
 * Waits for work, but not longer than until the signal aborts, whether the work heeds it or not. What comes of it after
 * that is nobody's.
 * @throws the signal's reason.
 */
export async function unlessAborted<T>(signal: AbortSignal, work: () => Promise<T>): Promise<T> {
  signal.throwIfAborted();
  const aborted = Promise.withResolvers<never>();
  const abort = () => aborted.reject(signal.reason);
  signal.addEventListener("abort", abort, { once: true });
  return Promise.race([(async () => work())(), aborted.promise]).finally(() =>
    signal.removeEventListener("abort", abort),
  );
}
