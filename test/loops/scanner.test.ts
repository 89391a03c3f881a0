import { afterEach, beforeEach, expect, test } from "vitest";
import type { Authority } from "../../src/authority/authority.ts";
import { bucketMask, bucketsOf } from "../../src/domain/rendezvous.ts";
import { systemClock } from "../../src/kernel/clock.ts";
import { BUCKETS, bucketOf, mintId, type Uuid } from "../../src/kernel/ids.ts";
import { createLoop } from "../../src/kernel/loop.ts";
import { publishNothing } from "../../src/loops/publish-marked.ts";
import { createScanner } from "../../src/loops/scanner.ts";
import { createWindows } from "../../src/loops/windows.ts";
import { dueSchedule, until } from "../support/system.ts";
import { createWorld, type World } from "../support/world.ts";

let world: World;

beforeEach(async () => {
  world = await createWorld();
});
afterEach(async () => {
  await world.check();
  await world.close();
});

/** A scanner of its own process, without Redis. */
function scannerOf(authority: Authority = world.authority, id: Uuid = mintId(Date.now(), 0)) {
  const windows = createWindows(authority, { available: () => false });
  return { id, ...createScanner({ authority, id, windows, publishMarked: publishNothing }) };
}

const signal = new AbortController().signal;

async function runsOf(scheduleId?: Uuid): Promise<number> {
  const { rows } = await world.admin.query(
    "select count(*)::int as n from run where $1::uuid is null or schedule_id = $1",
    [scheduleId ?? null],
  );
  return rows[0].n;
}

/** Schedules that are due for the first time `dueAgoMs` ago, one run each. */
async function dueSchedules(count: number, dueAgoMs: number): Promise<Uuid[]> {
  const ids: Uuid[] = [];
  for (let n = 0; n < count; n++) ids.push(await dueOnce(dueAgoMs));
  return ids;
}

/** Moves them to one instant, all at once. */
async function makeDue(ids: readonly Uuid[], agoMs: number): Promise<void> {
  await world.admin.query(
    `update schedule_cursor set next_run_at = at, next_due_at = at
       from (select date_trunc('milliseconds', clock_timestamp() - $2::int * interval '1 ms') as at) moment
      where schedule_id = any($1::uuid[])`,
    [ids, agoMs],
  );
}

function dueOnce(dueAgoMs: number): Promise<Uuid> {
  return dueSchedule(world.authority, world.admin, {
    tenantId: world.tenantId,
    runs: 1,
    job: "test.noop",
    dueAgoMs,
  });
}

test("a scanner knows the next instant to the millisecond, and sleeps until then, not for a poll interval", async () => {
  const id = await dueOnce(-2_000);
  const scanner = scannerOf();
  const { did, nextAt } = await scanner.pass(signal);
  expect(did).toBe(0);
  const { rows } = await world.admin.query("select next_due_at from schedule_cursor where schedule_id = $1", [id]);
  expect(Math.abs(nextAt! - rows[0].next_due_at.getTime())).toBeLessThan(50);

  // A loop that would poll once a minute only: what brings the run in time is the timer.
  const loop = createLoop({ ...scanner, everyMs: 60_000, idleMs: 60_000 }, world.authority);
  await loop.start();
  await until("the run is there", async () => (await runsOf(id)) === 1, 5_000);
  await loop.stop();
});

test("what became due while the scanner looked elsewhere is found in its next moment, not after a poll interval", async () => {
  const id = await dueOnce(-60_000);
  const db = world.authority.db;
  let moved = false;
  // Between the look at what is due and the look at what comes next, the instant passes.
  const authority: Authority = {
    ...world.authority,
    db: {
      ...db,
      async query(statement, values) {
        const rows = await db.query(statement, values);
        if (statement.name === "cursors_find_on_time" && !moved) {
          moved = true;
          const due = await world.admin.query(
            `update schedule_cursor set next_due_at = date_trunc('milliseconds', clock_timestamp()) + interval '2 ms'
              where schedule_id = $1 returning next_due_at`,
            [id],
          );
          await world.passes(due.rows[0].next_due_at.getTime());
        }
        return rows as never;
      },
    },
  };
  const { did, nextAt } = await scannerOf(authority).pass(signal);
  expect(did).toBe(0);
  expect(nextAt).toBeDefined();
  expect(nextAt! - systemClock.now()).toBeLessThan(100);
});

