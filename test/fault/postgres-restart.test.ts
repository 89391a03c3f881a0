import pg from "pg";
import { expect, test } from "vitest";
import { startPostgres } from "../../src/app/embedded/postgres.ts";
import { migrateToLatest } from "../../src/store/migrate.ts";
import { checkInvariants } from "../support/invariants.ts";
import { redisAvailable, testRedis } from "../support/redis.ts";
import { allSucceed, countRuns, dueSchedule, newTenant, startNode, until } from "../support/system.ts";
import { makeTemporaryFolder } from "../support/temporary-folder.ts";
import { createLedger } from "./ledger.ts";

test("PostgreSQL restarts under load: everything completes, and nothing that was accepted is lost", async () => {
  const log = () => undefined;
  const dataDirectory = makeTemporaryFolder("punctual-restart-");
  // Durable, unlike the shared server: what was committed must be there after a crash.
  const first = await startPostgres({ dataDirectory, log });
  await migrateToLatest(first.url);
  const admin = new pg.Pool({ connectionString: first.url, max: 4 });
  admin.on("error", () => undefined);
  const ledger = createLedger(20);
  const redis = redisAvailable ? testRedis() : undefined;
  const config = { PUNCTUAL_SLOTS_SHORT: "10" };
  const options = { leases: "short" as const, url: first.url, redis, config };
  const nodes = [
    await startNode({ ...options, roles: ["scheduler", "relay", "sweeper"] }),
    await startNode({ ...options, roles: ["worker"], jobs: [ledger.job] }),
    await startNode({ ...options, roles: ["worker"], jobs: [ledger.job] }),
  ];
  let second: typeof first | undefined;
  try {
    for (const name of ["acme", "globex"]) {
      const tenantId = await newTenant(admin, name);
      await dueSchedule(nodes[0]!.core.authority, admin, { tenantId, runs: 600, job: "test.count" });
    }
    await until("some have run", async () => ((await countRuns(admin)).succeeded ?? 0) >= 100);
    const accepted = (await admin.query("select id from run where state = 'succeeded'")).rows.map((row) => row.id);
    // QUIT: no goodbye, connections break in the middle of transactions.
    process.kill(first.pid, "SIGQUIT");
    await first.exited;
    second = await startPostgres({ dataDirectory, port: first.port, lifetime: "discarded", log });
    await allSucceed(admin, 1_200);
    const { rows } = await admin.query(
      "select count(*)::int as n from run where id = any($1) and state = 'succeeded'",
      [accepted],
    );
    expect(rows).toEqual([{ n: accepted.length }]);
    await checkInvariants(admin);
  } finally {
    for (const node of nodes) await node.stop();
    await admin.end();
    await (second ?? first).stop();
  }
});
