import { ApiProblem, NoAnswer } from "../errors.ts";
import type { WorkerClock } from "./clock.ts";

const BASE_MS = 250;
const CAP_MS = 10_000;

/** How long to wait before the next of several tries: longer and longer, and not all workers at once. */
export function pauseMs(tries: number, error: unknown, clock: WorkerClock): number {
  const askedMs = error instanceof ApiProblem ? (error.retryAfterMs ?? 0) : 0;
  return Math.max(askedMs, clock.chance() * Math.min(CAP_MS, BASE_MS * 2 ** Math.min(tries, 10)));
}

/** Says something again until there is an answer, as long as `until` has not aborted: the same words have the same effect once. */
export async function insist<T>(clock: WorkerClock, until: AbortSignal, say: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await say();
    } catch (error) {
      const mayHelp = error instanceof NoAnswer || (error instanceof ApiProblem && error.retryable);
      if (until.aborted || !mayHelp) throw error;
      await clock.sleep(pauseMs(tries, error, clock), until);
    }
  }
}
