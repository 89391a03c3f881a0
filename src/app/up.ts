import { createWriteStream, mkdirSync } from "node:fs";
import { join, resolve } from "node:path";
import { toLocal } from "../domain/recurrence/local.ts";
import { zoneOf } from "../domain/rule-zone.ts";
import { operatorError } from "../kernel/errors.ts";
import { startAll, stopAll } from "../kernel/service.ts";
import { migrateToLatest } from "../store/migrate.ts";
import { listSchedules } from "../store/reads/schedules.ts";
import { keepWhereabouts } from "./cli/whereabouts.ts";
import type { Config } from "./config.ts";
import { type Core, createCore, openCore } from "./core.ts";
import { prepareDemo } from "./demo.ts";
import { assertNotRunningHere } from "./embedded/running-here.ts";
import { type Servers, startServers } from "./embedded/servers.ts";
import { registerJobs } from "./jobs.ts";
import { assertPortFree } from "./port-check.ts";
import { apiRole } from "./roles/api.ts";
import { relayRole } from "./roles/relay.ts";
import { schedulerRole } from "./roles/scheduler.ts";
import { senderRole } from "./roles/sender.ts";
import { sweeperRole } from "./roles/sweeper.ts";
import { workerRole } from "./roles/worker.ts";
import { readSecret } from "./secret.ts";
import { keepMasterKeys } from "./secrets/master-keys.ts";
import { askedToEnd } from "./shutdown.ts";

const say = (line: string) => console.log(line);

/** Everything in one process tree: servers of our own where none is named, all roles, and a demo tenant. */
export async function up(given: Config, searchPath: string): Promise<void> {
  const ended = askedToEnd();
  const directory = resolve(given.PUNCTUAL_DIR);
  await assertNotRunningHere(directory);
  await assertPortFree(given.PUNCTUAL_HOST, given.PUNCTUAL_PORT);
  makeDirectory(directory);
  const servers = await startServers(given, directory, searchPath, {
    say,
    log: appendTo(join(directory, "servers.log")),
  });
  const config: Config = {
    ...given,
    PUNCTUAL_DIR: directory,
    PUNCTUAL_OBJECTS_DIR: given.PUNCTUAL_OBJECTS_DIR ?? join(directory, "objects"),
    // Somebody at a terminal wants the lines below, not a log of every pass.
    PUNCTUAL_LOG_LEVEL: given.PUNCTUAL_LOG_LEVEL === "info" ? "warn" : given.PUNCTUAL_LOG_LEVEL,
    DATABASE_URL: servers.databaseUrl,
    ...(servers.redisUrl === undefined ? {} : { REDIS_URL: servers.redisUrl }),
  };
  try {
    const { applied } = await migrateToLatest(servers.databaseUrl, { width: config.PUNCTUAL_PARTITIONS });
    if (applied.length > 0) say(`Migrated: ${applied.join(", ")}`);
    await runAll(config, given, servers, ended);
  } finally {
    await servers.stop();
  }
  say("Stopped.");
}

/** All roles, from their start to the end that was asked for. */
async function runAll(config: Config, given: Config, servers: Servers, ended: Promise<string>): Promise<void> {
  keepMasterKeys(config);
  const core = createCore(config, "up");
  try {
    await openCore(core);
    const registry = registerJobs();
    const secret = readSecret(config);
    const api = apiRole(core, registry, secret);
    const publicUrl = () => config.PUNCTUAL_PUBLIC_URL ?? api.url();
    const services = [
      ...workerRole(core, registry, undefined, publicUrl),
      ...relayRole(core),
      ...schedulerRole(core),
      ...sweeperRole(core),
      ...senderRole(core, secret, publicUrl),
      api,
    ];
    const demo = await prepareDemo(core);
    await startAll(services);
    const forget = keepWhereabouts(config.PUNCTUAL_DIR, {
      url: api.url(),
      ...(given.DATABASE_URL === undefined ? { databaseUrl: servers.databaseUrl } : {}),
      ...(given.REDIS_URL === undefined ? { redisUrl: servers.redisUrl } : {}),
    });
    await sayWhereThingsAre(core, api.url(), demo);
    say(`Stopping (${await Promise.race([ended, servers.lost])}) …`);
    forget();
    await stopAll(services);
  } finally {
    await core.close();
  }
}

/** What our own servers print is for when something is wrong; it is kept beside the data. */
function appendTo(path: string): (line: string) => void {
  const stream = createWriteStream(path, { flags: "a" });
  stream.on("error", () => {});
  return (line) => void stream.write(`${line}\n`);
}

function makeDirectory(directory: string): void {
  try {
    mkdirSync(directory, { recursive: true });
  } catch (error) {
    throw operatorError(
      "no-permission",
      `${directory} cannot be made: set PUNCTUAL_DIR to a place that can be written`,
      {},
      error,
    );
  }
}

async function sayWhereThingsAre(core: Core, url: string, demo: { key: string; tenantId: string }): Promise<void> {
  const zones = core.authority.zones;
  say(`API ${url}`);
  say(`Docs ${url}/docs`);
  say(
    core.redis === undefined
      ? "Bull Board needs Redis (redis-server or REDIS_URL)"
      : `Bull Board ${url}/queues?key=${demo.key}`,
  );
  say(`Key ${demo.key}`);
  const schedules = await listSchedules(core.db, demo.tenantId, { limit: 10, status: "active" });
  for (const schedule of schedules.toSorted((a, b) => (a.nextRunAt ?? 0) - (b.nextRunAt ?? 0))) {
    if (schedule.nextRunAt === null) continue;
    const zone = zoneOf(schedule.definition.rule) ?? "Etc/UTC";
    // What came due while nothing ran is settled now, by its misfire policy.
    const when = schedule.nextRunAt > core.clock.now() ? "" : "now: due since ";
    say(`Next ${when}${toLocal(zone, schedule.nextRunAt, zones)} ${schedule.name}`);
  }
  say("Ctrl-C stops everything.");
}
