import { connectHintRedis } from "../../hints/connection.ts";
import { systemClock } from "../../kernel/clock.ts";
import { silentLog } from "../../kernel/log.ts";
import { createDatabase, type Database, type Queryable, sql } from "../../store/database.ts";
import { getServers } from "../cli/whereabouts.ts";
import type { Config } from "../config.ts";
import { openObjects } from "../objects.ts";
import type { Patient } from "./check.ts";

/** An old snapshot keeps the whole database from cleaning up, so no question may last longer. */
const PATIENCE_MS = 5_000;

const NOW = sql("doctor_now", "select clock_timestamp() as now");

// Local to the transaction, for a pooler may stand between. What verbs forbid the planner, a look at everything needs.
const CAREFULLY = sql(
  "doctor_carefully",
  `select set_config('statement_timeout', $1, true), set_config('transaction_read_only', 'on', true),
          set_config('plan_cache_mode', 'force_custom_plan', true), set_config('enable_seqscan', 'on', true),
          set_config('enable_hashjoin', 'on', true), set_config('enable_mergejoin', 'on', true)`,
);

/** Connects to what DATABASE_URL and REDIS_URL name, else to the running system of this checkout. */
export async function callPatient(config: Config): Promise<Patient & { release(): Promise<void> }> {
  const { databaseUrl, redisUrl } = getServers(config);
  const db = createDatabase({
    url: databaseUrl,
    maxConnections: 2,
    applicationName: "punctual doctor",
    clock: systemClock,
    log: silentLog,
  });
  const redis =
    redisUrl === undefined
      ? undefined
      : connectHintRedis({
          url: redisUrl,
          clock: systemClock,
          log: silentLog,
          prefix: config.PUNCTUAL_REDIS_PREFIX,
        });
  await redis?.start();
  return {
    config,
    databaseUrl,
    db,
    careful: carefully(db),
    redis,
    objects: openObjects(config),
    now: async () => (await db.query<{ now: number }>(NOW))[0]!.now,
    async release() {
      await redis?.stop();
      await db.close();
    },
  };
}

function carefully(db: Database): Queryable {
  return {
    query: (statement, values) =>
      db.transact({ deadlineMs: 2 * PATIENCE_MS, lockTimeoutMs: PATIENCE_MS }, async (tx) => {
        await tx.query(CAREFULLY, [String(PATIENCE_MS)]);
        return tx.query(statement, values);
      }),
  };
}
