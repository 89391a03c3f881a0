import { Worker } from "node:worker_threads";
import type { Occupant } from "../../handlers/main-thread.ts";
import type { Clock, Timer } from "../../kernel/clock.ts";
import type { Log } from "../../kernel/log.ts";
import type { Metrics } from "../../kernel/metrics.ts";
import type { Service } from "../../kernel/service.ts";
import { BOARD_BYTES, createBoard } from "./board.ts";
import type { Watched } from "./watch-thread.ts";

export type BlockedWatch = {
  service: Service;
  enter(who: Occupant): () => void;
  /** How long ago it was blocked last, and for how long. */
  last(): { agoMs: number; ms: number } | undefined;
};

/**
 * Watches the event loop of this process. While it is blocked, a thread says so (watch-thread.ts); afterwards it is
 * counted here, with the jobs that were at work meanwhile: one of them it was.
 */
export function createBlockedWatch(options: {
  clock: Clock;
  log: Log;
  metrics: Metrics;
  /** From when on it counts as blocked; 0: nobody watches. */
  blockedMs: number;
  suspects(): readonly Occupant[];
}): BlockedWatch {
  const { clock, log, metrics, blockedMs } = options;
  const memory = new SharedArrayBuffer(BOARD_BYTES);
  const board = createBoard(memory);
  const beats = new Int32Array(new SharedArrayBuffer(4));
  const everyMs = Math.max(20, blockedMs / 5);
  let thread: Worker | undefined;
  let timer: Timer | undefined;
  let longestMs = 0;
  let last: { endedMs: number; ms: number } | undefined;

  function beat(dueMs: number): void {
    const lateMs = clock.monotonic() - dueMs;
    Atomics.add(beats, 0, 1);
    Atomics.notify(beats, 0);
    const suspects = options.suspects();
    if (lateMs >= blockedMs) {
      longestMs = Math.max(longestMs, lateMs);
      last = { endedMs: clock.monotonic(), ms: lateMs };
      metrics.blocked.inc();
      metrics.blockedLongest.set(longestMs / 1000);
      log.warn(
        { blockedMs: Math.round(lateMs), suspects },
        "the event loop was blocked, probably by one of these jobs",
      );
    }
    const nextMs = clock.monotonic() + everyMs;
    timer = clock.after(everyMs, () => beat(nextMs));
  }

  return {
    last: () => last && { agoMs: clock.monotonic() - last.endedMs, ms: last.ms },
    enter: ({ job, run, attempt }) => board.put(`${job} ${run} ${attempt}`),
    service: {
      name: "blocked-watch",
      async start() {
        if (blockedMs === 0 || thread !== undefined) return;
        const workerData: Watched = { beats, board: memory, blockedMs, level: log.level };
        thread = new Worker(new URL("./watch-thread.ts", import.meta.url), { workerData });
        thread.on("error", (error) => log.error({ reason: String(error) }, "nobody watches the event loop any more"));
        thread.unref();
        beat(clock.monotonic());
      },
      async stop() {
        timer?.cancel();
        await thread?.terminate();
      },
    },
  };
}
