import { forgetResolved, readOpenLetters } from "../../store/rows/dead-letters.ts";
import type { Authority } from "../authority.ts";

/** How long what was decided about a dead letter stays to be read. */
const RESOLVED_KEPT_DAYS = 30;
/** A gauge need not tell more than this from more. */
const MOST_COUNTED = 10_000;

/**
 * Forgets letters that were resolved long ago, with their history; the audit events stay. Open ones are kept for ever, and
 * keep their runs' partitions: only a person ends them.
 * Locks   dead_letter, skipping what others hold. Writes: the same, dead_letter_resolution. Replay: nothing.
 */
export function forgetOldLetters(authority: Authority, most: number): Promise<number> {
  return authority.transact("forget-letters", (tx) => forgetResolved(tx, RESOLVED_KEPT_DAYS, most));
}

/** How many letters wait for a person, and for how long the oldest has. */
export async function readLetterGauges(authority: Authority): Promise<{ open: number; oldestAgeMs: number }> {
  const { open, now, since } = await readOpenLetters(authority.db, MOST_COUNTED);
  return { open, oldestAgeMs: since === null ? 0 : Math.max(0, now - since) };
}
