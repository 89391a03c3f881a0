import { createPublisher } from "../../hints/publisher.ts";
import { createLoop } from "../../kernel/loop.ts";
import type { Service } from "../../kernel/service.ts";
import { createPartitionKeeper } from "../../loops/partition-keeper.ts";
import { createPublishMarked, publishNothing } from "../../loops/publish-marked.ts";
import { createRetention } from "../../loops/retention.ts";
import { createScanner } from "../../loops/scanner.ts";
import { createWindows } from "../../loops/windows.ts";
import { createPartitionUpkeep } from "../../store/partitions.ts";
import type { Core } from "../core.ts";

/** Finds due schedules and turns them into runs. */
export function schedulerRole(core: Core): Service[] {
  const { authority, redis, clock, log } = core;
  const publisher = redis === undefined ? undefined : createPublisher({ redis: redis.connection, clock, log });
  const scanner = createScanner({
    authority,
    id: core.processId,
    windows: createWindows(authority, {
      available: core.redisAvailable,
      ...(publisher === undefined ? {} : { setRateLimits: publisher.setRateLimits }),
    }),
    publishMarked: publisher === undefined ? publishNothing : createPublishMarked(authority, publisher),
  });
  const loop = createLoop(scanner, core);
  core.wakes.on("scanner", loop.wake);
  const upkeep = createPartitionUpkeep(core.db, core.config.PUNCTUAL_PARTITIONS);
  const terms = {
    historyDays: core.config.PUNCTUAL_HISTORY_DAYS,
    requestKeyDays: core.config.PUNCTUAL_REQUEST_KEY_DAYS,
    auditDays: core.config.PUNCTUAL_AUDIT_DAYS,
    afterwards: core.config.PUNCTUAL_HISTORY_AFTERWARDS,
  };
  return [
    core.tzWatch,
    createLoop(createPartitionKeeper({ upkeep, log, metrics: core.metrics }), core),
    createLoop(createRetention({ authority, terms }), core),
    {
      ...loop,
      async stop() {
        await loop.stop();
        await scanner.leave();
      },
    },
  ];
}
