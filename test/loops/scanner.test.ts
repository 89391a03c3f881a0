import { afterEach, beforeEach, expect, test } from "vitest";
import type { Authority } from "../../src/authority/authority.ts";
import { findDueLate, findDueOnTime, findFaultySchedules } from "../../src/authority/runs/due.ts";
import { findToldSchedules } from "../../src/authority/runs/hear-ends.ts";
import { bucketMask, bucketsOf } from "../../src/domain/dispatch/rendezvous.ts";
import { systemClock } from "../../src/kernel/clock.ts";
import { BUCKETS, bucketOf, mintId, type Uuid } from "../../src/kernel/ids.ts";
import { createLoop } from "../../src/kernel/loop.ts";
import { dueSchedule, until } from "../support/system.ts";
import { createWorld, type World } from "../support/world.ts";
import { scannerOf, withClock } from "./scanning.ts";

let world: World;

beforeEach(async () => {
  world = await createWorld();
});
afterEach(async () => {
  await world.check();
  await world.close();
});

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
  const id = await dueOnce(-5_000);
  const scanner = scannerOf(world.authority);
  const begunMs = performance.now();
  const { did, nextAt } = await scanner.pass();
  const tookMs = performance.now() - begunMs;
  expect(did).toBe(0);
  const { rows } = await world.admin.query("select next_due_at from schedule_cursor where schedule_id = $1", [id]);
  // The database's time is known as well as its answer is quick.
  expect(Math.abs(nextAt! - rows[0].next_due_at.getTime())).toBeLessThan(5 + tookMs);

  // A loop that would poll once an hour only: what brings the run is the timer.
  const loop = createLoop({ ...scanner, everyMs: 3_600_000, idleMs: 3_600_000 }, world.authority);
  await loop.start();
  await until("the run is there", async () => (await runsOf(id)) === 1);
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
  const { did, nextAt } = await scannerOf(authority).pass();
  expect(did).toBe(0);
  expect(nextAt).toBeDefined();
  expect(nextAt! - systemClock.now()).toBeLessThan(100);
});

test("two scanners on the same buckets make every instant once", async () => {
  const ids = await dueSchedules(40, 0);
  // Both believe to be alone.
  const first = scannerOf(world.authority);
  const second = scannerOf(world.another());
  await first.pass();
  await world.admin.query("delete from scanner");
  await second.pass();
  await world.admin.query("delete from scanner");
  for (const id of ids) expect(await runsOf(id)).toBe(1);

  const more = await dueSchedules(40, 0);
  await Promise.all([first.pass(), second.pass(), first.pass(), second.pass()]);
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
  const dead = scannerOf(world.authority);
  let elapsedMs = 0;
  const clock = { ...systemClock, monotonic: () => systemClock.monotonic() + elapsedMs };
  const heir = scannerOf({ ...world.authority, clock });
  await dead.pass();
  await heir.pass();
  const ofDead = new Set(bucketsOf(dead.id, [dead.id, heir.id]));
  const ids = await dueSchedules(40, -3_600_000);
  const orphans = ids.filter((id) => ofDead.has(bucketOf(id)));
  expect(orphans.length).toBeGreaterThan(2);
  expect(orphans.length).toBeLessThan(40);
  const [old] = orphans;
  await makeDue(ids, 0);
  await makeDue([old!], 2_500);

  elapsedMs = 2_000;
  await heir.pass();
  for (const id of ids) expect(await runsOf(id)).toBe(orphans.includes(id) && id !== old ? 0 : 1);

  // Its lease has ended.
  await world.admin.query("update scanner set expires_at = clock_timestamp() - interval '1 ms' where id = $1", [
    dead.id,
  ]);
  elapsedMs = 5_000;
  await heir.pass();
  for (const id of ids) expect(await runsOf(id)).toBe(1);
});

test("work that is overdue is taken by whoever comes, also out of another's buckets", async () => {
  const owner = scannerOf(world.authority);
  const other = scannerOf(world.another());
  await owner.pass();
  await other.pass();
  const ids = await dueSchedules(10, 15_000);
  const fresh = scannerOf(world.another());
  await fresh.pass();
  expect(await runsOf()).toBe(ids.length);
});

test("a schedule that cannot be computed does not stop the others, and its known instant is a run", async () => {
  const good = await dueSchedules(4, 0);
  const bad = await world.newSchedule();
  await makeDue([bad], 0);
  await world.admin.query(
    "update schedule_revision set definition = jsonb_set(definition::jsonb, '{rule}', $2) where schedule_id = $1",
    [bad, JSON.stringify({ kind: "cron", expression: "0 0 * * *", zone: "Mars/Olympus" })],
  );
  const scanner = scannerOf(world.another());
  await scanner.pass();
  for (const id of [bad, ...good]) expect(await runsOf(id)).toBe(1);
  const { rows } = await world.admin.query(
    "select fault is not null as faulty, next_due_at from schedule_cursor where schedule_id = $1",
    [bad],
  );
  expect(rows).toEqual([{ faulty: true, next_due_at: null }]);
});

