/** Leases: how long a claim lasts without a heartbeat, and what a worker may believe about its own. */
export type LeaseTerms = {
  /** A lease lives this long after its claim or last heartbeat, on the authority's clock. */
  ttlMs: number;
  heartbeatMs: number;
  /** A worker stops trusting its lease this long before it would end. */
  marginMs: number;
};

export const DEFAULT_LEASE: LeaseTerms = { ttlMs: 60_000, heartbeatMs: 10_000, marginMs: 5_000 };

/**
 * End of a worker's trust on its own monotonic clock, counted from *before* the call that gave or renewed the lease:
 * the authority cannot have counted from earlier, whatever the reply took.
 */
export function trustedUntil(sentAtMonotonicMs: number, terms: LeaseTerms): number {
  return sentAtMonotonicMs + terms.ttlMs - terms.marginMs;
}
