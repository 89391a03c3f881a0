import { afterEach, beforeEach, expect, test } from "vitest";
import { publishOutbox } from "../../../src/authority/dispatch/publish.ts";
import { repairUsage } from "../../../src/authority/repair/usage-drift.ts";
import { createTenant } from "../../../src/authority/tenants/create-tenant.ts";
import { type Quota, setQuota } from "../../../src/authority/tenants/set-quota.ts";
import { type TenantChange, updateTenant } from "../../../src/authority/tenants/update-tenant.ts";
import type { Uuid } from "../../../src/kernel/ids.ts";
import { findRun } from "../../../src/store/reads/runs.ts";
import { createWorld, type World } from "../../support/world.ts";
import { allow, bear } from "../scenes.ts";

let world: World;
beforeEach(async () => {
  world = await createWorld();
});
afterEach(async () => {
  await world.check();
  await world.close();
});

const change = (what: TenantChange) =>
  updateTenant(world.authority, { tenantId: world.tenantId, actor: "key_ops", change: what });
const suspend = () => change({ status: "suspended" });
const resume = () => change({ status: "active" });
const limit = (maxRunning: number | null) =>
  setQuota(world.authority, {
    tenantId: world.tenantId,
    actor: "key_ops",
    class: "short",
    quota: { maxRunning, startRatePerSecond: null, weight: 1, onInfeasible: "warn" } as Quota,
  });
const published = async () => (await publishOutbox(world.authority, new Map())).rows.length;
const heldBy = async (runId: Uuid) => (await findRun(world.db, world.tenantId, runId))?.heldBy;
const limits = async () =>
  (
    await world.admin.query("select class, max_running from usage where tenant_id = $1 order by class", [
      world.tenantId,
    ])
  ).rows;
const runsOf = async (scheduleId: Uuid, agosMs: readonly number[]) => {
  const runs: Uuid[] = [];
  for (const agoMs of agosMs) runs.push(await bear(world, scheduleId, agoMs));
  return runs;
};

test("of a suspended tenant nothing starts, what became due waits as runs, and all of it starts once it is resumed", async () => {
  const scheduleId = await world.newSchedule(allow());
  await suspend();
  const runs = await runsOf(scheduleId, [30_000, 20_000, 10_000]);
  expect(await published()).toBe(0);
  expect(await world.claimAll()).toEqual([]);
  for (const runId of runs) expect(await heldBy(runId)).toBe("suspended");
  await resume();
  await world.makeAvailable();
  expect((await world.claimAll()).map((grant) => grant.runId).sort()).toEqual(runs.toSorted());
});

test("what runs when its tenant is suspended goes on and is accepted", async () => {
  await bear(world, await world.newSchedule(), 10_000);
  const [grant] = await world.claimAll();
  await suspend();
  expect(await world.complete(grant!)).toMatchObject({ kind: "accepted" });
});

test("what has waited for the resume says so, and does not count as late of our doing", async () => {
  const scheduleId = await world.newSchedule(allow());
  await suspend();
  const [waited] = await runsOf(scheduleId, [20_000]);
  await resume();
  const [punctual] = await runsOf(scheduleId, [10_000]);
  const labels = async (id: Uuid) =>
    (await world.admin.query("select held_by from live_run where id = $1", [id])).rows[0];
  expect([await labels(waited!), await labels(punctual!)]).toEqual([{ held_by: "suspended" }, { held_by: "none" }]);
});

test("however many have waited, also of one instant, each of them says so, but for those that somebody holds", async () => {
  const scheduleId = await world.newSchedule(allow());
  await suspend();
  await world.admin.query(
    `insert into live_run (id, scheduled_at, schedule_id, tenant_id, class, lane, revision, state, guard, not_before, due_at,
                           admitted_at, budget_from)
     select id, 'epoch', $2, $1, case when n % 5 = 0 then 'long' else 'short' end, 1, 1, 'queued', id, now(), now(), now(), now()
       from (select n, gen_random_uuid() as id from generate_series(1, 2500) n) made`,
    [world.tenantId, scheduleId],
  );
  const stranger = await world.stranger();
  await stranger.query("select 1 from live_run where class = 'long' limit 1 for update");
  await resume();
  await stranger.commit();
  const { rows } = await world.admin.query("select held_by, count(*)::int as n from live_run group by 1 order by 1");
  await world.admin.query("delete from live_run");
  expect(rows).toEqual([
    { held_by: "none", n: 1 },
    { held_by: "suspended", n: 2_499 },
  ]);
});

