import type { Authority } from "../../authority/authority.ts";
import { foldRollups } from "../../authority/rollups/fold-rollups.ts";
import type { Pass } from "../../kernel/loop.ts";

const BATCH = 5_000;
const EVERY_MS = 2_000;
const IDLE_MS = 15_000;

/** Keeps the rollups that dashboards read up to date. Without it they stand still, and their `asOf` says since when. */
export function createRollupFolder(options: { authority: Authority }): Pass {
  return {
    name: "rollup-folder",
    everyMs: EVERY_MS,
    idleMs: IDLE_MS,
    async pass() {
      const did = await foldRollups(options.authority, BATCH);
      return { did, more: did >= BATCH };
    },
  };
}
