import pg from "pg";
import type { TestProject } from "vitest/node";
import { startPostgres } from "../../src/app/embedded/postgres.ts";
import { findRedisBinary, startRedis } from "../../src/app/embedded/redis.ts";
import { migrateToLatest } from "../../src/store/migrate.ts";
import { makeTemporaryFolder } from "./temporary-folder.ts";

declare module "vitest" {
  interface ProvidedContext {
    /** The run's private PostgreSQL, database `postgres`, superuser. */
    postgresUrl: string;
    /** The migrated database that `createTestDatabase` clones. */
    templateDatabase: string;
    /** A redis-server or valkey-server to start, or "" where there is none. */
    redisBinary: string;
    /** The run's private Redis, or "" where there is none. */
    redisUrl: string;
  }
}

const TEMPLATE = "punctual_template";

/** One private PostgreSQL and one private Redis for the whole run; both end with it, even when it is killed. */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const log = () => undefined;
  const deadlocks: string[] = [];
  let linesToKeep = 0;
  const postgres = await startPostgres({
    dataDirectory: makeTemporaryFolder("punctual-test-"),
    lifetime: "discarded",
    // Nothing here must outlive a power cut; flushing would only wear the disk.
    settings: {
      fsync: "off",
      full_page_writes: "off",
      shared_buffers: "128MB",
      max_wal_size: "256MB",
      wal_level: "minimal",
      max_wal_senders: "0",
    },
    // Whoever retries a deadlock hides it from its test: the server is asked, at the end, for the whole run.
    log: (line) => {
      if (/deadlock detected/i.test(line)) linesToKeep = 10;
      if (linesToKeep-- > 0) deadlocks.push(line);
    },
  });
  await createTemplate(postgres.url);
  const redisBinary = findRedisBinary(process.env.PATH);
  if (!redisBinary) {
    console.log("No redis-server or valkey-server on PATH: the tests that need Redis are left out of this run.");
  }
  const redis = redisBinary ? await startRedis({ binary: redisBinary, log }) : undefined;

  project.provide("postgresUrl", postgres.url);
  project.provide("templateDatabase", TEMPLATE);
  project.provide("redisBinary", redisBinary ?? "");
  project.provide("redisUrl", redis?.url ?? "");
  return async () => {
    await Promise.all([postgres.stop(), redis?.stop()]);
    if (deadlocks.length > 0) throw new Error(`there were deadlocks in this run:\n${deadlocks.join("\n")}`);
  };
}

async function createTemplate(adminUrl: string): Promise<void> {
  const admin = new pg.Client(adminUrl);
  await admin.connect();
  await admin.query(`create database ${TEMPLATE}`);
  const url = new URL(adminUrl);
  url.pathname = `/${TEMPLATE}`;
  await migrateToLatest(url.href);
  await admin.query(`alter database ${TEMPLATE} is_template true`);
  // A clone is another database, but no restored one.
  const template = new pg.Client(url.href);
  await template.connect();
  await template.query("update authority_epoch set database_oid = null");
  await template.end();
  // Cloning needs a template without visitors.
  await admin.query(`alter database ${TEMPLATE} allow_connections false`);
  await admin.end();
}
