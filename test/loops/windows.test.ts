import { afterEach, beforeEach, expect, test } from "vitest";
import { announceWorker } from "../../src/authority/dispatch/presence.ts";
import { recoverAuthority } from "../../src/authority/recovery/recover.ts";
import { LANES, type Lane } from "../../src/domain/states.ts";
import { mintId, type Uuid } from "../../src/kernel/ids.ts";
import { createWindows } from "../../src/loops/windows.ts";
import { createWorld, type World } from "../support/world.ts";

const SLOTS = 50;
/** Twice the slots; a quarter of it for one tenant. */
const WINDOW = 100;

let world: World;
beforeEach(async () => {
  world = await createWorld();
  const slots = { short: { slots: SLOTS, p95Ms: 1_000 } };
  await announceWorker(world.authority, { id: mintId(Date.now(), 0), name: "worker-a", slots, version: "0" });
});
afterEach(() => world.close());

const runs = (count: number) => Array.from({ length: count }, () => mintId(Date.now(), 0));
const row = (tenantId: Uuid, lane: Lane, count: number) => ({
  tenantId,
  class: "short",
  lane,
  availableAt: Date.now(),
  runs: runs(count),
});

/** Runs that stand in Redis and that nobody has claimed yet. */
async function published(tenantId: Uuid, lane: Lane, count: number): Promise<void> {
  await world.admin.query(
    `insert into outbox (kind, tenant_id, class, lane, available_at, runs, published_at, publish_no)
     select 'run', $1, 'short', $2, clock_timestamp(), array[r], clock_timestamp(), 1 from unnest($3::uuid[]) r`,
    [tenantId, lane, runs(count)],
  );
}

async function refreshed() {
  const windows = createWindows(world.authority, { available: () => true });
  await windows.refresh();
  return windows;
}

test("a window that is full of catch-up still has room for what is on time, and none for more catch-up", async () => {
  for (let n = 0; n < 4; n++) await published(await world.newTenant(`late ${n}`), LANES.late, WINDOW / 4);
  await published(world.tenantId, LANES.late, 30);
  const windows = await refreshed();
  expect(windows.publishNow(row(world.tenantId, LANES.late, 1))).toBe(false);
  expect(windows.publishNow(row(world.tenantId, LANES.normal, 20))).toBe(true);
  expect(windows.publishNow(row(world.tenantId, LANES.strict, 6))).toBe(true);
  // Its own quarter is full now, of work that is on time.
  expect(windows.publishNow(row(world.tenantId, LANES.normal, 1))).toBe(false);
  for (let n = 0; n < 3; n++) windows.publishNow(row(await world.newTenant(`on time ${n}`), LANES.normal, 24));
  // And so is the window.
  expect(windows.publishNow(row(await world.newTenant("one more"), LANES.normal, 24))).toBe(false);
});

test("catch-up goes to Redis at birth only as far as a quarter of the window", async () => {
  for (let n = 0; n < 4; n++) await published(await world.newTenant(`late ${n}`), LANES.late, 6);
  const windows = await refreshed();
  expect(windows.publishNow(row(world.tenantId, LANES.late, 1))).toBe(true);
  expect(windows.publishNow(row(await world.newTenant("one more"), LANES.late, 1))).toBe(false);
});

test("what is on time leaves catch-up only the rest of the window", async () => {
  for (let n = 0; n < 4; n++) await published(await world.newTenant(`on time ${n}`), LANES.normal, WINDOW / 4);
  const windows = await refreshed();
  expect(windows.publishNow(row(world.tenantId, LANES.late, 1))).toBe(false);
});

test("a tenant's own limit counts all of its runs, catch-up too", async () => {
  await world.admin.query("insert into usage (tenant_id, class, running, max_running) values ($1, 'short', 2, 5)", [
    world.tenantId,
  ]);
  await published(world.tenantId, LANES.late, 3);
  const windows = await refreshed();
  expect(windows.publishNow(row(world.tenantId, LANES.normal, 1))).toBe(false);
});

test("a restored copy that nobody has recovered has room for nothing: its original's hints stand in the same Redis", async () => {
  await world.admin.query("update authority_epoch set timeline = timeline + 1");
  const windows = await refreshed();
  expect(windows.publishNow(row(world.tenantId, LANES.normal, 1))).toBe(false);
  const who = { actor: "test", reason: "restored", anyway: false, nothingLost: false };
  expect(await recoverAuthority(world.authority, who)).toMatchObject({ kind: "recovered" });
  expect((await refreshed()).publishNow(row(world.tenantId, LANES.normal, 1))).toBe(true);
});

test("a start rate that was taken away while nobody had recovered the copy is taken away in Redis afterwards", async () => {
  const heard: unknown[][] = [];
  let nowMs = 0;
  const windows = createWindows(
    { ...world.authority, clock: { ...world.authority.clock, monotonic: () => nowMs } },
    { available: () => true, setRateLimits: async (rates) => void heard.push(rates.map((lane) => lane.rate)) },
  );
  const look = () => {
    nowMs += 1_000;
    return windows.refresh();
  };
  const lane = [world.tenantId];
  await world.admin.query("insert into usage (tenant_id, class, start_rate_per_second) values ($1, 'short', 7)", lane);
  await look();
  await world.admin.query("update authority_epoch set timeline = timeline + 1");
  await world.admin.query("update usage set start_rate_per_second = null where tenant_id = $1", lane);
  await look();
  await world.admin.query("update authority_epoch set timeline = timeline - 1");
  await look();
  expect(heard).toEqual([[{ max: 7, durationMs: 1_000 }], [undefined]]);
});

test("a look does not wait for Redis to hear of start rates, and what it has not heard it hears with a later look", async () => {
  let nowMs = 0;
  let answer = () => {};
  const heard: unknown[][] = [];
  const windows = createWindows(
    { ...world.authority, clock: { ...world.authority.clock, monotonic: () => nowMs } },
    {
      available: () => true,
      setRateLimits(rates) {
        heard.push(rates.map((lane) => lane.rate?.max));
        return new Promise((resolve) => {
          answer = resolve;
        });
      },
    },
  );
  const look = (rate: number | null) => {
    nowMs += 1_000;
    return world.admin
      .query(
        `insert into usage (tenant_id, class, start_rate_per_second) values ($1, 'short', $2)
         on conflict (tenant_id, class) do update set start_rate_per_second = excluded.start_rate_per_second`,
        [world.tenantId, rate],
      )
      .then(() => windows.refresh());
  };
  await look(7);
  await look(null);
  expect(heard).toEqual([[7]]);
  answer();
  await look(null);
  expect(heard).toEqual([[7], [undefined]]);
});

test("what tenants' own workers come for is never for Redis, however much room there is", async () => {
  const windows = await refreshed();
  expect(windows.publishNow({ ...row(world.tenantId, LANES.normal, 1), class: "remote" })).toBe(false);
  expect(windows.publishNow(row(world.tenantId, LANES.normal, 1))).toBe(true);
});
