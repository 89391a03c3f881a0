import type { Clock } from "../../kernel/clock.ts";
import { inTime } from "../../kernel/in-time.ts";
import { unlessAborted } from "../../kernel/unless-aborted.ts";
import { engineUnavailable } from "./engine.ts";

/** An engine that answers does so at once; only what it is asked to wait for takes longer. */
const ANSWER_MS = 15_000;

export type Bounds = {
  /** Unless said, as long as an answer takes (ms). */
  withinMs?: number;
  signal?: AbortSignal | undefined;
};

/**
 * One call to an engine, which ends in time or with the signal. Its client is told, but is not waited for: Docker's never
 * ends a call whose answer breaks off half-way, as when its engine is killed.
 * @throws JobFailure `engine-unavailable` when its time is over; the signal's reason.
 */
export function bounded<T>(
  clock: Clock,
  { withinMs = ANSWER_MS, signal }: Bounds,
  say: (over: AbortSignal) => Promise<T>,
): Promise<T> {
  const late = engineUnavailable(`no answer within ${withinMs} ms`);
  return inTime(clock, { withinMs, late, signal }, (over) => unlessAborted(over, () => say(over)));
}
