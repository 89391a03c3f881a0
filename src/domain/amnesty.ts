import type { Instant } from "../kernel/clock.ts";
import type { LeaseTerms } from "./lease.ts";

/**
 * Amnesty: when the authority itself was away, a lapsed lease says nothing about its worker, who could not have sent
 * a heartbeat. After any such gap nothing is expired for one TTL, and what expires because of it never counts
 * against the run.
 */
export type Watch = {
  /** Database time and this process's monotonic time of the last successful pass. */
  databaseAt: Instant;
  monotonicMs: number;
  serverStartedAt: Instant;
  timeline: number;
};

export type Amnesty = { watch: Watch; until: Instant };

const CLOCK_STEP_MS = 5_000;

/** Answers the new watch and the instant (database time) until which nothing is expired. */
export function observe(before: Amnesty | undefined, seen: Watch, terms: LeaseTerms): Amnesty {
  const fresh = { watch: seen, until: seen.databaseAt + terms.ttlMs };
  if (before === undefined) return fresh;
  const elapsedMs = seen.monotonicMs - before.watch.monotonicMs;
  const stepMs = Math.abs(seen.databaseAt - before.watch.databaseAt - elapsedMs);
  const gap =
    elapsedMs > terms.heartbeatMs ||
    stepMs > CLOCK_STEP_MS ||
    seen.serverStartedAt !== before.watch.serverStartedAt ||
    seen.timeline !== before.watch.timeline;
  return gap ? fresh : { watch: seen, until: before.until };
}
