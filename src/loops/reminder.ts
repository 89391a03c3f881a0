import type { Authority } from "../authority/authority.ts";
import { readPublishedLanes } from "../authority/dispatch/published.ts";
import { readWeights } from "../authority/dispatch/weights.ts";
import type { SlotAccounts } from "../domain/dispatch/slot-accounts.ts";
import type { Consumer } from "../hints/consumer.ts";
import type { Pass } from "../kernel/loop.ts";

/**
 * Tells a worker what Redis does not: which lanes have published rows, so that a lost wake-up costs seconds, never a
 * lane; and what tenants weigh, so that a changed quota is seen as soon.
 */
export function createReminder(options: {
  authority: Authority;
  consumer: Pick<Consumer, "remind">;
  redis: { available(): boolean };
  /** Of the classes this worker serves. */
  accounts: ReadonlyMap<string, Pick<SlotAccounts, "weighAll">>;
}): Pass {
  const { authority, consumer, redis, accounts } = options;
  return {
    name: "reminder",
    everyMs: 3_000,
    idleMs: 3_000,
    async pass() {
      // Direct dispatch reads both beside its work.
      if (!redis.available()) return { did: 0, more: false };
      for (const [class_, weights] of await readWeights(authority, [...accounts.keys()])) {
        accounts.get(class_)!.weighAll(weights);
      }
      const lanes = await readPublishedLanes(authority);
      for (const [class_, some] of Map.groupBy(lanes, (lane) => lane.class)) {
        if (accounts.has(class_))
          consumer.remind(
            class_,
            some.map((lane) => lane.tenantId),
          );
      }
      return { did: 0, more: false };
    },
  };
}
