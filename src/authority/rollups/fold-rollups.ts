import { foldDeltas } from "../../store/rows/rollups.ts";
import type { Authority } from "../authority.ts";

/**
 * Adds what verbs have counted to the rollups; answers how many counts it folded.
 * Locks   rollup_delta, skipping what others hold; rollup rows in the order of their key.
 * Time    none: each count carries its own.
 * Writes  rollup; the counts are gone with it.
 * Replay  a count is folded once: it is deleted in the same statement.
 */
export function foldRollups(authority: Authority, limit: number): Promise<number> {
  return authority.transact("fold-rollups", async (tx) => {
    const folded = await foldDeltas(tx, limit);
    await authority.faults.reach("fold-rollups:written");
    return folded;
  });
}
