import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { claimRuns } from "../../src/authority/attempts/claim.ts";
import { completeRuns } from "../../src/authority/attempts/complete.ts";
import type { Grant } from "../../src/authority/attempts/grant.ts";
import { heartbeat } from "../../src/authority/attempts/heartbeat.ts";
import { type Authority, createAuthority } from "../../src/authority/authority.ts";
import { findDueOnTime } from "../../src/authority/runs/due.ts";
import { type Database, type Statement, sql, type Transaction } from "../../src/store/database.ts";
import { createWorld, type World } from "../support/world.ts";

const HOT_TABLES = ["live_run", "outbox", "usage", "schedule_cursor"];
/** What this session's transaction has read of these tables and their indexes. */
const TOUCHED = sql(
  "test_touched",
  `select coalesce(sum(pg_stat_get_xact_blocks_fetched(o)), 0)::int as blocks
     from (select c.oid as o from pg_class c where c.relname = any($1::text[])
           union all
           select i.indexrelid from pg_index i join pg_class c on c.oid = i.indrelid where c.relname = any($1::text[])) t`,
);
/** What it has updated of live_run, and how much of that left every index as it was. */
const UPDATED = sql(
  "test_updated",
  `select coalesce(pg_stat_get_xact_tuples_updated(o), 0)::int as updated,
          coalesce(pg_stat_get_xact_tuples_hot_updated(o), 0)::int as hot
     from (select 'live_run'::regclass::oid as o) t`,
);
const LOOK = { mask: "1".repeat(1024), limit: 100, except: [] };
/** Runs that pass while a stranger's snapshot keeps every version of every row. */
const PASSING = 2_000;

/** Told by what is touched, never by how long it takes. */
describe("B39 one long transaction elsewhere", () => {
  let world: World;
  beforeAll(async () => {
    world = await createWorld();
  });
  afterAll(() => world.close());

  /** A process that adds up what its transactions read of themselves as they end. */
  function counting<Row extends Record<string, number>>(
    statement: Statement,
    values: readonly unknown[],
  ): { authority: Authority; counted: Row } {
    const authority = world.another();
    const { db } = authority;
    const counted: Record<string, number> = {};
    const read = async (tx: Transaction) => Object.entries((await tx.query<Row>(statement, values))[0]!);
    const transact: Database["transact"] = (options, work) =>
      db.transact(options, async (tx) => {
        for (const [name, n] of await read(tx)) counted[name] = (counted[name] ?? 0) - n;
        const done = await work(tx);
        for (const [name, n] of await read(tx)) counted[name] = (counted[name] ?? 0) + n;
        return done;
      });
    const query: Database["query"] = (asked, given) =>
      transact({ deadlineMs: 30_000, lockTimeoutMs: 0 }, (tx) => tx.query(asked, given));
    return { authority: createAuthority({ ...authority, db: { ...db, transact, query } }), counted: counted as Row };
  }
  /** Blocks of hot tables and their indexes that its statements touch. */
  const countingBlocks = () => counting<{ blocks: number }>(TOUCHED, [HOT_TABLES]);

  async function bear(count: number): Promise<bigint[]> {
    const rule = { kind: "interval", everyMs: 1000, anchorAt: 0 } as const;
    const scheduleId = await world.newSchedule({ rule, overlap: { policy: "allow" } });
    await world.makeDue(scheduleId, count * 1000);
    await world.materialize([scheduleId]);
    return (await world.outbox()).map((row) => row.id);
  }

  async function claim(authority: Authority, rows: readonly bigint[]): Promise<Grant[]> {
    const hints = rows.map((rowId) => ({ rowId, epoch: 1 }));
    const request = { claimId: randomUUID(), worker: "w", slots: { short: 1000 }, hints, repeated: false };
    return (await claimRuns(authority, request)).grants;
  }

  async function pass(authority: Authority, rows: readonly bigint[]): Promise<void> {
    const grants = await claim(authority, rows);
    expect(grants).toHaveLength(rows.length);
    await heartbeat(authority, grants);
    await completeRuns(
      authority,
      grants.map(({ runId, fence }) => ({ runId, fence, output: null })),
    );
  }

  /** Twenty claims, heartbeats and completions of one run each, and as many looks at what is due. */
  async function sample() {
    const rows = (await bear(25)).slice(0, 20);
    const verbs = countingBlocks();
    for (const row of rows) await pass(verbs.authority, [row]);
    const looks = countingBlocks();
    for (let n = 0; n < 20; n++) await findDueOnTime(looks.authority, Date.now() - 2000, LOOK);
    await world.claimAll().then((grants) => Promise.all(grants.map((grant) => world.complete(grant))));
    return { verbs: verbs.counted.blocks / 20, looks: looks.counted.blocks / 20 };
  }

  it("pins every dead row, and a claim, a heartbeat, a completion and a look at what is due touch no more for it", async () => {
    await sample();
    const before = await sample();
    const stranger = await world.stranger();
    await stranger.query("set transaction isolation level repeatable read");
    await stranger.query("select 1");
    for (let passed = 0; passed < PASSING; passed += 500) {
      const rows = await bear(500);
      for (let at = 0; at < rows.length; at += 50) await pass(world.authority, rows.slice(at, at + 50));
    }
    const during = await sample();
    expect(during.verbs).toBeLessThanOrEqual(1.5 * before.verbs);
    expect(during.looks).toBeLessThanOrEqual(before.looks + 3);

    await stranger.rollback();
    for (const table of HOT_TABLES) await world.admin.query(`vacuum ${table}`);
    const after = await sample();
    expect(after.verbs).toBeLessThanOrEqual(1.5 * before.verbs);
    await world.check();
  });

  it("heartbeats touch no indexed column: a beat of each of a hundred runs is HOT", async () => {
    const grants = await claim(world.authority, await bear(100));
    // Written anew, each page is half empty, and has room for one more version of all it holds: whoever pins dead rows.
    await world.admin.query("vacuum full live_run");
    const worker = counting<{ updated: number; hot: number }>(UPDATED, []);
    await heartbeat(worker.authority, grants);
    expect(worker.counted).toEqual({ updated: grants.length, hot: grants.length });
  });

  it("hot tables are vacuumed by terms of their own", async () => {
    const { rows } = await world.admin.query(
      "select relname as name, reloptions::text as terms from pg_class where relname = any($1)",
      [["live_run", "outbox", "usage"]],
    );
    expect(rows).toHaveLength(3);
    for (const { terms } of rows) expect(terms).toContain("autovacuum_vacuum_scale_factor");
  });

  it("a transaction of ours that is left open is ended by the server in the time that its verb had", async () => {
    const PATIENCE = sql("test_patience", "select current_setting('idle_in_transaction_session_timeout') as patience");
    const read = world.db.transact({ deadlineMs: 7_000, lockTimeoutMs: 0 }, (tx) => tx.query(PATIENCE));
    expect(await read).toEqual([{ patience: "7s" }]);
  });
});
