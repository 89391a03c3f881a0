import type { Instant } from "../kernel/clock.ts";
import type { Log } from "../kernel/log.ts";
import type { Pass } from "../kernel/loop.ts";
import type { Metrics } from "../kernel/metrics.ts";

/** How far ahead runs can be written: an instant without a partition cannot become a run. */
const AHEAD_DAYS = 30;
const ALARM_DAYS = 14;

/** What the keeper needs of the store (src/store/partitions.ts), already bound to a database and a width. */
export type PartitionUpkeep = {
  databaseNow(): Promise<Instant>;
  ensure(options: { nowAt: Instant; aheadDays: number }): Promise<{ created: string[]; postponed: string[] }>;
  analyzeOpening(options: { nowAt: Instant }): Promise<string[]>;
  coverageDays(options: { nowAt: Instant }): Promise<number>;
};

/** Keeps partitions of run and attempt existing 30 days ahead, and the planner informed about the one that fills now. */
export function createPartitionKeeper(deps: {
  upkeep: PartitionUpkeep;
  log: Log;
  metrics: Pick<Metrics, "partitionDays">;
}): Pass {
  const { upkeep, log, metrics } = deps;
  return {
    name: "partition-keeper",
    everyMs: 10_000,
    idleMs: 30_000,
    async pass() {
      const nowAt = await upkeep.databaseNow();
      // First, because it is what a filling partition waits for, and it needs no free lock.
      const analyzed = await upkeep.analyzeOpening({ nowAt });
      if (analyzed.length > 0) log.info({ analyzed }, "filling partitions were analysed");
      try {
        const { created, postponed } = await upkeep.ensure({ nowAt, aheadDays: AHEAD_DAYS });
        if (created.length > 0) log.info({ created }, "partitions were created");
        if (postponed.length > 0) log.warn({ postponed }, "partitions wait for a lock, the next pass tries again");
        return { did: analyzed.length + created.length, more: false };
      } finally {
        const days = await upkeep.coverageDays({ nowAt });
        metrics.partitionDays.set(days);
        if (days < ALARM_DAYS)
          log.error({ days, wanted: AHEAD_DAYS }, "partitions run out, runs after them cannot be written");
      }
    },
  };
}
