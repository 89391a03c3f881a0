import type { Authority } from "../authority/authority.ts";
import { readLetterGauges } from "../authority/dead-letters/keep.ts";
import { readBacklogAges } from "../authority/dispatch/backlog.ts";
import { readEffectBacklog } from "../authority/effects/due.ts";
import { countBehind } from "../authority/timezones/replan-walk.ts";
import { readDeliveryBacklog } from "../authority/webhooks/due.ts";
import type { Pass } from "../kernel/loop.ts";

const EVERY_MS = 15_000;

/** Reads how far behind the system is, for /metrics. Every replica shows the same; alert on the greatest. */
export function createGaugeReader(options: { authority: Authority; classes: readonly string[] }): Pass {
  const { authority, classes } = options;
  const { metrics } = authority;
  return {
    name: "gauge-reader",
    everyMs: EVERY_MS,
    idleMs: EVERY_MS,
    async pass() {
      const ages = await readBacklogAges(authority);
      metrics.scanLag.set(ages.scanLagMs / 1000);
      metrics.outboxAge.set(ages.outboxAgeMs / 1000);
      metrics.faultySchedules.set(ages.faults);
      metrics.tzBehind.set(await countBehind(authority));
      for (const { kind, overdueMs, uncertain } of await readEffectBacklog(authority)) {
        metrics.effectsOverdue.set({ kind }, overdueMs / 1000);
        metrics.effectsUncertain.set({ kind }, uncertain);
      }
      metrics.deliveriesOverdue.set((await readDeliveryBacklog(authority)) / 1000);
      const letters = await readLetterGauges(authority);
      metrics.deadLetters.set(letters.open);
      metrics.deadLetterAge.set(letters.oldestAgeMs / 1000);
      for (const class_ of classes)
        metrics.queuedAge.set({ class: class_ }, (ages.queuedAgeMs.get(class_) ?? 0) / 1000);
      return { did: 0, more: false };
    },
  };
}
