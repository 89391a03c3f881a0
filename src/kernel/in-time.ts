import type { Clock } from "./clock.ts";

/**
 * Does work with a signal that aborts when its time is over (`withinMs`, with `late` as its reason), or with another
 * signal. Who does not trust the work to heed it adds `unlessAborted`.
 */
export async function inTime<T>(
  clock: Pick<Clock, "after">,
  { withinMs, late, signal }: { withinMs: number; late?: unknown; signal?: AbortSignal | undefined },
  work: (over: AbortSignal) => Promise<T>,
): Promise<T> {
  const over = new AbortController();
  const timer = clock.after(withinMs, () => over.abort(late));
  try {
    return await work(signal === undefined ? over.signal : AbortSignal.any([signal, over.signal]));
  } finally {
    timer.cancel();
  }
}
