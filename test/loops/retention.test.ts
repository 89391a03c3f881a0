import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { replayRun } from "../../src/authority/dead-letters/replay.ts";
import { watchFloor } from "../../src/authority/retention/drop-history.ts";
import { mintId, type Uuid } from "../../src/kernel/ids.ts";
import { createRetention, type RetentionTerms } from "../../src/loops/retention.ts";
import { ensurePartitions } from "../../src/store/partitions.ts";
import { findLongUser } from "../../src/store/retention/retired.ts";
import { begin, step } from "../authority/operations/pasts.ts";
import { AFTER_MIDNIGHT, failForGood, history, running } from "../authority/scenes.ts";
import { createWorld, type World } from "../support/world.ts";

const DAY_MS = 86_400_000;
const WEEK_MS = 7 * DAY_MS;
const TERMS: RetentionTerms = { historyDays: 30, requestKeyDays: 7, auditDays: 400, afterwards: "drop" };

let world: World;
/** Monday, seven weeks and more ago: the first week of history. */
let floorAt: number;

beforeEach(async () => {
  world = await createWorld();
  const { rows } = await world.admin.query("select floor_at from history_floor");
  floorAt = (rows[0].floor_at as Date).getTime() - 6 * WEEK_MS;
  await world.admin.query("update history_floor set floor_at = $1", [new Date(floorAt)]);
  const nowAt = (await watchFloor(world.authority)).nowAt;
  await ensurePartitions(world.db, { nowAt, aheadDays: 1, width: "week" });
});
afterEach(async () => {
  await world.check();
  await world.close();
});

const keeper = (terms: Partial<RetentionTerms> = {}) =>
  createRetention({ authority: world.authority, terms: { ...TERMS, ...terms } });

/** Passes until there is nothing more to do right now. */
async function settle(pass = keeper()): Promise<void> {
  while ((await pass.pass(new AbortController().signal)).more);
}

/** The same until the old week is gone: transactions of other databases in this cluster, too, may not know of the floor yet. */
async function settleAll(pass = keeper(), isDone = async () => (await tables()).length === 0): Promise<void> {
  do await settle(pass);
  while (!(await isDone()));
}

/** The same until a pass dies; answers what of. */
async function dying(): Promise<unknown> {
  for (;;) {
    try {
      await settle();
    } catch (error) {
      return error;
    }
  }
}

const floorNow = async () => (await watchFloor(world.authority)).floorAt;
const nameOf = (parent: string, at: number) =>
  `${parent}_${new Date(at).toISOString().slice(0, 10).replaceAll("-", "")}`;
const tables = async (at = floorAt) =>
  (
    await world.admin.query(
      `select c.relname::text as name, i.inhrelid is not null as attached from pg_class c left join pg_inherits i on i.inhrelid = c.oid
        where c.relname = any($1::text[]) order by 1`,
      [[nameOf("run", at), nameOf("attempt", at)]],
    )
  ).rows;

/** An ended run with an attempt, as history has it. */
async function oldRun(at: number, endedAt = at + 1_000): Promise<Uuid> {
  const id = mintId(at, 7);
  const { rows } = await world.admin.query("select ((1::bigint << 40) + nextval('fence_seq'))::text as fence");
  const { fence } = rows[0];
  await world.admin.query(
    `insert into run (id, scheduled_at, tenant_id, class, due_at, admitted_at, materialized_at, trigger, state, job, finished_at,
                      attempts, accepted_fence)
     values ($1, $2, $3, 'short', $2, $2, $2, 'api', 'succeeded', '{}', $4, 1, $5)`,
    [id, new Date(at), world.tenantId, new Date(endedAt), fence],
  );
  await world.admin.query(
    `insert into attempt (scheduled_at, run_id, n, claim_id, fence, worker, started_at) values ($2, $1, 1, $1, $3, 'w', $2)`,
    [id, new Date(at), fence],
  );
  return id;
}

