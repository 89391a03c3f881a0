import type { Authority } from "../authority/authority.ts";
import { readPublishedLanes } from "../authority/dispatch/published.ts";
import type { Consumer } from "../hints/consumer.ts";
import type { Pass } from "../kernel/loop.ts";

/** Tells a worker's consumer which lanes have published rows, so that a lost wake-up costs seconds, never a lane. */
export function createReminder(options: {
  authority: Authority;
  consumer: Pick<Consumer, "remind">;
  redis: { available(): boolean };
  classes: readonly string[];
}): Pass {
  const { authority, consumer, redis, classes } = options;
  return {
    name: "reminder",
    everyMs: 3_000,
    idleMs: 3_000,
    async pass() {
      if (!redis.available()) return { did: 0, more: false };
      const lanes = await readPublishedLanes(authority);
      for (const [class_, some] of Map.groupBy(lanes, (lane) => lane.class)) {
        if (classes.includes(class_))
          consumer.remind(
            class_,
            some.map((lane) => lane.tenantId),
          );
      }
      return { did: 0, more: false };
    },
  };
}
