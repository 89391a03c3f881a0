import { afterEach, beforeEach, expect, test } from "vitest";
import { publishOutbox } from "../../src/authority/dispatch/publish.ts";
import { type Quota, setQuota } from "../../src/authority/tenants/set-quota.ts";
import { mintId } from "../../src/kernel/ids.ts";
import { createWindows } from "../../src/loops/windows.ts";
import { dueSchedule } from "../support/system.ts";
import { createWorld, type World } from "../support/world.ts";

let world: World;
beforeEach(async () => {
  world = await createWorld();
  const id = await dueSchedule(world.authority, world.admin, {
    tenantId: world.tenantId,
    runs: 20,
    job: "test.noop",
  });
  await world.materialize([id]);
});
afterEach(async () => {
  await world.check();
  await world.close();
});

const UNLIMITED: Quota = { maxRunning: null, startRatePerSecond: null, weight: 1, onInfeasible: "warn" };
const set = (change: Partial<Quota>) =>
  setQuota(world.authority, {
    tenantId: world.tenantId,
    actor: "key_ops",
    class: "short",
    quota: { ...UNLIMITED, ...change },
  });
const publish = async () => (await publishOutbox(world.authority, new Map())).rows.length;

test("a limit set before the first start holds from it on", async () => {
  expect(await set({ maxRunning: 3 })).toEqual({ kind: "set", before: undefined, version: 1 });
  expect(await publish()).toBe(3);
  expect(await world.claimAll()).toHaveLength(3);
});

test("a limit lowered below what runs stops nobody and starts nobody, until enough have ended", async () => {
  const grants = await world.claimAll("worker-a", 6);
  expect(grants).toHaveLength(6);
  await set({ maxRunning: 5 });
  await set({ maxRunning: 4 });
  expect(await world.claimAll()).toHaveLength(0);
  for (const grant of grants.slice(0, 2)) expect(await world.complete(grant)).toMatchObject({ kind: "accepted" });
  expect(await publish()).toBe(0);
  expect(await world.claimAll()).toHaveLength(0);
  await world.complete(grants[2]!);
  expect(await publish()).toBe(1);
  expect(await world.claimAll()).toHaveLength(1);
});

test("a raised limit lets more start, and a removed one lets all start", async () => {
  await set({ maxRunning: 2 });
  expect(await world.claimAll()).toHaveLength(2);
  await set({ maxRunning: 5 });
  expect(await world.claimAll()).toHaveLength(3);
  expect(await set({})).toMatchObject({ before: { maxRunning: 5 } });
  expect(await world.claimAll()).toHaveLength(15);
});

test("a claim that was under way when the limit was set keeps to it", async () => {
  await world.claimAll("worker-a", 1);
  const paused = world.faults.hold("claim:live-locked");
  const claiming = world.claimAll();
  await paused.arrived;
  await set({ maxRunning: 3 });
  paused.release();
  await claiming;
  expect(await world.usage()).toBe(3);
});

test("Redis hears of a start rate, and that it is gone", async () => {
  const heard: unknown[] = [];
  const clock = { ...world.authority.clock, monotonic: () => heard.length * 1_000 };
  const windows = createWindows(
    { ...world.authority, clock },
    {
      available: () => true,
      setRateLimits: async (rates) => void heard.push(rates.map((lane) => lane.rate)),
    },
  );
  await set({ startRatePerSecond: 7 });
  await windows.refresh();
  await set({});
  await windows.refresh();
  expect(heard).toEqual([[{ max: 7, durationMs: 1_000 }], [undefined]]);
});

test("who set what is written down; a tenant that is not there has no quota", async () => {
  await set({ maxRunning: 2, weight: 3 });
  await set({ maxRunning: 4 });
  const { rows } = await world.admin.query(
    "select actor, subject, before, after from audit_event where action = 'tenant.set-quota' order by id",
  );
  expect(rows).toEqual([
    { actor: "key_ops", subject: "short", before: null, after: { ...UNLIMITED, maxRunning: 2, weight: 3 } },
    {
      actor: "key_ops",
      subject: "short",
      before: { ...UNLIMITED, maxRunning: 2, weight: 3, version: 1 },
      after: { ...UNLIMITED, maxRunning: 4 },
    },
  ]);
  const nobody = { tenantId: mintId(0, 0), actor: "key_ops", class: "short" as const, quota: UNLIMITED };
  expect(await setQuota(world.authority, nobody)).toEqual({ kind: "no-tenant" });
});
