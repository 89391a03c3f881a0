import { CLASSES } from "../../domain/definition.ts";
import { establishRedisEpoch } from "../../hints/epoch.ts";
import { createInspector } from "../../hints/inspector.ts";
import { createLoop } from "../../kernel/loop.ts";
import type { Service } from "../../kernel/service.ts";
import { createClaimedHints } from "../../loops/claimed-hints.ts";
import { createGaugeReader } from "../../loops/gauge-reader.ts";
import { createHintSweeper } from "../../loops/hint-sweeper.ts";
import { createLateRunTeller } from "../../loops/late-runs.ts";
import { createLeaseSweeper } from "../../loops/lease-sweeper.ts";
import { createObjectCleaner } from "../../loops/objects/object-cleaner.ts";
import { createStoreCleaner } from "../../loops/objects/store-cleaner.ts";
import { createOperationsDriver } from "../../loops/operations.ts";
import { createRangeCounter } from "../../loops/range-counter.ts";
import { createReconciler } from "../../loops/reconciler.ts";
import { createReplanner } from "../../loops/replanner.ts";
import { createDeadLetterKeeper } from "../../loops/upkeep/dead-letter-keeper.ts";
import { createRollupFolder } from "../../loops/upkeep/rollup-folder.ts";
import { createRollupKeeper } from "../../loops/upkeep/rollup-keeper.ts";
import type { Core } from "../core.ts";
import { objectsReady, resultsKeptMs } from "../objects.ts";

/**
 * Repairs what was lost: leases of dead workers, hints that Redis does not have any more, uploads that broke off. Goes on
 * with long operations, which may have lost whoever worked on them.
 */
export function sweeperRole(core: Core): Service[] {
  const { authority, objects, redis } = core;
  const services: Service[] = [
    objectsReady(core),
    createLoop(createLeaseSweeper({ authority }), core),
    createLoop(createLateRunTeller({ authority }), core),
    createLoop(createGaugeReader({ authority, classes: CLASSES }), core),
    createLoop(createObjectCleaner({ authority, objects, keptMs: resultsKeptMs(core.config) }), core),
    createLoop(createStoreCleaner(core), core),
    createLoop(createReconciler({ authority }), core),
    createLoop(createReplanner({ authority }), core),
    createLoop(createRangeCounter({ authority }), core),
    createLoop(createRollupFolder({ authority }), core),
    createLoop(createRollupKeeper({ authority }), core),
    createLoop(createDeadLetterKeeper({ authority }), core),
    core.tzWatch,
    createLoop(createOperationsDriver({ authority }), core),
  ];
  if (redis !== undefined) {
    const { connection } = redis;
    const reader = { available: core.redisAvailable, establish: () => establishRedisEpoch(connection) };
    const inspector = createInspector({ redis: connection });
    const loop = createLoop(createHintSweeper({ authority, inspector, redis: reader }), core);
    connection.onHealth(loop.wake);
    services.push(loop, createLoop(createClaimedHints({ authority, inspector, redis: reader }), core));
  }
  return services;
}
