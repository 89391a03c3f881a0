import { appendFileSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Redis } from "ioredis";
import pg from "pg";
import { startPostgres } from "../../../src/app/embedded/postgres.ts";
import { findRedisBinary, startRedis } from "../../../src/app/embedded/redis.ts";
import { migrateToLatest } from "../../../src/store/migrate.ts";
import { cpuMsOf } from "./cpu.ts";

export type BenchServers = {
  databaseUrl: string;
  redisUrl: string | undefined;
  admin: pg.Pool;
  settings: Record<string, string>;
  /** CPU ms spent so far. */
  cpu(): { postgres: number; redis: number };
  stop(): Promise<void>;
};

/** BENCH_STATEMENTS=1 counts what each statement costs; BENCH_EXPLAIN=ms writes slow plans to BENCH_LOG. */
function diagnosis(): Record<string, string> {
  if (process.env.BENCH_EXPLAIN) {
    return {
      shared_preload_libraries: "auto_explain",
      "auto_explain.log_min_duration": process.env.BENCH_EXPLAIN,
      "auto_explain.log_analyze": "on",
      "auto_explain.log_timing": "off",
    };
  }
  if (!process.env.BENCH_STATEMENTS) return {};
  return { shared_preload_libraries: "pg_stat_statements", "pg_stat_statements.track_planning": "on" };
}

/** What statements cost, dearest first; empty unless BENCH_STATEMENTS is set. */
export async function readStatements(admin: pg.Pool): Promise<string[]> {
  if (!process.env.BENCH_STATEMENTS) return [];
  await admin.query("create extension if not exists pg_stat_statements");
  const { rows } = await admin.query(
    `select calls, round(total_exec_time) as exec_ms, round(total_plan_time) as plan_ms, plans,
            round(shared_blks_hit / greatest(calls, 1)) as hit, left(regexp_replace(query, '\\s+', ' ', 'g'), 110) as query
       from pg_stat_statements order by total_exec_time + total_plan_time desc limit 25`,
  );
  return rows.map(
    (row) => `${row.exec_ms} ms exec, ${row.plan_ms} ms plan, ${row.calls} calls, ${row.hit} blocks: ${row.query}`,
  );
}

/** What Redis was asked, most first; empty unless BENCH_STATEMENTS is set. */
export async function readCommands(servers: Pick<BenchServers, "redisUrl">): Promise<string[]> {
  if (!process.env.BENCH_STATEMENTS || servers.redisUrl === undefined) return [];
  const redis = new Redis(servers.redisUrl);
  const lines = (await redis.info("commandstats")).split("\r\n").filter((line) => line.startsWith("cmdstat_"));
  await redis.config("RESETSTAT");
  redis.disconnect();
  const calls = (line: string) => Number(/calls=(\d+)/.exec(line)?.[1]);
  return lines.sort((a, b) => calls(b) - calls(a)).slice(0, 14);
}

/** Private servers on a real disk with every commit durable, and a migrated database. */
export async function startBenchServers(): Promise<BenchServers> {
  const directory = mkdtempSync(join(tmpdir(), "punctual-bench-"));
  const log = (line: string) => {
    if (process.env.BENCH_LOG) appendFileSync(process.env.BENCH_LOG, `${line}\n`);
  };
  const postgres = await startPostgres({
    dataDirectory: join(directory, "postgres"),
    lifetime: "discarded",
    settings: diagnosis(),
    log,
  });
  const binary = findRedisBinary(process.env.PATH ?? "");
  const redis = binary === undefined ? undefined : await startRedis({ binary, log });
  await migrateToLatest(postgres.url);
  const admin = new pg.Pool({ connectionString: postgres.url, max: 4 });
  const settings: Record<string, string> = {};
  for (const name of ["server_version", "synchronous_commit", "fsync", "shared_buffers"]) {
    settings[name] = (await admin.query(`show ${name}`)).rows[0][name];
  }
  if (settings.synchronous_commit !== "on" || settings.fsync !== "on") throw new Error("commits must be durable");
  return {
    databaseUrl: postgres.url,
    redisUrl: redis?.url,
    admin,
    settings,
    cpu: () => ({ postgres: cpuMsOf(postgres.pid), redis: redis === undefined ? 0 : cpuMsOf(redis.pid) }),
    async stop() {
      await admin.end();
      await redis?.stop();
      await postgres.stop();
      rmSync(directory, { recursive: true, force: true });
    },
  };
}