describe("history that nobody needs", () => {
  it("is dropped week by week once all of it ended thirty days ago, and what belongs to its runs with it", async () => {
    const gone = await oldRun(floorAt + DAY_MS);
    const kept = await oldRun(floorAt + 5 * WEEK_MS);
    for (const runId of [gone, kept]) {
      await world.admin.query(
        `insert into dead_letter (run_id, scheduled_at, tenant_id, class, reason, fingerprint, attempts, created_at, resolved_at, resolution)
         values ($1, instant_of($1), $2, 'short', 'permanent', 'f', 1, now(), now(), 'dismissed')`,
        [runId, world.tenantId],
      );
      await world.admin.query(
        `insert into object (id, tenant_id, run_id, attempt, fence, name, state, uri, media_type, granted_until, deleting_at, deleted_at, clean_at)
         values (gen_random_uuid(), $2, $1, 1, 1, 'result', 'deleted', 'test:1', 'text/plain', now(), now(), now(), now())`,
        [runId, world.tenantId],
      );
    }
    await settleAll();
    expect(await floorNow()).toBeGreaterThan(floorAt + WEEK_MS - 1);
    expect(await floorNow()).toBeLessThanOrEqual((await watchFloor(world.authority)).nowAt - 30 * DAY_MS);
    expect(await tables()).toEqual([]);
    expect(await world.run(gone)).toBeUndefined();
    expect(await world.run(kept)).toBeDefined();
    for (const table of ["dead_letter", "object", "attempt"]) {
      const { rows } = await world.admin.query(`select run_id from ${table}`);
      expect(rows, table).toEqual([{ run_id: kept }]);
    }
    expect((await world.admin.query("select * from retired_partition")).rows).toEqual([]);
  });

  it.each<[string, (runId: Uuid) => [string, unknown[]]]>([
    [
      "an open dead letter",
      (id) => [
        `insert into dead_letter (run_id, scheduled_at, tenant_id, class, reason, fingerprint, attempts, created_at)
         values ($1, instant_of($1), $2, 'short', 'permanent', 'f', 1, now())`,
        [id, world.tenantId],
      ],
    ],
    [
      "an effect that is not settled",
      (id) => [
        `insert into effect (id, tenant_id, run_id, kind, action_id, name, state, request)
         values (gen_random_uuid(), $2, $1, 'email', 'a', 'a', 'uncertain', '{}')`,
        [id, world.tenantId],
      ],
    ],
    [
      "a result that is still kept",
      (id) => [
        `insert into object (id, tenant_id, run_id, attempt, fence, name, state, uri, media_type, granted_until, deleting_at, deleted_at, clean_at)
         values (gen_random_uuid(), $2, $1, 1, 1, 'result', 'deleting', 'test:1', 'text/plain', now(), now(), now(), now())`,
        [id, world.tenantId],
      ],
    ],
    [
      "a download that goes on",
      (id) => [
        `insert into object (id, tenant_id, run_id, attempt, fence, name, state, uri, media_type, granted_until, pin_until, deleting_at, deleted_at, clean_at)
         values (gen_random_uuid(), $2, $1, 1, 1, 'result', 'deleted', 'test:1', 'text/plain', now(), now() + interval '1 hour', now(), now(), now())`,
        [id, world.tenantId],
      ],
    ],
    ["an end that is not old enough", (id) => ["update run set finished_at = now() where id = $1", [id]]],
  ])("is kept for %s", async (_, hold) => {
    await world.admin.query(...hold(await oldRun(floorAt + DAY_MS)));
    await settle();
    expect(await floorNow()).toBe(floorAt);
    expect(await tables()).toMatchObject([{ attached: true }, { attached: true }]);
    await world.admin.query("delete from dead_letter; delete from effect; delete from object");
  });

  it("leaves ledgers whole: a chain is followed from the floor on", async () => {
    const scheduleId = await world.newSchedule({ rule: AFTER_MIDNIGHT, overlap: { policy: "allow" } });
    await step(world, await begin(world, scheduleId, floorAt + DAY_MS, floorAt + DAY_MS + 180_000));
    const runs = await history(world, scheduleId);
    expect(runs).toHaveLength(3);
    for (const grant of await world.claimAll()) await world.complete(grant);
    await world.admin.query("update run set finished_at = scheduled_at + interval '1 minute' where schedule_id = $1", [
      scheduleId,
    ]);
    await settleAll();
    expect(await history(world, scheduleId)).toEqual([]);
    await world.check();
  });

  it("can be left to an operator as a table of its own, and is forgotten when that is dropped", async () => {
    await oldRun(floorAt + DAY_MS);
    const pass = keeper({ afterwards: "detach" });
    await settleAll(pass, async () => (await tables()).every((table) => !table.attached));
    expect(await tables()).toMatchObject([{ attached: false }, { attached: false }]);
    await world.admin.query(`drop table ${nameOf("run", floorAt)}, ${nameOf("attempt", floorAt)}`);
    await settle(pass);
    const { rows } = await world.admin.query("select name from retired_partition");
    expect(rows.map((row) => row.name)).not.toContain(nameOf("run", floorAt));
  });

  it("is dropped once, by whichever of two keepers comes first", async () => {
    await oldRun(floorAt + DAY_MS);
    await Promise.all([settle(), settle(), settle()]);
    await settleAll();
    expect(await tables()).toEqual([]);
  });
});