test("a stranger's lock on one waiting run holds up its own schedule only", async () => {
  const rule = { kind: "interval", everyMs: 1000, anchorAt: 0 } as const;
  const one = await world.newSchedule({ rule, overlap: { policy: "bufferOne" } });
  await world.makeDue(one, 3000);
  await world.materialize([one]);
  const waiter = (await world.live()).find((run) => run.guard === null)!;
  const neighbours = await dueSchedules(3, 0);
  await world.passes(Date.now() + 1000);
  const stranger = await world.stranger();
  await stranger.query("select 1 from live_run where id = $1 for update", [waiter.id]);
  const before = await runsOf(one);
  const scanner = scannerOf(world.authority);
  await scanner.pass();
  for (const id of neighbours) expect(await runsOf(id)).toBe(1);
  expect(await runsOf(one)).toBe(before);
  await stranger.rollback();
  await scanner.pass();
  expect(await runsOf(one)).toBeGreaterThan(before);
});

test("a schedule that the database refuses stops nobody else, and is left out for a while", async () => {
  const [bad, ...good] = await dueSchedules(7, 0);
  const errors: unknown[] = [];
  let calls = 0;
  const authority: Authority = {
    ...world.authority,
    log: { ...world.authority.log, error: (...said: unknown[]) => void errors.push(said[1]) } as never,
    transact: (verb, work) => {
      calls++;
      return world.authority.transact(verb, work);
    },
  };
  await world.admin.query(`create function refuse_one() returns trigger language plpgsql as $$ begin
    if new.schedule_id = '${bad}' then raise exception 'refused' using errcode = '22003'; end if; return new; end $$`);
  await world.admin.query("create trigger refuse_one before insert on run for each row execute function refuse_one()");
  const scanner = scannerOf(authority);
  await scanner.pass();
  for (const id of good) expect(await runsOf(id)).toBe(1);
  expect(errors).toEqual(["a schedule cannot be materialized"]);
  calls = 0;
  await scanner.pass();
  expect(calls).toBe(0);
  await world.admin.query("drop trigger refuse_one on run");
});

/** A process to which each transaction takes `costMs`, by its own clock and however long it takes. */
function slowly(costMs: number) {
  const passed = { ms: 0 };
  const authority: Authority = {
    ...world.authority,
    clock: { ...systemClock, monotonic: () => passed.ms },
    transact(verb, work) {
      passed.ms += costMs;
      return world.authority.transact(verb, work);
    },
  };
  return { authority, passed };
}

async function refuseRunsOfAllBut(good: Uuid): Promise<void> {
  await world.admin.query(`create function refuse_all() returns trigger language plpgsql as $$ begin
    if new.schedule_id <> '${good}' then raise exception 'refused' using errcode = '22003'; end if; return new; end $$`);
  await world.admin.query("create trigger refuse_all before insert on run for each row execute function refuse_all()");
}

test("what is left out makes the scanner no busier, and takes nobody's place among what is due", async () => {
  const [bad, good] = [await world.newSchedule(), await dueOnce(-3_600_000)];
  await refuseRunsOfAllBut(good);
  await makeDue([bad], 0);
  const { authority, passed } = slowly(1);
  const scanner = scannerOf(authority);
  await scanner.pass();
  const { did, nextAt } = await scanner.pass();
  expect(did).toBe(0);
  expect(nextAt! - systemClock.now()).toBeGreaterThan(60_000);

  // More of them than one look at what is overdue takes, each of them due before the one that is none of them.
  await world.admin.query(`
    insert into schedule_cursor (schedule_id, tenant_id, revision, content, next_run_at, next_due_at, chain_started_at, tz_version, parser_version)
    select gen_random_uuid(), tenant_id, revision, content, next_run_at, next_due_at, chain_started_at, tz_version, parser_version
      from schedule_cursor, generate_series(1, 1100) where schedule_id = '${bad}'`);
  await world.admin.query(
    "update schedule_cursor set next_run_at = at, next_due_at = at from (select date_trunc('second', clock_timestamp()) - interval '1 minute' as at) m",
  );
  await makeDue([good], 12_000);
  passed.ms += 2_000;
  // It goes on with the next ones after a rest, so that all are left out before the first are tried again.
  const next = await scanner.pass();
  expect(next).toMatchObject({ did: 0, nextAt: expect.any(Number) });
  expect(next.nextAt! - systemClock.now()).toBeLessThan(1_000);
  for (let passes = 0; passes < 300 && (await runsOf(good)) === 0; passes++) {
    passed.ms += 250;
    await scanner.pass();
  }
  expect(await runsOf(good)).toBe(1);
  await world.admin.query("drop trigger refuse_all on run");
  await world.admin.query("delete from schedule_cursor where schedule_id not in ($1, $2)", [bad, good]);
});

