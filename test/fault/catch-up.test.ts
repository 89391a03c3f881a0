import { expect, test } from "vitest";
import type { Uuid } from "../../src/kernel/ids.ts";
import { type ChildNode, spawnNode, until } from "../support/system.ts";
import { createWorld, type World } from "../support/world.ts";

const SCHEDULES = 10;
const MISSED = 1_200;

async function openScene(onTestFinished: (close: () => Promise<void>) => void) {
  const world = await createWorld();
  const children: ChildNode[] = [];
  onTestFinished(async () => {
    for (const child of children) await child.kill();
    await world.check();
    await world.close();
  });
  const spawn = async (): Promise<ChildNode> => {
    const child = await spawnNode({ url: world.url, roles: ["scheduler"] });
    children.push(child);
    return child;
  };
  return { world, spawn };
}

/** Schedules of every second, all of whose missed instants are to run. Answers their first instant. */
async function plant(world: World, count: number, dueAgoMs: number): Promise<{ ids: Uuid[]; firstAt: Date }> {
  const ids: Uuid[] = [];
  for (let n = 0; n < count; n++) {
    ids.push(
      await world.newSchedule({
        rule: { kind: "interval", everyMs: 1_000, anchorAt: 0 },
        overlap: { policy: "allow" },
        misfire: { policy: "all", graceMs: 10_000, maxCatchUp: 10_000 },
      }),
    );
  }
  const { rows } = await world.admin.query(
    `update schedule_cursor set next_run_at = at, next_due_at = at
       from (select date_trunc('second', clock_timestamp()) - $2::int * interval '1 ms' as at) m
      where schedule_id = any($1) returning at`,
    [ids, dueAgoMs],
  );
  return { ids, firstAt: rows[0].at };
}

async function made(world: World): Promise<number> {
  return (await world.admin.query("select count(*)::int as n from run")).rows[0].n;
}

const behind = async (world: World) =>
  (
    await world.admin.query(
      "select exists (select 1 from schedule_cursor where next_due_at < clock_timestamp() - interval '2 seconds') as yes",
    )
  ).rows[0].yes as boolean;

/** From the first instant to the cursor, every one of them is one run; none was skipped, none is missing. */
async function expectEverySecond(world: World, ids: readonly Uuid[], firstAt: Date): Promise<void> {
  const { rows } = await world.admin.query(
    `select c.schedule_id, count(*)::int as runs, count(*) filter (where r.state = 'skipped')::int as skipped,
            min(r.scheduled_at) as first_at,
            extract(epoch from max(r.scheduled_at) - min(r.scheduled_at))::int + 1 as instants,
            extract(epoch from c.next_run_at - max(r.scheduled_at))::int as ahead,
            (select count(*)::int from skip_range k where k.schedule_id = c.schedule_id) as ranges
       from schedule_cursor c join run r using (schedule_id)
      where c.schedule_id = any($1) group by c.schedule_id, c.next_run_at`,
    [ids],
  );
  expect(rows).toHaveLength(ids.length);
  for (const row of rows) {
    expect(row).toMatchObject({ first_at: firstAt, skipped: 0, ranges: 0, ahead: 1 });
    expect(row.runs).toBe(row.instants);
  }
}

test("a scheduler that is killed and started again in the middle of a long catch-up goes on where it was", async ({
  onTestFinished,
}) => {
  const { world, spawn } = await openScene(onTestFinished);
  const { ids, firstAt } = await plant(world, SCHEDULES, MISSED * 1_000);
  let kills = 0;
  for (let before = 0; before < (SCHEDULES * MISSED) / 2; kills++) {
    const child = await spawn();
    await until("it has made some", async () => (await made(world)) > before + 1_000);
    await child.kill();
    before = await made(world);
  }
  expect(kills).toBeGreaterThan(1);
  expect(await behind(world)).toBe(true);
  const last = await spawn();
  await until("all is caught up", async () => !(await behind(world)));
  await last.stop();
  expect(await made(world)).toBeGreaterThanOrEqual(SCHEDULES * MISSED);
  await expectEverySecond(world, ids, firstAt);
});

test("two schedulers catch up side by side: each instant once, and what is on time stays on time", async ({
  onTestFinished,
}) => {
  const { world, spawn } = await openScene(onTestFinished);
  const late = await plant(world, SCHEDULES, 3 * MISSED * 1_000);
  const onTime = await plant(world, 20, -6_000);
  const both = await Promise.all([spawn(), spawn()]);
  await until("all is caught up", async () => !(await behind(world)));
  await until("what is on time has been due for a while", async () => Date.now() > onTime.firstAt.getTime() + 5_000);
  for (const child of both) await child.stop();
  await expectEverySecond(world, late.ids, late.firstAt);
  await expectEverySecond(world, onTime.ids, onTime.firstAt);
  const { rows } = await world.admin.query(
    `select extract(epoch from max(materialized_at - scheduled_at) filter (where schedule_id = any($1)))::float8 as latest,
            extract(epoch from max(materialized_at) filter (where schedule_id = any($2))
                             - min(materialized_at))::float8 as all_of_it
       from run where schedule_id = any($1) or schedule_id = any($2) and scheduled_at < $3`,
    [onTime.ids, late.ids, onTime.firstAt],
  );
  // Behind the others it would wait for as long as all of them take.
  expect(rows[0].latest).toBeLessThan(rows[0].all_of_it / 2);
});
