import { afterEach, beforeEach, expect, test } from "vitest";
import type { Authority } from "../../src/authority/authority.ts";
import type { Uuid } from "../../src/kernel/ids.ts";
import { createPace } from "../../src/loops/pace.ts";
import { MINUTE } from "../authority/scenes.ts";
import { createWorld, type World } from "../support/world.ts";
import { scannerOf, withClock } from "./scanning.ts";

test("a pace follows how long work takes, by halves and doubles, within its bounds", () => {
  const pace = createPace({ targetMs: 100, first: 50, least: 5, most: 1000 });
  pace.took(50, 10);
  expect(pace.size).toBe(100);
  pace.took(100, 125);
  expect(pace.size).toBe(80);
  pace.took(3, 1);
  expect(pace.size).toBe(80);
  for (let n = 0; n < 9; n++) pace.took(pace.size, 5_000);
  expect(pace.size).toBe(5);
  for (let n = 0; n < 20; n++) pace.took(pace.size, 0);
  expect(pace.size).toBe(1000);
});

let world: World;

beforeEach(async () => {
  world = await createWorld();
});
afterEach(async () => {
  await world.check();
  await world.close();
});

/** Schedules of every hour, of which the first missed instant is two days old, and the next is half an hour away. */
async function missed(count: number): Promise<Uuid[]> {
  const ids: Uuid[] = [];
  const firstAt = Math.floor(Date.now() / MINUTE) * MINUTE + 30 * MINUTE - 2 * 24 * 60 * MINUTE;
  for (let n = 0; n < count; n++) {
    ids.push(
      await world.newSchedule({
        rule: { kind: "cron", expression: `${new Date(firstAt).getUTCMinutes()} * * * *`, zone: "Etc/UTC" },
        misfire: { policy: "latest", graceMs: 60_000, maxCatchUp: 1 },
      }),
    );
  }
  await world.admin.query(
    `update schedule_cursor set next_run_at = at, next_due_at = at
       from (select to_timestamp($2) as at) m where schedule_id = any($1)`,
    [ids, firstAt / 1_000],
  );
  return ids;
}

/** A machine on which nothing takes time but the scanner's transactions, each so long; what they make is kept in order. */
function slowed(authority: Authority, eachMs: number) {
  const { authority: clocked, set } = withClock(authority);
  const nowAt = clocked.clock.now();
  const transactions: number[] = [];
  return {
    transactions,
    set,
    authority: {
      ...clocked,
      clock: { ...clocked.clock, now: () => nowAt, monotonic: () => set.elapsedMs },
      transact: (async (verb, work) => {
        const done = await authority.transact(verb, work);
        if (verb === "materialize") {
          set.elapsedMs += eachMs;
          transactions.push((done as { runs: number }).runs);
        }
        return done;
      }) as Authority["transact"],
    },
  };
}

async function born(ids: readonly Uuid[]): Promise<number> {
  const { rows } = await world.admin.query(
    "select count(distinct schedule_id)::int as n from run where schedule_id = any($1)",
    [ids],
  );
  return rows[0].n;
}

test("catch-up takes a part of a pass and rests twice as long: what falls due meanwhile is made at once, on a slow machine, too", async () => {
  const late = await missed(120);
  const onTime = await world.newSchedule();
  const slow = slowed(world.authority, 75);
  const scanner = scannerOf(slow.authority);
  const first = await scanner.pass();
  // A tenth of a second is over after two transactions, and the second was smaller already.
  expect(slow.transactions).toHaveLength(2);
  expect(first.more).toBe(false);
  expect(first.nextAt! - slow.authority.clock.now()).toBeCloseTo(300);
  const before = await born(late);
  expect(before).toBe(50 + 33);
  await world.makeDue(onTime, 0);
  await scanner.pass();
  expect(slow.transactions.slice(2)).toEqual([1]);
  expect(await born([onTime])).toBe(1);
  expect(await born(late)).toBe(before);
  let passes = 2;
  for (; (await born(late)) < late.length; passes++) {
    slow.set.elapsedMs += 300;
    await scanner.pass();
  }
  expect(passes).toBeLessThan(10);
});

test("where on-time work fills a whole pass, catch-up still takes a step in each", async () => {
  const late = await missed(3);
  const onTime = await world.newSchedule();
  await world.makeDue(onTime, 0);
  const slow = slowed(world.authority, 2_000);
  await scannerOf(slow.authority).pass();
  expect(slow.transactions).toEqual([1, 3]);
  expect(await born(late)).toBe(3);
});
