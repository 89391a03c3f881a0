import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { claimRuns } from "../../src/authority/attempts/claim.ts";
import { completeRuns } from "../../src/authority/attempts/complete.ts";
import { expireLeases } from "../../src/authority/attempts/expire.ts";
import { failRuns } from "../../src/authority/attempts/fail.ts";
import { releaseRuns } from "../../src/authority/attempts/release.ts";
import type { Authority } from "../../src/authority/authority.ts";
import { foldRollups } from "../../src/authority/rollups/fold-rollups.ts";
import { forgetRollups } from "../../src/authority/rollups/forget-rollups.ts";
import { leaveToRelay } from "../../src/authority/runs/bear.ts";
import { cancelRuns } from "../../src/authority/runs/cancel.ts";
import { materialize } from "../../src/authority/runs/materialize.ts";
import { runNow } from "../../src/authority/runs/run-now.ts";
import { LATENESS_BOUNDS_MS } from "../../src/domain/rollup.ts";
import type { TestFaultPoints } from "../../src/kernel/faults.ts";
import { createRollupFolder } from "../../src/loops/upkeep/rollup-folder.ts";
import { createRollupKeeper } from "../../src/loops/upkeep/rollup-keeper.ts";
import { readRollups } from "../../src/store/reads/rollups.ts";
import { readWatermark } from "../../src/store/reads/status.ts";
import { bear, failForGood, MINUTE, start } from "../authority/scenes.ts";
import { randomFrom } from "../support/random.ts";
import { createWorld, type World } from "../support/world.ts";

/** What the tables of the authority say by themselves, and a trigger that saw each first start. */
const RECOUNT = `
  with facts as (
    select tenant_id, class, at, 'started' as what from seen_start
    union all select tenant_id, class, finished_at, state from run where state <> 'open'
    union all
    select r.tenant_id, r.class, a.ended_at, 'retried'
      from attempt a join run r on r.scheduled_at = a.scheduled_at and r.id = a.run_id
     where a.outcome is not null and a.ended_at is distinct from r.finished_at)
  select tenant_id, class, date_trunc($1, at, 'UTC') as at,
         count(*) filter (where what = 'started')::int as started, count(*) filter (where what = 'succeeded')::int as succeeded,
         count(*) filter (where what = 'failed')::int as failed, count(*) filter (where what = 'canceled')::int as canceled,
         count(*) filter (where what = 'skipped')::int as skipped, count(*) filter (where what = 'retried')::int as retried
    from facts group by 1, 2, 3 order by 1, 2, 3`;
const SEE_STARTS = `
  create table seen_start (tenant_id uuid, class text, at timestamptz, late_ms float8, held_by text);
  create function see_start() returns trigger language plpgsql as $$ begin
    insert into seen_start values (new.tenant_id, new.class, new.started_at,
      extract(epoch from new.started_at - greatest(new.due_at, new.admitted_at)) * 1000, old.held_by);
    return null;
  end $$;
  create trigger see_start after update on live_run for each row
    when (old.started_at is null and new.started_at is not null) execute function see_start()`;

let world: World;
beforeAll(async () => {
  world = await createWorld();
  await world.admin.query(SEE_STARTS);
});
afterAll(() => world?.close());

async function foldAll(): Promise<void> {
  while ((await foldRollups(world.authority, 100)) > 0);
}

async function expectExact(): Promise<void> {
  for (const [minutes, width] of [
    [1, "minute"],
    [60, "hour"],
  ] as const) {
    const kept = await world.admin.query(
      `select tenant_id, class, at, started, succeeded, failed, canceled, skipped, retried from rollup
        where minutes = $1 order by 1, 2, 3`,
      [minutes],
    );
    expect(kept.rows).toEqual((await world.admin.query(RECOUNT, [width])).rows);
    const seen = (await world.admin.query("select late_ms, held_by from seen_start")).rows;
    const expected = new Array<number>(LATENESS_BOUNDS_MS.length + 1).fill(0);
    for (const { late_ms, held_by } of seen) {
      const bucket = LATENESS_BOUNDS_MS.findIndex((bound) => late_ms < bound);
      if (held_by === "none") expected[bucket < 0 ? LATENESS_BOUNDS_MS.length : bucket]!++;
    }
    const { rows } = await world.admin.query("select lateness from rollup where minutes = $1", [minutes]);
    expect(expected.map((_, i) => rows.reduce((sum, row) => sum + row.lateness[i], 0))).toEqual(expected);
  }
}

