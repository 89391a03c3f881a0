import { forgetRollups as deleteRollups } from "../../store/rows/rollups.ts";
import type { Authority } from "../authority.ts";

/** How long rollups are kept: by the minute for what went wrong lately, by the hour to compare with last year. */
const KEPT_DAYS = { 1: 90, 60: 400 } as const;

/**
 * Takes away the oldest rollups; answers how many.
 * Locks   rollup, skipping what others hold. Time: the database's. Writes: rollup. Replay: they are gone.
 */
export function forgetRollups(authority: Authority, limit: number): Promise<number> {
  return authority.transact("forget-rollups", async (tx) => {
    const minutes = await deleteRollups(tx, 1, KEPT_DAYS[1], limit);
    return minutes + (await deleteRollups(tx, 60, KEPT_DAYS[60], limit));
  });
}
