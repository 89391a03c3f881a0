import type { Instant } from "../../kernel/clock.ts";
import {
  type DueLimits,
  findDueDeliveries,
  nextDeliveryIn,
  readDeliveryDelay,
  tellWaiting,
} from "../../store/rows/webhooks/deliveries.ts";
import type { Authority } from "../authority.ts";

/** What may be delivered, for a sender to claim: ids of now, or how long (ms) until there are any (null: nobody knows of any). */
export async function findDueTellings(
  authority: Authority,
  limits: DueLimits,
): Promise<{ ids: bigint[]; nextInMs: number | null }> {
  // Almost always nothing is due, and that is said by one entry of an index.
  const nextInMs = await nextDeliveryIn(authority.db);
  return { ids: nextInMs === 0 ? await findDueDeliveries(authority.db, limits) : [], nextInMs };
}

/**
 * Tells of runs that should have started by now and have not: `most` of them, and of those only that should not have by
 * `since`, unless it is null. Answers of how many, and when it looked.
 * Locks   none: a run that starts meanwhile had not by then. Who tells of the same runs, a claim, is waited for.
 * Time    the statement's own, of the rows as it sees them.
 * Writes  webhook_delivery.
 * Replay  each run once for each endpoint.
 */
export function tellLateRuns(
  authority: Authority,
  of: { most: number; since: Instant | null },
): Promise<{ told: number; at: Instant }> {
  return authority.transact("tell-late-runs", (tx) => tellWaiting(tx, of));
}

/** For how long (ms) the oldest due delivery has been waiting. */
export function readDeliveryBacklog(authority: Authority): Promise<number> {
  return readDeliveryDelay(authority.db);
}
