import type { Clock } from "../kernel/clock.ts";
import type { Log } from "../kernel/log.ts";
import type { Pass } from "../kernel/loop.ts";
import type { ObjectStore } from "../objects/port.ts";

const DAY_MS = 86_400_000;

/**
 * Clears uploads that broke off, once a day. No attempt lasts longer than a day, so what is older has no writer.
 * Several sweepers may clear at once.
 */
export function createUploadCleaner(deps: {
  objects: Pick<ObjectStore, "removeAbandoned">;
  clock: Pick<Clock, "now">;
  log: Log;
}): Pass {
  const { objects, clock, log } = deps;
  return {
    name: "upload-cleaner",
    everyMs: DAY_MS,
    idleMs: DAY_MS,
    async pass() {
      const did = await objects.removeAbandoned(clock.now() - DAY_MS);
      if (did > 0) log.info({ did }, "uploads that broke off were cleared");
      return { did, more: false };
    },
  };
}
