import { type Seen, unmarkPublished } from "../../store/rows/dispatchable.ts";
import type { Authority } from "../authority.ts";

/**
 * Takes back the mark of rows whose hint is not in Redis, so that they are published again.
 * Locks   outbox rows, skipping what others hold (a claim in flight wins).
 * Writes  outbox (published_at), only where the publication is still the one that was seen.
 * Replay  nothing.
 */
export async function unpublish(authority: Authority, seen: readonly Seen[]): Promise<number> {
  if (seen.length === 0) return 0;
  const count = await authority.transact("unpublish", (tx) => unmarkPublished(tx, seen));
  if (count > 0) authority.signals.outboxGrew(0);
  return count;
}
