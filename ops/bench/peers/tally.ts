import type { Drain } from "./peer.ts";

/** Counts the executions of jobs numbered 0 … jobs − 1. */
export interface Tally {
  readonly ran: (job: number) => void;
  /** Resolves when every job has run at least once. */
  readonly everyJobRan: Promise<void>;
  /** Sums up a drain that took `seconds`, of which the peer's own store says that `completed` jobs completed. */
  readonly close: (seconds: number, completed: number) => Drain;
}

export function startTally(jobs: number): Tally {
  const executions = new Uint16Array(jobs);
  const { promise: everyJobRan, resolve } = Promise.withResolvers<void>();
  let distinct = 0;
  let doubled = 0;
  return {
    everyJobRan,
    ran(job) {
      executions[job]! += 1;
      if (executions[job] !== 1) doubled += 1;
      else if (++distinct === jobs) resolve();
    },
    close(seconds, completed) {
      return {
        runs: jobs,
        seconds: Number(seconds.toFixed(3)),
        runsPerSecond: Math.round(jobs / seconds),
        lost: jobs - Math.min(distinct, completed),
        doubled,
      };
    },
  };
}
