import { loadBundledTzData } from "../../src/app/tz-data.ts";
import { type Authority, createAuthority } from "../../src/authority/authority.ts";
import { createPinnedZones } from "../../src/authority/timezones/pinned-zones.ts";
import { DEFAULT_ATTEMPT_LIMIT_MS } from "../../src/domain/definition.ts";
import { DEFAULT_LEASE } from "../../src/domain/lease.ts";
import { systemClock } from "../../src/kernel/clock.ts";
import { outcomeUnknown } from "../../src/kernel/errors.ts";
import { silentLog } from "../../src/kernel/log.ts";
import { createMetrics } from "../../src/kernel/metrics.ts";
import { createDatabase } from "../../src/store/database.ts";
import type { World } from "../support/world.ts";

/** What a model run is set in: a database clock that stands still until it is moved, and faults at will. */
export type Setting = {
  /** Two processes on the one database. */
  authorities: readonly [Authority, Authority];
  /** The database's time, epoch ms, with a fraction. */
  now(): number;
  /** Moves it by so many ms; back, too. */
  move(ms: number): Promise<void>;
  /** The next transaction to reach this fault point dies there. Answers whether one has, and disarms. */
  crashAt(point: string): () => boolean;
  /** The next commit is done, but its caller hears that the outcome is unknown. Answers whether one was, and disarms. */
  loseReply(): () => boolean;
  /** The next transaction dies with everything written. Answers whether one has, and disarms. */
  crashAtCommit(): () => boolean;
  /** As a failover: all connections break when the next transaction is about to commit. Answers whether they did, and disarms. */
  cutAtCommit(): () => boolean;
  close(): Promise<void>;
};

export class Crash extends Error {}

const CLOCK = `
  create schema model;
  create table model.clock (at timestamptz not null);
  insert into model.clock values (date_trunc('second', pg_catalog.clock_timestamp()) + interval '123456 microseconds');
  create function model.clock_timestamp() returns timestamptz language plpgsql volatile as
    'begin return (select at from model.clock); end';`;

const CUT =
  "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and application_name = 'model'";

const tz = loadBundledTzData();

export async function createSetting(world: World): Promise<Setting> {
  await world.admin.query(CLOCK);
  const url = new URL(world.url);
  // What is in pg_catalog is found first unless the path says otherwise.
  url.searchParams.set("options", "-c search_path=model,public,pg_catalog");
  let crashPoint: string | undefined;
  let crashed = false;
  let atCommit: "lose" | "crash" | "cut" | undefined;
  let happened = false;
  const databases: { close(): Promise<void> }[] = [];

  function occurs(what: typeof atCommit): boolean {
    if (atCommit !== what) return false;
    atCommit = undefined;
    happened = true;
    return true;
  }
  function arm(what: typeof atCommit): () => boolean {
    atCommit = what;
    happened = false;
    return () => {
      atCommit = undefined;
      return happened;
    };
  }

  function createProcess(): Authority {
    const db = createDatabase({
      url: url.href,
      maxConnections: 3,
      applicationName: "model",
      clock: systemClock,
      log: silentLog,
    });
    databases.push(db);
    return createAuthority({
      db: {
        ...db,
        async transact(options, work) {
          const result = await db.transact(options, async (tx) => {
            const written = await work(tx);
            if (occurs("crash")) throw new Crash("crashed at its commit");
            if (occurs("cut")) await world.admin.query(CUT);
            return written;
          });
          if (occurs("lose")) throw outcomeUnknown("the reply was lost", new Error("lost by the test"));
          return result;
        },
      },
      clock: systemClock,
      log: silentLog,
      metrics: createMetrics(),
      pinned: createPinnedZones(tz.zones),
      settings: {
        shard: 0,
        lease: DEFAULT_LEASE,
        attemptLimitMs: DEFAULT_ATTEMPT_LIMIT_MS,
        verbDeadlineMs: 30_000,
        lockTimeoutMs: 5_000,
      },
      faults: {
        reach(point) {
          if (point !== crashPoint) return undefined;
          crashPoint = undefined;
          crashed = true;
          throw new Crash(`crashed at ${point}`);
        },
      },
      chance: () => 0.5,
    });
  }

  const read = async () =>
    Number((await world.admin.query("select extract(epoch from at) * 1000 as now from model.clock")).rows[0].now);
  let now = await read();
  return {
    authorities: [createProcess(), createProcess()],
    now: () => now,
    async move(ms) {
      await world.admin.query("update model.clock set at = at + $1 * interval '1 ms'", [ms]);
      now = await read();
    },
    crashAt(point) {
      crashPoint = point;
      crashed = false;
      return () => {
        crashPoint = undefined;
        return crashed;
      };
    },
    loseReply: () => arm("lose"),
    crashAtCommit: () => arm("crash"),
    cutAtCommit: () => arm("cut"),
    async close() {
      await Promise.all(databases.map((one) => one.close()));
    },
  };
}