describe("rollups", () => {
  it("are what a recount of the runs says, after a storm in which verbs and folders crash", async () => {
    const tenants = [world.tenantId, await world.newTenant("b"), await world.newTenant("c")];
    const schedules = await Promise.all(
      tenants.flatMap((tenantId, i) =>
        (["short", "long"] as const).map(async (class_) => ({
          tenantId,
          scheduleId: await world.newSchedule({
            tenantId,
            class: class_,
            overlap: i === 0 ? { policy: "bufferOne" } : { policy: "allow" },
            retry: { maxAttempts: 3 },
            misfire: { policy: "skip", graceMs: 0 },
          } as never),
        })),
      ),
    );
    await world.admin.query(
      "insert into quota (tenant_id, class, max_running) select id, 'short', 5 from tenant on conflict do nothing",
    );
    const sessions = [1, 2, 3].map((seed) => storm(world.another(), randomFrom(seed), schedules, 130));
    const folders = [4, 5].map((seed) => foldInCrashes(world.another(), randomFrom(seed), 60));
    await Promise.all([...sessions, ...folders]);
    await foldAll();
    const { rows } = await world.admin.query(
      "select min(n) as least from (select sum(started) as n from rollup union all select sum(succeeded) from rollup union all select sum(failed) from rollup union all select sum(canceled) from rollup union all select sum(skipped) from rollup union all select sum(retried) from rollup) all_counts",
    );
    // Who saw nothing proves nothing.
    expect(Number(rows[0].least)).toBeGreaterThan(0);
    await expectExact();
  });

  it("count a start once, however often its claim is repeated", async () => {
    const scheduleId = await world.newSchedule();
    await bear(world, scheduleId, 60_000);
    const ids = (await world.outbox()).map((row) => row.id);
    const claimId = randomUUID();
    await world.claim(ids, { claimId });
    await world.claim(ids, { claimId, repeated: true });
    await foldAll();
    await expectExact();
  });

  it("wait for two folders at once without losing or doubling a count, and say how far they are", async () => {
    const run = await start(world, await bear(world, await world.newSchedule(), 60_000));
    await failForGood(world, run);
    const holding = world.another();
    const { arrived, release } = (holding.faults as TestFaultPoints).hold("fold-rollups:written");
    const first = foldRollups(holding, 100);
    await arrived;
    // The other one finds nothing that is free, and what the first one holds is not counted as settled.
    expect(await foldRollups(world.authority, 100)).toBe(0);
    const [{ asOf }, oldestAt] = [await read(), await oldestDelta()];
    release();
    expect(asOf).toBeLessThan(oldestAt!);
    expect(await first).toBeGreaterThan(0);
    expect(await oldestDelta()).toBeUndefined();
    const settledAt = await readWatermark(world.db);
    expect((await read(settledAt)).asOf).toBe(settledAt);
    await expectExact();
  });

  it("that are older than they are kept are taken away, minutes before hours", async () => {
    const insert = `insert into rollup select gen_random_uuid(), $1, 'short', date_trunc($2, clock_timestamp() - $3 * interval '1 day', 'UTC'),
                           1, 0, 0, 0, 0, 0, array_fill(0, array[17])`;
    for (const [minutes, width] of [
      [1, "minute"],
      [60, "hour"],
    ])
      for (const days of [89, 91, 399, 401]) await world.admin.query(insert, [minutes, width, days]);
    expect(await forgetRollups(world.authority, 2)).toBe(3);
    expect(await createRollupKeeper({ authority: world.authority }).pass(new AbortController().signal)).toEqual({
      did: 1,
      more: false,
    });
    const { rows } = await world.admin.query(
      "select minutes, count(*)::int as n from rollup where at < clock_timestamp() - interval '80 days' group by 1 order by 1",
    );
    expect(rows).toEqual([
      { minutes: 1, n: 1 },
      { minutes: 60, n: 3 },
    ]);
  });

  it("are folded by a loop that goes on at once while there is more", async () => {
    await world.admin.query(
      "insert into rollup_delta (at, tenant_id, class, skipped) select clock_timestamp(), $1, 'memory', 1 from generate_series(1, 5001)",
      [world.tenantId],
    );
    const folder = createRollupFolder({ authority: world.authority });
    const pass = () => folder.pass(new AbortController().signal);
    expect([await pass(), await pass(), await pass()]).toEqual([
      { did: 5000, more: true },
      { did: 1, more: false },
      { did: 0, more: false },
    ]);
    const { rows } = await world.admin.query(
      "select sum(skipped)::int as n from rollup where class = 'memory' and minutes = 1",
    );
    expect(rows[0].n).toBe(5001);
  });
});

