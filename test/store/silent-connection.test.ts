import { setImmediate } from "node:timers/promises";
import { afterEach, beforeEach, expect, test } from "vitest";
import { systemClock } from "../../src/kernel/clock.ts";
import { silentLog } from "../../src/kernel/log.ts";
import { createDatabase, type Database, sql } from "../../src/store/database.ts";
import { type PostgresProxy, startPostgresProxy } from "../dispatch/postgres-proxy.ts";
import { createTestDatabase, type TestDatabase } from "../support/postgres.ts";

const ONE = sql("test_one", "select 1 as one");

let database: TestDatabase;
let proxy: PostgresProxy;

beforeEach(async () => {
  database = await createTestDatabase();
  proxy = await startPostgresProxy(database.url);
});
afterEach(async () => {
  proxy.resume();
  await proxy.stop();
  await database.drop();
});

function connect(statementDeadlineMs: number): Database {
  const shared = { clock: systemClock, log: silentLog };
  return createDatabase({ url: proxy.url, maxConnections: 1, applicationName: "t", statementDeadlineMs, ...shared });
}

test("a plain statement on a connection that fell silent fails in time, and the next one has another connection", async () => {
  const db = connect(1_000);
  await db.query(ONE);
  proxy.pause();
  await expect(db.query(ONE)).rejects.toMatchObject({ code: "database-unreachable", retryable: true });
  proxy.resume();
  expect(await db.query(ONE)).toEqual([{ one: 1 }]);
  proxy.pause();
  await expect(db.run("select 1")).rejects.toMatchObject({ code: "database-unreachable", retryable: true });
  await db.close();
});

test("a statement that PostgreSQL refuses costs no connection", async () => {
  const db = connect(5_000);
  const PID = sql("test_pid", "select pg_backend_pid() as pid");
  const before = await db.query(PID);
  await expect(db.run("select 1 / 0")).rejects.toMatchObject({ code: "22012" });
  expect(await db.query(PID)).toEqual(before);
  await db.close();
});

test("closing does not wait for ever for a statement whose connection fell silent", async () => {
  const db = connect(600_000);
  await db.query(ONE);
  proxy.pause();
  const pending = expect(db.query(ONE)).rejects.toThrow();
  await setImmediate(); // it is under way, not waiting for a connection
  await db.close();
  await pending;
});

test("a process that is frozen in the middle of a transaction does not keep its rows: the server ends the transaction", async () => {
  const LOCK = sql("test_lock", "select pg_advisory_xact_lock(1), 1 as one");
  // Frozen, it hears no timer of its own.
  const frozenClock = { ...systemClock, after: () => ({ cancel: () => undefined }) };
  const shared = { url: database.url, maxConnections: 1, applicationName: "t", log: silentLog };
  const frozen = createDatabase({ ...shared, clock: frozenClock });
  const other = createDatabase({ ...shared, clock: systemClock });
  const [holds, thaws] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const transaction = frozen.transact({ deadlineMs: 300, lockTimeoutMs: 0 }, async (tx) => {
    await tx.query(LOCK);
    holds.resolve();
    await thaws.promise;
    await tx.query(ONE);
  });
  const outcome = expect(transaction).rejects.toMatchObject({ code: "outcome-unknown" });
  await holds.promise;
  expect(await other.transact({ deadlineMs: 20_000, lockTimeoutMs: 0 }, (tx) => tx.query(LOCK))).toHaveLength(1);
  thaws.resolve();
  await outcome;
  await frozen.close();
  await other.close();
});
