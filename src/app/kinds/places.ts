import type { FunctionPlaces } from "../../handlers/kinds.ts";
import { createMainThread } from "../../handlers/main-thread.ts";
import { createThreadPool } from "../../handlers/threads/pool.ts";
import type { Service } from "../../kernel/service.ts";
import type { Core } from "../core.ts";
import { createExitGuard } from "../main-thread/exit-guard.ts";
import { type BlockedWatch, createBlockedWatch } from "../main-thread/watch.ts";

/** Where the functions of a worker run, and what watches over them. The first thread is started when a job needs one. */
export function openPlaces(
  { clock, config, log, metrics }: Core,
  scrub: (text: string) => string,
): {
  places: FunctionPlaces;
  blocked: BlockedWatch["last"];
  services: Service[];
} {
  const size = config.PUNCTUAL_THREADS;
  const memoryMb = config.PUNCTUAL_THREAD_MEMORY_MB;
  const threads = size === 0 ? undefined : createThreadPool({ size, memoryMb, clock, log, metrics, scrub });
  const blockedMs = config.PUNCTUAL_BLOCKED_MS;
  const watch = createBlockedWatch({ clock, log, metrics, blockedMs, suspects: () => mainThread.recent() });
  const mainThread = createMainThread(watch.enter);
  const pool = { name: "threads", start: async () => {}, stop: async () => threads?.stop() };
  return {
    places: { threads, mainThread },
    blocked: watch.last,
    services: [createExitGuard(mainThread, log), watch.service, pool],
  };
}
