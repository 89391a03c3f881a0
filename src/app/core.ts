import { hostname } from "node:os";
import type { LogStore } from "../authority/attempts/keep-log.ts";
import { type Authority, createAuthority } from "../authority/authority.ts";
import { pinZones } from "../authority/timezones/pin-zones.ts";
import { createPinnedZones } from "../authority/timezones/pinned-zones.ts";
import { SHORT_ATTEMPT_LIMIT_MS } from "../domain/definition.ts";
import type { Outbound } from "../handlers/outbound/outbound.ts";
import { connectHintRedis, type HintRedis } from "../hints/connection.ts";
import { createWaker, type Waker } from "../hints/wake.ts";
import { systemChance } from "../kernel/chance.ts";
import { type Clock, systemClock } from "../kernel/clock.ts";
import { operatorError } from "../kernel/errors.ts";
import { noFaults } from "../kernel/faults.ts";
import { mintId, randomBucket, type Uuid } from "../kernel/ids.ts";
import { createLog, type Log } from "../kernel/log.ts";
import { createLoop, type LoopService } from "../kernel/loop.ts";
import { createMetrics, type Metrics } from "../kernel/metrics.ts";
import { createTzWatch } from "../loops/tz-watch.ts";
import { createLogParts } from "../objects/log-parts.ts";
import type { ObjectStore } from "../objects/port.ts";
import { createDatabase, type Database } from "../store/database.ts";
import type { Config } from "./config.ts";
import { openOutbound } from "./kinds/outbound.ts";
import { openObjects } from "./objects.ts";
import { findMasterKeys } from "./secrets/master-keys.ts";
import { loadTzCandidate, type TzData } from "./tz-data.ts";
import { readVersion } from "./version.ts";
import { createWakes, type Wakes } from "./wakes.ts";

/** What every role of one process shares. Nothing in it is started yet but the database pool, which opens on demand. */
export type Core = {
  config: Config;
  version: string;
  processId: Uuid;
  processName: string;
  clock: Clock;
  log: Log;
  metrics: Metrics;
  db: Database;
  authority: Authority;
  /** The same authority on two connections of its own, for heartbeats. */
  heartbeatAuthority: Authority;
  /** Where results are; made ready by the roles that use it. */
  objects: ObjectStore;
  /** The ways out to where tenants point. */
  outbound: Outbound;
  /** Where the logs of attempts are kept: among the results. */
  logs: LogStore;
  /** What this process could have adopted; it goes by what is adopted. */
  tzCandidate: TzData;
  /** Notices adoptions; shared by the roles of this process. */
  tzWatch: LoopService;
  /** Undefined without REDIS_URL: then dispatch is direct. */
  redis: { connection: HintRedis; waker: Waker } | undefined;
  redisAvailable(): boolean;
  wakes: Wakes;
  /** We are hanging up ourselves: a connection that ends is no news. */
  closing(): boolean;
  close(): Promise<void>;
};

export function createCore(config: Config, role: string): Core {
  if (config.DATABASE_URL === undefined) {
    throw operatorError(
      "config-invalid",
      "DATABASE_URL: is not set; every role but `up` needs the address of PostgreSQL",
      {
        key: "DATABASE_URL",
      },
    );
  }
  const clock = systemClock;
  const log = createLog({ level: config.PUNCTUAL_LOG_LEVEL, role });
  const metrics = createMetrics();
  const databaseOf = (name: string, maxConnections: number) =>
    createDatabase({ url: config.DATABASE_URL!, maxConnections, applicationName: `punctual ${name}`, clock, log });
  const db = databaseOf(role, config.PUNCTUAL_DB_CONNECTIONS);
  const heartbeatDb = databaseOf(`${role} heartbeats`, 2);

  const redis = connectRedis(config, clock, log);
  const wakes = createWakes(clock, redis?.waker);
  const candidate = loadTzCandidate(config.PUNCTUAL_ZONEINFO);
  const parts = {
    clock,
    log,
    metrics,
    pinned: createPinnedZones(candidate.zones),
    settings: {
      shard: config.PUNCTUAL_SHARD,
      lease: {
        ttlMs: config.PUNCTUAL_LEASE_TTL_MS,
        heartbeatMs: config.PUNCTUAL_HEARTBEAT_MS,
        marginMs: config.PUNCTUAL_LEASE_MARGIN_MS,
      },
      attemptLimitMs: {
        short: SHORT_ATTEMPT_LIMIT_MS,
        long: config.PUNCTUAL_ATTEMPT_LIMIT_LONG_MS,
        memory: config.PUNCTUAL_ATTEMPT_LIMIT_MEMORY_MS,
        remote: config.PUNCTUAL_ATTEMPT_LIMIT_LONG_MS,
      },
      verbDeadlineMs: config.PUNCTUAL_VERB_DEADLINE_MS,
      lockTimeoutMs: config.PUNCTUAL_LOCK_TIMEOUT_MS,
    },
    faults: noFaults,
    chance: systemChance,
    signals: wakes.signals,
    masterKeys: findMasterKeys(config),
  };
  let closing = false;
  const processId = mintId(clock.now(), randomBucket());
  const authority = createAuthority({ ...parts, db });
  const outbound = openOutbound(config, clock, db);
  const objects = openObjects(config);
  return {
    config,
    version: readVersion(),
    processId,
    processName: `${hostname()}-${process.pid}-${processId.slice(-6)}`,
    clock,
    log,
    metrics,
    db,
    authority,
    heartbeatAuthority: createAuthority({ ...parts, db: heartbeatDb }),
    objects,
    logs: createLogParts(objects, config.PUNCTUAL_LOG_LIMIT_BYTES),
    outbound,
    tzCandidate: candidate,
    tzWatch: createLoop(createTzWatch({ authority }), { clock, log, metrics }),
    redis,
    redisAvailable: () => redis?.connection.health().available ?? false,
    wakes,
    closing: () => closing,
    async close() {
      closing = true;
      await redis?.waker.stop();
      await redis?.connection.stop();
      await outbound.close();
      await heartbeatDb.close();
      await db.close();
    },
  };
}

function connectRedis(config: Config, clock: Clock, log: Log): Core["redis"] {
  if (config.REDIS_URL === undefined) return undefined;
  const connection = connectHintRedis({ url: config.REDIS_URL, clock, log, prefix: config.PUNCTUAL_REDIS_PREFIX });
  return { connection, waker: createWaker({ redis: connection, log }) };
}

/**
 * Connects what roles need before they start, and pins the tz database. Redis that does not answer is no reason not to
 * start; a tz database that cannot be trusted is.
 */
export async function openCore(core: Core): Promise<void> {
  const { zones, sha256, bytes } = core.tzCandidate;
  await pinZones(core.authority, { version: zones.version, sha256: Buffer.from(sha256, "hex"), bytes });
  await core.redis?.connection.start();
  await core.redis?.waker.start();
  core.metrics.redisUp.set(core.redisAvailable() ? 1 : 0);
  core.redis?.connection.onHealth((health) => {
    if (core.closing()) return;
    core.metrics.redisUp.set(health.available ? 1 : 0);
    core.log.warn(
      { available: health.available },
      health.available ? "Redis answers again" : "Redis does not answer: dispatch is direct",
    );
    core.wakes.wake("direct");
    core.wakes.wake("relay");
  });
}