test("two scanners on the same buckets make every instant once", async () => {
  const ids = await dueSchedules(40, 0);
  // Both believe to be alone.
  const first = scannerOf(world.authority);
  const second = scannerOf(world.another());
  await first.pass(signal);
  await world.admin.query("delete from scanner");
  await second.pass(signal);
  await world.admin.query("delete from scanner");
  for (const id of ids) expect(await runsOf(id)).toBe(1);

  const more = await dueSchedules(40, 0);
  await Promise.all([first.pass(signal), second.pass(signal), first.pass(signal), second.pass(signal)]);
  for (const id of more) expect(await runsOf(id)).toBe(1);
  expect((await world.outbox()).flatMap((row) => row.runs)).toHaveLength(80);
});

test("live scanners share the buckets out, none twice; one that comes or goes moves only its share", () => {
  const ids = Array.from({ length: 4 }, () => mintId(Date.now(), 0));
  const owners = (live: Uuid[]) => {
    const of = new Map(live.flatMap((id) => bucketsOf(id, live).map((bucket) => [bucket, id] as const)));
    expect(of.size).toBe(BUCKETS);
    expect(live.reduce((sum, id) => sum + bucketsOf(id, live).length, 0)).toBe(BUCKETS);
    return of;
  };
  const all = owners(ids);
  const without = owners(ids.slice(1));
  for (const [bucket, owner] of all) if (owner !== ids[0]) expect(without.get(bucket)).toBe(owner);
  expect(bucketMask([0, 3])).toMatch(/^10010{1020}$/);
});

test("a scanner that dies leaves its buckets to the others when its lease ends, and what is overdue by two seconds before", async () => {
  const dead = scannerOf();
  let elapsedMs = 0;
  const clock = { ...systemClock, monotonic: () => systemClock.monotonic() + elapsedMs };
  const heir = scannerOf({ ...world.authority, clock });
  await dead.pass(signal);
  await heir.pass(signal);
  const ofDead = new Set(bucketsOf(dead.id, [dead.id, heir.id]));
  const ids = await dueSchedules(40, -3_600_000);
  const orphans = ids.filter((id) => ofDead.has(bucketOf(id)));
  expect(orphans.length).toBeGreaterThan(2);
  expect(orphans.length).toBeLessThan(40);
  const [old] = orphans;
  await makeDue(ids, 0);
  await makeDue([old!], 2_500);

  elapsedMs = 2_000;
  await heir.pass(signal);
  for (const id of ids) expect(await runsOf(id)).toBe(orphans.includes(id) && id !== old ? 0 : 1);

  // Its lease has ended.
  await world.admin.query("update scanner set expires_at = clock_timestamp() - interval '1 ms' where id = $1", [
    dead.id,
  ]);
  elapsedMs = 5_000;
  await heir.pass(signal);
  for (const id of ids) expect(await runsOf(id)).toBe(1);
});

test("work that is overdue is taken by whoever comes, also out of another's buckets", async () => {
  const owner = scannerOf();
  const other = scannerOf(world.another());
  await owner.pass(signal);
  await other.pass(signal);
  const ids = await dueSchedules(10, 15_000);
  const fresh = scannerOf(world.another());
  await fresh.pass(signal);
  expect(await runsOf()).toBe(ids.length);
});

test("a schedule that cannot be computed does not stop the others", async () => {
  const [bad, ...good] = await dueSchedules(5, 0);
  await world.admin.query(
    "update schedule_revision set definition = jsonb_set(definition::jsonb, '{rule}', $2) where schedule_id = $1",
    [bad, JSON.stringify({ kind: "cron", expression: "0 0 * * *", zone: "Mars/Olympus" })],
  );
  const scanner = scannerOf(world.another());
  await scanner.pass(signal);
  for (const id of good) expect(await runsOf(id)).toBe(1);
  const { rows } = await world.admin.query(
    "select fault is not null as faulty, next_due_at from schedule_cursor where schedule_id = $1",
    [bad],
  );
  expect(rows).toEqual([{ faulty: true, next_due_at: null }]);
});
