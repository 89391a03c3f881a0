import { afterEach, beforeEach, expect, test } from "vitest";
import { systemClock } from "../../src/kernel/clock.ts";
import type { Pass } from "../../src/kernel/loop.ts";
import { createLeaseSweeper } from "../../src/loops/lease-sweeper.ts";
import { bear, liveOf, running, stateOf } from "../authority/scenes.ts";
import { createWorld, type World } from "../support/world.ts";

const LEASE = { ttlMs: 60_000, heartbeatMs: 10_000, marginMs: 5_000 };
const AGO_MS = 200_000;
const signal = new AbortController().signal;

let world: World;
let sweeper: Pass;
/** What the process's and the database's clock have moved by, in the sweeper's eyes. */
let elapsedMs: number;
let serverStartedMs: number;

beforeEach(async () => {
  world = await createWorld({ settings: { lease: LEASE, lockTimeoutMs: 500 } });
  // Long ago, so that a sweeper may have watched since.
  elapsedMs = -AGO_MS;
  serverStartedMs = 0;
  const { db } = world.authority;
  sweeper = createLeaseSweeper({
    authority: {
      ...world.authority,
      clock: { ...systemClock, monotonic: () => systemClock.monotonic() + elapsedMs },
      db: {
        ...db,
        async query(statement, values) {
          const rows = await db.query<Record<string, number>>(statement, values);
          if (statement.name === "watch_read") {
            rows[0]!.now! += elapsedMs;
            rows[0]!.started! += serverStartedMs;
          }
          return rows as never;
        },
      },
    },
  });
});
afterEach(async () => {
  await world.check();
  await world.close();
});

/** A sweeper that has been awake for so long that it forgives nothing any more. */
async function beAwake(): Promise<void> {
  expect(await sweepFor(AGO_MS)).toBe(0);
}

/** Time goes by, in steps short enough that the sweeper counts as awake all the while. */
async function sweepFor(ms: number): Promise<number> {
  let did = 0;
  for (let passed = 0; passed < ms; passed += 5_000) {
    elapsedMs += 5_000;
    did += (await sweeper.pass(signal)).did;
  }
  return did;
}

test("an attempt whose lease has run out is ended and tried again", async () => {
  await beAwake();
  const { grant } = await running(world, { retry: { maxAttempts: 3, maxElapsedMs: 86_400_000, baseMs: 1, capMs: 1 } });
  await world.expireLease(grant.runId);
  expect((await sweeper.pass(signal)).did).toBe(1);
  expect(await stateOf(world, grant.runId)).toBe("retrying");
  expect(await liveOf(world, grant.runId)).toMatchObject({ expiries: 1 });
});

test("a sweeper that has just begun forgives for one term: nobody can know what happened before", async () => {
  elapsedMs = 0;
  const { grant } = await running(world);
  await world.expireLease(grant.runId);
  expect((await sweeper.pass(signal)).did).toBe(0);
  expect(await sweepFor(50_000)).toBe(0);
  expect(await stateOf(world, grant.runId)).toBe("running");
  expect(await sweepFor(15_000)).toBe(1);
  // Its worker is gone indeed, but the lapse is not held against the run.
  expect(await liveOf(world, grant.runId)).toMatchObject({ state: "retrying", expiries: 0 });
});

const GAPS: Record<string, () => void> = {
  "the sweeper was away for more than a heartbeat": () => {
    elapsedMs += 11_000;
  },
  "PostgreSQL was started anew": () => {
    serverStartedMs += 1_000;
  },
};
for (const [gap, happens] of Object.entries(GAPS)) {
  test(`amnesty: after ${gap}, no lease is expired for one term`, async () => {
    await beAwake();
    const { grant } = await running(world);
    await world.expireLease(grant.runId);
    happens();
    expect((await sweeper.pass(signal)).did).toBe(0);
    expect(await sweepFor(50_000)).toBe(0);
    expect(await sweepFor(15_000)).toBe(1);
  });
}

test("two sweepers at once end an attempt once", async () => {
  await beAwake();
  const { grant } = await running(world);
  await world.expireLease(grant.runId);
  const did = await Promise.all([sweeper.pass(signal), sweeper.pass(signal)]);
  expect(did.map((one) => one.did).toSorted()).toEqual([0, 1]);
});

test("a stranger's lock on the run next in line holds up the end of its own schedule's lease only", async () => {
  await beAwake();
  const retry = { maxAttempts: 1, maxElapsedMs: 86_400_000, baseMs: 1, capMs: 1 };
  const [held, free] = [await running(world, { retry }), await running(world, { retry })];
  const next = await bear(world, held.scheduleId, 30_000);
  for (const { grant } of [held, free]) await world.expireLease(grant.runId);
  const stranger = await world.stranger();
  await stranger.query("select 1 from live_run where id = $1 for update", [next]);
  expect((await sweeper.pass(signal)).did).toBe(1);
  expect(await stateOf(world, free.grant.runId)).toBe("failed");
  await stranger.rollback();
  expect((await sweeper.pass(signal)).did).toBe(1);
  expect(await stateOf(world, next)).toBe("queued");
});