async function read(settledAt = Date.now() + MINUTE) {
  const period = { classes: ["short"], resolution: "day", fromAt: 0, toAt: Date.UTC(2100, 0) } as const;
  return readRollups(world.db, world.tenantId, period, settledAt);
}

async function oldestDelta(): Promise<number | undefined> {
  const oldest =
    "select (extract(epoch from at) * 1000)::float8 as at from rollup_delta order by rollup_delta.at limit 1";
  return (await world.admin.query(oldest)).rows[0]?.at;
}

const CRASH = new Error("a crash");
const CRASHES = ["claim:written", "complete:written", "materialize:written", "cancel:written", "fold-rollups:written"];

async function foldInCrashes(authority: Authority, chance: () => number, times: number): Promise<void> {
  for (let n = 0; n < times; n++) {
    if (chance() < 0.3) crashAt(authority, "fold-rollups:written");
    await survive(foldRollups(authority, 1 + Math.floor(chance() * 6)));
  }
}

function crashAt(authority: Authority, point: string): void {
  (authority.faults as TestFaultPoints).once(point, () => {
    throw CRASH;
  });
}

async function survive(work: Promise<unknown>): Promise<void> {
  await work.catch((error) => {
    if (error !== CRASH && error.code !== "busy") throw error;
  });
}

async function storm(
  authority: Authority,
  chance: () => number,
  schedules: readonly { tenantId: string; scheduleId: string }[],
  verbs: number,
): Promise<void> {
  const pick = <T>(items: readonly T[]): T => items[Math.floor(chance() * items.length)]!;
  const running = async () => {
    const { rows } = await world.admin.query(
      'select id as "runId", fence, worker, tenant_id as "tenantId" from live_run where state = \'running\' order by random() limit 4',
    );
    return rows as { runId: string; fence: bigint; worker: string; tenantId: string }[];
  };
  const acts: (() => Promise<unknown>)[] = [
    async () => {
      const { scheduleId } = pick(schedules);
      await world.makeDue(scheduleId, 500);
      return materialize(authority, [scheduleId], leaveToRelay);
    },
    () => runNow(authority, { ...pick(schedules), actor: "storm" }),
    () => runNow(authority, { ...pick(schedules), actor: "storm" }),
    async () => {
      await world.makeAvailable();
      const hints = (await world.outbox()).map((row) => ({ rowId: row.id, epoch: 1 }));
      const slots = { short: 5, long: 5 };
      return claimRuns(authority, { claimId: randomUUID(), worker: "w", slots, hints, repeated: false });
    },
    async () =>
      completeRuns(
        authority,
        (await running()).map((one) => ({ ...one, output: null })),
      ),
    async () =>
      failRuns(
        authority,
        (await running())
          .slice(0, 2)
          .map((one) => ({ ...one, failure: { transient: chance() < 0.7, code: "x", message: "x" } })),
      ),
    async () => releaseRuns(authority, (await running()).slice(0, 1)),
    async () => {
      const ids = (await running()).slice(0, 1).map((one) => one.runId);
      await world.admin.query(
        "update live_run set lease_until = clock_timestamp() - interval '1 s' where id in (select id from live_run where id = any($1) and state = 'running' for update skip locked)",
        [ids],
      );
      return expireLeases(authority, ids, 0);
    },
    async () => {
      const { rows } = await world.admin.query(
        'select id as "runId", tenant_id as "tenantId" from live_run order by random() limit 1',
      );
      return cancelRuns(authority, rows);
    },
  ];
  for (let n = 0; n < verbs; n++) {
    if (chance() < 0.2) crashAt(authority, pick(CRASHES));
    await survive(pick(acts)());
  }
}
