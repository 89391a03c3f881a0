import { type Profiler, Session } from "node:inspector/promises";
import { parentPort, workerData } from "node:worker_threads";
import { systemClock } from "../../kernel/clock.ts";
import { createLog } from "../../kernel/log.ts";
import { createBoard } from "./board.ts";

/**
 * A thread that sees when the main thread's event loop is stuck, and speaks while it still is: a loop that never ends
 * would else never be told of.
 */
export type Watched = {
  beats: Int32Array<SharedArrayBuffer>;
  board: SharedArrayBuffer;
  blockedMs: number;
  level: string;
};

const { beats, board, blockedMs, level } = workerData as Watched;
const log = createLog({ level, role: "watchdog" });
const jobs = createBoard(board);
/** How long it is looked where the time goes. */
const SAMPLE_MS = 200;
/** What is stuck outside of JavaScript does not answer. */
const PATIENCE_MS = 2_000;

/** Resolves when the main thread's count is another than `seen`; false: it was not within `ms`. */
async function beat(seen: number, ms?: number): Promise<boolean> {
  const { async, value } = Atomics.waitAsync(beats, 0, seen, ms);
  return (async ? await value : value) !== "timed-out";
}

/** Samples the main thread's stack: it is not stopped for it. The functions at work, the innermost first. */
async function findWhere(): Promise<string[]> {
  const session = new Session();
  session.connectToMainThread();
  try {
    await session.post("Profiler.enable");
    await session.post("Profiler.setSamplingInterval", { interval: 5_000 });
    await session.post("Profiler.start");
    await systemClock.sleep(SAMPLE_MS);
    return hottest((await session.post("Profiler.stop")).profile);
  } finally {
    session.disconnect();
  }
}

function hottest({ nodes }: Profiler.Profile): string[] {
  const parents = new Map(nodes.flatMap((node) => (node.children ?? []).map((child) => [child, node] as const)));
  const [hot] = nodes.toSorted((a, b) => (b.hitCount ?? 0) - (a.hitCount ?? 0));
  const frames: string[] = [];
  for (let node = hot; node !== undefined && frames.length < 12; node = parents.get(node.id)) {
    const { functionName, url, lineNumber } = node.callFrame;
    if (url !== "" && !url.startsWith("node:"))
      frames.push(`${functionName || "(anonymous)"} ${url}:${lineNumber + 1}`);
  }
  return frames;
}

async function watch(): Promise<never> {
  for (let seen = Atomics.load(beats, 0); ; seen = Atomics.load(beats, 0)) {
    if (await beat(seen, blockedMs)) continue;
    const there = jobs.read();
    const where = await Promise.race([findWhere().catch(() => []), systemClock.sleep(PATIENCE_MS).then(() => [])]);
    log.error(
      { blockedMs, jobs: there, where },
      "the event loop is blocked: no heartbeat goes out, and all attempts of this process may be lost",
    );
    await beat(seen);
  }
}

// Keeps the thread alive, for as long as it is wanted.
parentPort!.on("message", () => {});
void watch();