test("resuming brings the quota back, also one that was set meanwhile", async () => {
  await limit(7);
  await suspend();
  expect(await limits()).toEqual(
    ["long", "memory", "remote", "short"].map((name) => ({ class: name, max_running: 0 })),
  );
  await resume();
  expect((await limits()).find((row) => row.class === "short")).toMatchObject({ max_running: 7 });
  await suspend();
  await limit(3);
  expect((await limits()).every((row) => row.max_running === 0)).toBe(true);
  await resume();
  expect((await limits()).map((row) => row.max_running)).toEqual([null, null, null, 3]);
});

test("a usage row that is made while its tenant is suspended starts nothing", async () => {
  await suspend();
  await world.admin.query("delete from usage where tenant_id = $1", [world.tenantId]);
  await bear(world, await world.newSchedule(), 10_000);
  expect(await world.claimAll()).toEqual([]);
  await repairUsage(world.authority, 10);
  expect(await world.claimAll()).toEqual([]);
});

test("a claim that was under way when its tenant was suspended for the first time cannot make it a row without a limit", async () => {
  const runs = await runsOf(await world.newSchedule(allow()), [20_000, 10_000]);
  const stranger = await world.stranger();
  // Somebody's first claim of the tenant has just made its row, and has not committed.
  await stranger.query("insert into usage (tenant_id, class) values ($1, 'short')", [world.tenantId]);
  const suspending = suspend();
  await world.lockWaits();
  await stranger.commit();
  await suspending;
  expect(runs).toHaveLength(2);
  expect(await world.claimAll()).toEqual([]);
});

test("a quota that is being set waits for the suspension, and does not undo it", async () => {
  await limit(5);
  const stranger = await world.stranger();
  await stranger.query("select 1 from usage where tenant_id = $1 for update", [world.tenantId]);
  const suspending = suspend();
  await world.lockWaits(1);
  const setting = limit(9);
  await world.lockWaits(2);
  await stranger.commit();
  await Promise.all([suspending, setting]);
  expect((await limits()).every((row) => row.max_running === 0)).toBe(true);
});

test("another tenant is not touched by it", async () => {
  const { tenantId } = await createTenant(world.authority, { name: "another" });
  await suspend();
  await bear(world, await world.newSchedule({ tenantId }), 10_000);
  expect(await world.claimAll()).toHaveLength(1);
});

test("a change is on record once, and the same change again is none", async () => {
  expect(await change({ status: "suspended", allowedJobs: ["a.job"] })).toMatchObject({ kind: "updated" });
  expect(await change({ status: "suspended", allowedJobs: ["a.job"] })).toMatchObject({ kind: "unchanged" });
  const { rows } = await world.admin.query(
    "select actor, before, after from audit_event where action = 'tenant.update' order by id",
  );
  expect(rows).toEqual([
    {
      actor: "key_ops",
      before: { status: "active", allowedJobs: null },
      after: { status: "suspended", allowedJobs: ["a.job"] },
    },
  ]);
});

test("two tenants that take one name at once: one has it, the other is told who", async () => {
  const { tenantId } = await createTenant(world.authority, { name: "another" });
  const stranger = await world.stranger();
  await stranger.query("update tenant set name = 'Acme' where id = $1", [tenantId]);
  const renaming = change({ name: "Acme" });
  await world.lockWaits();
  await stranger.commit();
  expect(await renaming).toEqual({ kind: "name-taken", tenantId });
  expect(await change({ name: "Acme" })).toEqual({ kind: "name-taken", tenantId });
});
