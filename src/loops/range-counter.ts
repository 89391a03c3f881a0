import type { Authority } from "../authority/authority.ts";
import { countRanges, nothingCounted } from "../authority/repair/count-ranges.ts";
import type { Pass } from "../kernel/loop.ts";

/** Instants counted in one pass: some 20 ms of this process. */
const BUDGET = 20_000;
const EVERY_MS = 30_000;

/** Counts the instants of skipped ranges that were too long to be counted when they were written. */
export function createRangeCounter(options: { authority: Authority }): Pass {
  const { authority } = options;
  const progress = nothingCounted();
  return {
    name: "range-counter",
    everyMs: EVERY_MS,
    idleMs: EVERY_MS,
    async pass() {
      const { counted, more } = await countRanges(authority, progress, BUDGET);
      return { did: counted, more };
    },
  };
}
