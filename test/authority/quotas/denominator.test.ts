import { afterEach, beforeEach, expect, it } from "vitest";
import { publishOutbox } from "../../../src/authority/dispatch/publish.ts";
import { endMissedStarts } from "../../../src/authority/repair/missed-starts.ts";
import { setQuota } from "../../../src/authority/tenants/set-quota.ts";
import { updateTenant } from "../../../src/authority/tenants/update-tenant.ts";
import { createWorld, type World } from "../../support/world.ts";
import { allow, bear, hintsOf } from "../scenes.ts";

/** What was accepted is measured, however overcommitted its class is: nothing leaves the lateness objective's denominator. */

let world: World;
beforeEach(async () => {
  world = await createWorld();
});
afterEach(async () => {
  await world.check();
  await world.close();
});

/** Runs of the class `short` that started, or never will: within 10 s, later, and missed. */
async function measured(heldBy: string) {
  const { lateness, missedStarts } = world.authority.metrics;
  const of = { class: "short", held_by: heldBy } as const;
  const { values } = await lateness.get();
  const value = (name: string, le?: number) =>
    values.find(
      (one) =>
        one.metricName === `punctual_run_lateness_seconds_${name}` &&
        one.labels.held_by === heldBy &&
        (le === undefined || (one.labels as { le?: number }).le === le),
    )?.value ?? 0;
  const missed = (await missedStarts.get()).values.find((one) => one.labels.held_by === of.held_by)?.value ?? 0;
  const inTime = value("bucket", 10);
  return { inTime, late: value("count") - inTime, missed };
}

it("runs that wait for slots of an overcommitted class count as late, each of them", async () => {
  const scheduleId = await world.newSchedule(allow());
  const ids = [];
  for (const ago of [60_000, 50_000, 40_000]) ids.push(await bear(world, scheduleId, ago));
  // They were admitted in time: nobody materialized them late.
  await world.admin.query("update live_run set admitted_at = due_at");
  const hints = (await Promise.all(ids.map((id) => hintsOf(world, id)))).flat();
  // One slot for all of them: the others are put back, and start when it is free.
  for (let n = 0; n < 3; n++) {
    const left = (await world.outbox()).map((row) => row.id);
    const { grants } = await world.claim(n === 0 ? hints : left, { slots: 1 });
    expect(grants).toHaveLength(1);
    await world.complete(grants[0]!);
  }
  expect(await measured("none")).toEqual({ inTime: 0, late: 3, missed: 0 });
  const { rows } = await world.admin.query("select sum(cardinality(lateness))::int as n from rollup_delta");
  expect(rows).toEqual([{ n: 3 }]);
});

it("a run that missed its start deadline is counted beside them, whoever ends it", async () => {
  const scheduleId = await world.newSchedule({ ...allow(), startDeadlineMs: 1_000 });
  const [first, second] = [await bear(world, scheduleId, 60_000), await bear(world, scheduleId, 50_000)];
  expect((await world.claim(await hintsOf(world, first))).grants).toEqual([]);
  expect(await endMissedStarts(world.authority, 10)).toBe(1);
  expect((await world.run(second)).skip_reason).toBe("start-deadline");
  expect(await measured("none")).toEqual({ inTime: 0, late: 0, missed: 2 });
});

it("a run that missed its start deadline while its tenant was suspended is not counted as missed of our doing", async () => {
  const scheduleId = await world.newSchedule({ ...allow(), startDeadlineMs: 1_000 });
  await updateTenant(world.authority, { tenantId: world.tenantId, actor: "key_ops", change: { status: "suspended" } });
  await bear(world, scheduleId, 60_000);
  expect(await endMissedStarts(world.authority, 10)).toBe(1);
  expect([(await measured("none")).missed, (await measured("suspended")).missed]).toEqual([0, 1]);
});

it("what a limit of the tenant's own held back is measured too, under its own name", async () => {
  await setQuota(world.authority, {
    tenantId: world.tenantId,
    actor: "key_ops",
    class: "short",
    quota: { maxRunning: 1, startRatePerSecond: null, weight: 1, onInfeasible: "accept" },
  });
  const scheduleId = await world.newSchedule(allow());
  for (const ago of [60_000, 50_000]) await bear(world, scheduleId, ago);
  await world.admin.query("update live_run set admitted_at = due_at");
  const [one] = await world.claimAll();
  await publishOutbox(world.authority, new Map());
  await world.complete(one!);
  await world.makeAvailable();
  expect(await world.claimAll()).toHaveLength(1);
  expect(await measured("none")).toEqual({ inTime: 0, late: 1, missed: 0 });
  expect(await measured("tenant-limit")).toEqual({ inTime: 0, late: 1, missed: 0 });
});
