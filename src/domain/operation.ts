/** How a long piece of work goes on from step to step. Durations are milliseconds. */

export const OPERATION_STATES = ["pending", "working", "done", "canceled", "failed"] as const;
export type OperationState = (typeof OPERATION_STATES)[number];

/** Counts by name, as the kind of operation has them; shown to people as they are. */
export type Tally = Readonly<Record<string, number>>;

export function addTally(tally: Tally, more: Tally): Tally {
  const sum: Record<string, number> = { ...tally };
  for (const [name, count] of Object.entries(more)) sum[name] = (sum[name] ?? 0) + count;
  return sum;
}

/** How often each name occurs. */
export function countNames(names: Iterable<string>): Tally {
  const tally: Record<string, number> = {};
  for (const name of names) tally[name] = (tally[name] ?? 0) + 1;
  return tally;
}

/** Open operations of one tenant; more are refused, not queued. */
export const MOST_OPEN_OPERATIONS = 100;

/** After trouble a step is smaller, so that the one item at fault is found and its neighbours are done. */
const LIMITS = [200, 14, 1] as const;

/** Most items of the next step. */
export function limitOfStep(tries: number): number {
  return LIMITS[Math.min(tries, LIMITS.length - 1)]!;
}

/** Failures in a row before an operation is given up; with the pauses between them some three minutes. */
const MOST_TRIES = 8;
/** Items that cannot be done, before the operation as a whole is what is wrong. */
const MOST_FAILED = 100;

/** Whether to try again, and when. Data errors come at once with fewer items, anything else after a growing pause. */
export function afterTrouble(tries: number, isPoison: boolean): { giveUp: boolean; pauseMs: number } {
  if (isPoison && limitOfStep(tries) > 1) return { giveUp: false, pauseMs: 0 };
  return { giveUp: tries + 1 >= MOST_TRIES, pauseMs: Math.min(60_000, 1_000 * 2 ** tries) };
}

export function hasFailedTooOften(failed: number): boolean {
  return failed >= MOST_FAILED;
}

/** How long the next step waits, so that never more than the pace is done: what was done must have had its time. */
export function pauseOfPace(items: number, pacePerSecond: number | null): number {
  return pacePerSecond === null ? 0 : (items * 1_000) / pacePerSecond;
}
