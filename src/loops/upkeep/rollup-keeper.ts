import type { Authority } from "../../authority/authority.ts";
import { forgetRollups } from "../../authority/rollups/forget-rollups.ts";
import type { Pass } from "../../kernel/loop.ts";

const BATCH = 5_000;
const EVERY_MS = 3_600_000;

/** Takes away rollups that are older than they are kept. */
export function createRollupKeeper(options: { authority: Authority }): Pass {
  return {
    name: "rollup-keeper",
    everyMs: EVERY_MS,
    idleMs: EVERY_MS,
    async pass() {
      const did = await forgetRollups(options.authority, BATCH);
      return { did, more: did >= BATCH };
    },
  };
}
