import { messageOf } from "../kernel/errors.ts";
import type { Log } from "../kernel/log.ts";
import type { HintRedis } from "./connection.ts";
import type { FetchedHint, HintQueues } from "./queues.ts";

export type Acknowledger = {
  /** Ends hints in Redis. Those it cannot take now are kept for `retry`. Never rejects. */
  acknowledge(hints: readonly FetchedHint[]): Promise<void>;
  /** Tries again what was kept. */
  retry(): Promise<void>;
};

// More than that is not worth remembering: what is forgotten stays "fetched" in Redis until the sweeper retires it.
const MOST_KEPT = 20_000;
const RETRIED_AT_ONCE = 1_000;

export function createAcknowledger(options: { redis: HintRedis; queues: HintQueues; log: Log }): Acknowledger {
  const { redis, queues, log } = options;
  const kept: FetchedHint[] = [];

  async function acknowledge(hints: readonly FetchedHint[]): Promise<void> {
    if (hints.length === 0) return;
    if (!redis.health().available) return keep(hints);
    const outcomes = await Promise.allSettled(
      hints.map(({ tenantId, class: class_, hintId }) => queues.complete(tenantId, class_, hintId)),
    );
    const failed = outcomes.find((outcome) => outcome.status === "rejected");
    if (failed === undefined) return;
    log.debug({ error: messageOf(failed.reason) }, "Acknowledging hints failed");
    redis.suspect();
    keep(hints.filter((_, index) => outcomes[index]!.status === "rejected"));
  }

  function keep(hints: readonly FetchedHint[]): void {
    kept.push(...hints);
    if (kept.length > MOST_KEPT) kept.splice(0, kept.length - MOST_KEPT);
  }

  return { acknowledge, retry: () => acknowledge(kept.splice(0, RETRIED_AT_ONCE)) };
}