describe("a keeper that dies", () => {
  it.each(["drop-history:looked", "drop-history:noted", "drop-history:detached"])(
    "at %s is followed by one that goes on",
    async (point) => {
      await oldRun(floorAt + DAY_MS);
      world.faults.once(point, () => {
        throw new Error("killed");
      });
      expect(await dying()).toMatchObject({ message: "killed" });
      await settleAll();
      expect(await tables()).toEqual([]);
      expect((await world.admin.query("select * from retired_partition")).rows).toEqual([]);
    },
  );

  it("while it waits to detach leaves a partition half detached, which the next one finishes", async () => {
    await oldRun(floorAt + DAY_MS);
    const held = world.faults.hold("drop-history:noted");
    const brokenOff = dying();
    await held.arrived;
    const reader = await world.stranger();
    await reader.query("select count(*) from run");
    held.release();
    await world.lockWaits();
    await world.admin.query(
      `select pg_cancel_backend(pid) from pg_stat_activity
        where datname = current_database() and query ilike '%detach partition%' and pid <> pg_backend_pid()`,
    );
    expect(await brokenOff).toMatchObject({ message: expect.stringContaining("cancel") });
    const pending = "select inhrelid from pg_inherits where inhdetachpending";
    expect((await world.admin.query(pending)).rows).toHaveLength(1);
    await reader.commit();
    await settleAll();
    expect((await world.admin.query(pending)).rows).toEqual([]);
    expect(await tables()).toEqual([]);
  });
});

describe("a partition that goes while work goes on", () => {
  it("waits for who uses it, and nobody waits for it", async () => {
    await oldRun(floorAt + DAY_MS);
    const { grant } = await running(world);
    const other = await running(world, { tenantId: await world.newTenant("globex") });
    const held = world.faults.hold("drop-history:noted");
    const dropping = settleAll();
    await held.arrived;
    const writing = world.faults.hold("complete:written");
    const completion = world.complete(grant);
    await writing.arrived;
    held.release();
    await world.lockWaits();
    expect(await world.complete(other.grant)).toMatchObject({ kind: "accepted" });
    await running(world, { tenantId: await world.newTenant("initech") });
    writing.release();
    expect(await completion).toMatchObject({ kind: "accepted" });
    await dropping;
    expect(await tables()).toEqual([]);
  });

  it("does not even begin while somebody's long transaction uses history", async () => {
    expect(await findLongUser(world.db, 0)).toBeUndefined();
    const reader = await world.stranger();
    await reader.query("select count(*) from run");
    expect(await findLongUser(world.db, 0)).toMatchObject({ pid: expect.any(Number) });
    expect(await findLongUser(world.db, 3_600_000)).toBeUndefined();
    await reader.commit();
  });
});

describe("a keeper and a backfill of the same week", () => {
  it("when the backfill has read the old floor, the keeper waits for it, sees its run and keeps the week", async () => {
    const scheduleId = await world.newSchedule({ rule: AFTER_MIDNIGHT });
    const operationId = await begin(world, scheduleId, floorAt + DAY_MS, floorAt + DAY_MS + 60_000);
    const held = world.faults.hold("backfill:written");
    const stepping = step(world, operationId);
    await held.arrived;
    const pass = keeper();
    await settle(pass);
    // The floor has passed the week, but somebody is under way who may not know.
    expect(await floorNow()).toBeGreaterThan(floorAt);
    expect(await tables()).toMatchObject([{ attached: true }, { attached: true }]);
    held.release();
    await stepping;
    await settle(pass);
    expect(await tables()).toMatchObject([{ attached: true }, { attached: true }]);
    const [grant] = await world.claimAll();
    expect(await world.complete(grant!)).toMatchObject({ kind: "accepted" });
    expect(await history(world, scheduleId)).toMatchObject([{ state: "succeeded", trigger: "backfill" }]);
  });

  it("when the keeper was first, the backfill makes nothing below the floor, and a new one is refused", async () => {
    const scheduleId = await world.newSchedule({ rule: AFTER_MIDNIGHT });
    const range = [floorAt + DAY_MS, floorAt + DAY_MS + 60_000] as const;
    const operationId = await begin(world, scheduleId, ...range);
    const held = world.faults.hold("drop-history:noted");
    const dropping = settleAll();
    await held.arrived;
    await step(world, operationId);
    await expect(begin(world, scheduleId, ...range)).rejects.toThrow(/further back than history is kept/);
    held.release();
    await dropping;
    expect(await history(world, scheduleId)).toEqual([]);
    expect(await tables()).toEqual([]);
  });
});

