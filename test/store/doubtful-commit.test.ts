import { expect, test } from "vitest";
import { systemClock } from "../../src/kernel/clock.ts";
import { silentLog } from "../../src/kernel/log.ts";
import { createDatabase, sql } from "../../src/store/database.ts";
import { createTestDatabase } from "../support/postgres.ts";

// A wait for a synchronous standby that is broken off ends in a commit with a warning; so does this trigger.
const WARNS_AT_COMMIT = `
  create table noted (n int);
  create function warn() returns trigger language plpgsql as
    $$ begin raise warning 'canceling wait for synchronous replication'; return null; end $$;
  create constraint trigger at_commit after insert on noted deferrable initially deferred
    for each row when (new.n = 2) execute function warn()`;
const NOTE = sql("test_note", "insert into noted values ($1)");
const COUNT = sql("test_count_noted", "select count(*)::int as n from noted");

test("a commit with a warning is an outcome that nobody knows, and the connection goes on", async () => {
  const { url, drop } = await createTestDatabase();
  const db = createDatabase({
    url,
    maxConnections: 1,
    applicationName: "t",
    clock: systemClock,
    log: silentLog,
  });
  await db.run(WARNS_AT_COMMIT);
  const note = (n: number) => db.transact({ deadlineMs: 5_000, lockTimeoutMs: 0 }, (tx) => tx.query(NOTE, [n]));
  await note(1);
  await expect(note(2)).rejects.toMatchObject({ code: "outcome-unknown" });
  await note(3);
  expect(await db.query(COUNT)).toEqual([{ n: 3 }]);
  await db.close();
  await drop();
});
