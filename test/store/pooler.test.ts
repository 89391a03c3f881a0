import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { readConfig } from "../../src/app/config.ts";
import type { Patient } from "../../src/app/doctor/check.ts";
import { examine } from "../../src/app/doctor/doctor.ts";
import { callPatient } from "../../src/app/doctor/patient.ts";
import { poolerCheck } from "../../src/app/doctor/pooler.ts";
import { claimRuns } from "../../src/authority/attempts/claim.ts";
import { completeRuns } from "../../src/authority/attempts/complete.ts";
import { failRuns } from "../../src/authority/attempts/fail.ts";
import { heartbeat } from "../../src/authority/attempts/heartbeat.ts";
import { createAuthority } from "../../src/authority/authority.ts";
import { leaveToRelay } from "../../src/authority/runs/bear.ts";
import { materialize } from "../../src/authority/runs/materialize.ts";
import { runNow } from "../../src/authority/runs/run-now.ts";
import { reviseSchedule } from "../../src/authority/schedules/revise-schedule.ts";
import { systemClock } from "../../src/kernel/clock.ts";
import { silentLog } from "../../src/kernel/log.ts";
import { createDatabase, type Database } from "../../src/store/database.ts";
import { findBrokenChains } from "../../src/store/invariants/chains.ts";
import { migrateToLatest } from "../../src/store/migrate.ts";
import { ensurePartitions } from "../../src/store/partitions.ts";
import { listRuns } from "../../src/store/reads/history.ts";
import { inSnapshot } from "../../src/store/reads/snapshot.ts";
import { dropRetired } from "../../src/store/retention/retired.ts";
import { createWorld, type World } from "../support/world.ts";
import { startTransactionPooler, type TransactionPooler } from "./transaction-pooler.ts";

describe("B43 behind a pooler that gives every transaction another session", () => {
  let world: World;
  let pooler: TransactionPooler;
  let forgetful: TransactionPooler;
  const databases: Database[] = [];
  beforeAll(async () => {
    world = await createWorld();
    pooler = await startTransactionPooler(world.url, { keepsStatements: true });
    forgetful = await startTransactionPooler(world.url, { keepsStatements: false });
  });
  afterAll(async () => {
    await Promise.all(databases.map((db) => db.close()));
    await Promise.all([pooler.stop(), forgetful.stop()]);
    await world.close();
  });

  function through(url: string): Database {
    const db = createDatabase({ url, maxConnections: 8, applicationName: "t", clock: systemClock, log: silentLog });
    databases.push(db);
    return db;
  }

  it("lives of runs pass through it, side by side, and everything holds", async () => {
    const authority = createAuthority({ ...world.authority, db: through(pooler.url) });
    const ids = await Promise.all(Array.from({ length: 5 }, () => world.newSchedule({ overlap: { policy: "allow" } })));
    const live = async (scheduleId: string) => {
      const who = { tenantId: world.tenantId, actor: "test", scheduleId };
      await world.makeDue(scheduleId, 5000);
      expect(await materialize(authority, [scheduleId], leaveToRelay)).toMatchObject({ runs: 1 });
      expect(await runNow(authority, who)).toMatchObject({ kind: "created" });
      const change = { payload: { a: 1 } };
      expect(await reviseSchedule(authority, { ...who, expectedRevision: 1, change })).toMatchObject({
        kind: "revised",
      });
      const of = "select id from outbox where runs && array(select id from live_run where schedule_id = $1)";
      const { rows } = await world.admin.query(of, [scheduleId]);
      const hints = rows.map(({ id }) => ({ rowId: id as bigint, epoch: 1 }));
      const request = { claimId: randomUUID(), worker: "w", slots: { short: 9 }, hints, repeated: false };
      const { grants } = await claimRuns(authority, request);
      expect(grants).toHaveLength(2);
      expect((await heartbeat(authority, grants)).map((beat) => beat.kind)).toEqual(["renewed", "renewed"]);
      const [one, two] = grants.map(({ runId, fence }) => ({ runId, fence }));
      expect(await completeRuns(authority, [{ ...one!, output: null }])).toEqual([{ kind: "accepted" }]);
      const failure = { transient: false, code: "x", message: "x" };
      expect(await failRuns(authority, [{ ...two!, failure }])).toMatchObject([{ kind: "failed" }]);
    };
    await Promise.all(ids.map(live));
    expect(pooler.transactions()).toBeGreaterThanOrEqual(5 * 7);
    await world.check();
  });

  it("migrators pass through it: their lock is a transaction's", async () => {
    const reports = await Promise.all([migrateToLatest(pooler.url), migrateToLatest(pooler.url)]);
    expect(reports.flatMap((report) => report.applied)).toEqual([]);
  });

  it("whatever passes through it leaves nothing in a session for the next one: no setting, no lock, no channel", async () => {
    const db = through(pooler.url);
    const partitions = await ensurePartitions(db, { nowAt: Date.now(), aheadDays: 45, width: "week" });
    expect(partitions.created).not.toEqual([]);
    await dropRetired(db, "run_of_nowhere");
    await listRuns(db, world.tenantId, { order: "newest", boundAt: Date.now(), limit: 10 });
    await inSnapshot(db, (at) => findBrokenChains(at, [randomUUID()]));
    const patient = await callPatient(readConfig({ DATABASE_URL: pooler.url }));
    try {
      expect(await examine(patient, () => undefined, ["invariant-1"])).not.toEqual([]);
    } finally {
      await patient.release();
    }
    expect(await pooler.left()).toEqual([]);
    await db.run("set lock_timeout = '7s'");
    expect(await pooler.left(), "what is left is seen").toEqual(["setting lock_timeout"]);
  });

  it("the doctor sees one that keeps prepared statements, and refuses one that forgets them", async () => {
    const patient = (url: string) => ({ db: through(url), databaseUrl: url }) as unknown as Patient;
    expect(await poolerCheck.examine(patient(pooler.url))).toMatchObject({ status: "ok" });
    const found = await poolerCheck.examine(patient(forgetful.url));
    expect(found).toMatchObject({ status: "finding", todo: expect.stringContaining("1.21") });
  });
});