describe("a keeper and a replay of the same week", () => {
  /** A run of that week that failed for good, whose letter somebody has dismissed. */
  async function dismissed(): Promise<Uuid> {
    const scheduleId = await world.newSchedule({ rule: AFTER_MIDNIGHT });
    await step(world, await begin(world, scheduleId, floorAt + DAY_MS, floorAt + DAY_MS + 60_000));
    const [grant] = await world.claimAll();
    await failForGood(world, grant!);
    const { runId } = grant!;
    await world.admin.query("update run set finished_at = scheduled_at + interval '1 minute' where id = $1", [runId]);
    await world.admin.query(
      "update dead_letter set resolved_at = now(), resolution = 'dismissed', resolved_by = 'test' where run_id = $1",
      [runId],
    );
    return runId;
  }
  const replay = (runId: Uuid) =>
    replayRun(world.authority, { tenantId: world.tenantId, actor: "test", runId, reason: null });

  it("when the replay has read the old floor, the keeper waits for it, sees its run and keeps the week", async () => {
    const runId = await dismissed();
    const held = world.faults.hold("replay:written");
    const replaying = replay(runId);
    await held.arrived;
    const pass = keeper();
    await settle(pass);
    expect(await floorNow()).toBeGreaterThan(floorAt);
    expect(await tables()).toMatchObject([{ attached: true }, { attached: true }]);
    held.release();
    expect(await replaying).toMatchObject({ kind: "replayed" });
    await settle(pass);
    expect(await tables()).toMatchObject([{ attached: true }, { attached: true }]);
    expect(await world.run(runId)).toMatchObject({ state: "open" });
  });

  it("when the keeper was first, the replay is told that the run is gone", async () => {
    const runId = await dismissed();
    const held = world.faults.hold("drop-history:noted");
    const dropping = settleAll();
    await held.arrived;
    expect(await replay(runId)).toEqual({ kind: "history-removed" });
    held.release();
    await dropping;
    expect(await tables()).toEqual([]);
  });
});

describe("small tables", () => {
  it("forget request keys, audit events and ended operations by their age, and nothing that is young or open", async () => {
    const { admin, tenantId } = world;
    await admin.query(
      `insert into request_key (scope, key, request_sha256, subject, created_at)
       select $1, 'k' || days, sha256('x'), gen_random_uuid(), now() - days * interval '1 day' from unnest('{1,6,8}'::int[]) days`,
      [tenantId],
    );
    await admin.query(
      `insert into audit_event (tenant_id, at, actor, action, subject)
       select $1, now() - days * interval '1 day', 't', 'a', days::text from unnest('{500,401,399,1}'::int[]) days`,
      [tenantId],
    );
    for (const [n, days, state] of [
      [1, 40, "done"],
      [2, 20, "done"],
      [3, 40, "working"],
    ] as const) {
      await admin.query(
        `insert into operation (id, tenant_id, kind, state, arguments, actor, reason, finished_at)
         values ($1, $2, 'backfill', $4, '{}', 't', $5, case when $4 = 'done' then now() - $3 * interval '1 day' end)`,
        [mintId(Date.now() - days * DAY_MS, n), tenantId, days, state, String(n)],
      );
    }
    await settle();
    const left = async (text: string) => (await admin.query(text)).rows.map((row) => row.x);
    expect(await left("select key as x from request_key order by 1")).toEqual(["k1", "k6"]);
    expect(await left("select subject as x from audit_event where actor = 't' order by id")).toEqual(["399", "1"]);
    expect(await left("select reason as x from operation order by 1")).toEqual(["2", "3"]);
    await admin.query("delete from operation");
  });
});