test("each look at what is overdue finds out one that is refused, however slow the machine is", async () => {
  const ids = await dueSchedules(9, 12_000);
  const good = ids.pop()!;
  await refuseRunsOfAllBut(good);
  await makeDue(ids, 60_000);
  // One transaction takes more than a pass may.
  const { authority, passed } = slowly(150);
  const scanner = scannerOf(authority);
  for (let passes = 0; passes <= ids.length; passes++) {
    await scanner.pass();
    passed.ms += 2_000;
  }
  expect(await runsOf(good)).toBe(1);
  await world.admin.query("drop trigger refuse_all on run");
  await world.admin.query("delete from schedule_cursor where schedule_id <> $1", [good]);
});

test("each look at what is to be done passes over what is left out", async () => {
  const [left, other] = [await world.newSchedule(), await world.newSchedule()];
  const look = { mask: "1".repeat(1024), limit: 1, except: [left] };
  await makeDue([left], 3_000);
  await makeDue([other], 2_500);
  const nowAt = Date.now();
  expect(await findDueOnTime(world.authority, nowAt - 10_000, look)).toEqual([other]);
  expect(await findDueLate(world.authority, nowAt, look)).toEqual([other]);
  await world.admin.query(`insert into outbox (kind, tenant_id, class, lane, available_at, runs, publish_no, schedule_id)
    select 'schedule', tenant_id, 'short', 1, next_due_at, array[schedule_id], 0, schedule_id from schedule_cursor`);
  expect(await findToldSchedules(world.authority, look)).toEqual([other]);
  await world.admin.query("update schedule_cursor set fault = 'none', fault_retry_at = next_due_at");
  expect(await findFaultySchedules(world.authority, look)).toEqual([other]);
  await world.admin.query("update schedule_cursor set fault = null, fault_retry_at = null");
});

test("a schedule that takes longer than a deadline stops nobody else", async () => {
  const [slow, ...good] = await dueSchedules(3, 0);
  await world.admin.query(`create function slow_one() returns trigger language plpgsql as $$ begin
    if new.schedule_id = '${slow}' then perform pg_sleep(2); end if; return new; end $$`);
  await world.admin.query("create trigger slow_one before insert on run for each row execute function slow_one()");
  const scanner = scannerOf(world.another({ verbDeadlineMs: 1_000 }));
  // PostgreSQL goes on with what the scanner gave up, and holds its locks until it is done.
  await until(
    "the others have their runs",
    async () => {
      await scanner.pass();
      return (await runsOf(good[0])) === 1 && (await runsOf(good[1])) === 1;
    },
    20_000,
  );
  await world.admin.query("drop trigger slow_one on run");
});

test("catch-up of many schedules is paced, a share of each a pass, and goes on after a rest until it is done", async () => {
  const ids: Uuid[] = [];
  for (let n = 0; n < 4; n++) {
    ids.push(
      await world.newSchedule({
        rule: { kind: "interval", everyMs: 1000, anchorAt: 0 },
        overlap: { policy: "allow" },
        misfire: { policy: "all", graceMs: 1000, maxCatchUp: 2000 },
      }),
    );
  }
  await makeDue(ids, 1_500_000);
  const { authority, set } = withClock(world.authority);
  const scanner = scannerOf(authority);
  await scanner.pass();
  for (const id of ids) expect(await runsOf(id)).toBeLessThanOrEqual(250);
  for (let did = 1; did > 0; ) {
    set.elapsedMs += 2_000;
    ({ did } = await scanner.pass());
  }
  for (const id of ids) expect(await runsOf(id)).toBeGreaterThan(1400);
});

test("a process clock that steps forward past thousands of future instants does not make the scanner spin", async () => {
  const first = await world.newSchedule();
  await world.admin.query(`
    with c as (update schedule_cursor set next_run_at = clock_timestamp() + interval '6 hours',
                      next_due_at = clock_timestamp() + interval '6 hours' where schedule_id = '${first}' returning *)
    insert into schedule_cursor (schedule_id, tenant_id, revision, next_run_at, next_due_at, chain_started_at, tz_version, parser_version)
    select gen_random_uuid(), tenant_id, revision, next_run_at, next_due_at, chain_started_at, tz_version, parser_version
      from c, generate_series(1, 4000)`);
  let stepMs = 0;
  let monotonicMs = 0;
  const clock = {
    ...systemClock,
    now: () => systemClock.now() + stepMs,
    monotonic: () => systemClock.monotonic() + monotonicMs,
  };
  const scanner = scannerOf({ ...world.authority, clock });
  await scanner.pass();
  stepMs = 12 * 3_600_000;
  monotonicMs = 2_001;
  expect(await scanner.pass()).toMatchObject({ did: 0, more: false });
  // And it knows the database's time again at once.
  const { nextAt } = await scanner.pass();
  expect(Math.abs(nextAt! - clock.now() - 6 * 3_600_000)).toBeLessThan(60_000);
  await world.admin.query("delete from schedule_cursor where schedule_id <> $1", [first]);
});
