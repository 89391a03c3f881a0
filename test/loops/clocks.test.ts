import { afterEach, beforeEach, expect, test } from "vitest";
import type { Authority } from "../../src/authority/authority.ts";
import { reviseSchedule } from "../../src/authority/schedules/revise-schedule.ts";
import type { Uuid } from "../../src/kernel/ids.ts";
import { history } from "../authority/scenes.ts";
import { createWorld, definitionOf, type World } from "../support/world.ts";
import { scannerOf, withClock } from "./scanning.ts";

let world: World;

beforeEach(async () => {
  world = await createWorld();
});
afterEach(async () => {
  await world.check();
  await world.close();
});

const DAY = 86_400_000;

/** A daily schedule whose next instant is `inMs` ahead, on the database's clock, to the second. */
async function daily(inMs = 1500): Promise<{ id: Uuid; at: number }> {
  const { rows } = await world.admin.query("select extract(epoch from clock_timestamp()) * 1000 as now");
  const at = Math.ceil((Number(rows[0].now) + inMs) / 1000) * 1000;
  const time = new Date(at);
  const expression = `${time.getUTCSeconds()} ${time.getUTCMinutes()} ${time.getUTCHours()} * * *`;
  return { id: await world.newSchedule({ rule: { kind: "cron", expression, seconds: true, zone: "Etc/UTC" } }), at };
}

const instants = async (id: Uuid) => (await history(world, id)).map((run) => run.scheduled_at.getTime());
const nextOf = async (id: Uuid) =>
  (
    await world.admin.query("select next_run_at from schedule_cursor where schedule_id = $1", [id])
  ).rows[0].next_run_at.getTime();

test("B24 (1) a scanner 400 ms behind makes the instant once, and the next is tomorrow's", async () => {
  const { id, at } = await daily();
  const behind = withClock(world.authority);
  behind.set.aheadMs = -400;
  const scanner = scannerOf(behind.authority);
  await scanner.pass();
  await world.passes(at + 10);
  for (let passes = 0; passes < 3; passes++) await scanner.pass();
  expect(await instants(id)).toEqual([at]);
  expect(await nextOf(id)).toBe(at + DAY);
});

test("B24 (2) a scanner an hour ahead makes nothing before the database says so", async () => {
  const { id, at } = await daily();
  const ahead = withClock(world.authority);
  ahead.set.aheadMs = 3_600_000;
  const scanner = scannerOf(ahead.authority);
  await scanner.pass();
  const { nextAt } = await scanner.pass();
  expect(await instants(id)).toEqual([]);
  // It knows how long it is, on its own wrong clock.
  expect(nextAt! - ahead.authority.clock.now()).toBeLessThan(3_000);
  await world.passes(at);
  ahead.set.elapsedMs = 3_000;
  await scanner.pass();
  expect(await instants(id)).toEqual([at]);
  expect(await nextOf(id)).toBe(at + DAY);
});

test("B24 (3) two scanners handle one due row 50 ms apart: one run, and the cadence moves on once", async () => {
  const { id, at } = await daily();
  const first = scannerOf(world.authority);
  const second = scannerOf(world.another());
  await world.passes(at);
  const held = world.faults.hold("materialize:written");
  const early = first.pass();
  await held.arrived;
  await world.passes(at + 50);
  await world.admin.query("delete from scanner");
  await second.pass();
  held.release();
  await early;
  // And one that had seen the row due before the first was done with it.
  await world.materialize([id]);
  await second.pass();
  expect(await instants(id)).toEqual([at]);
  expect(await nextOf(id)).toBe(at + DAY);
});

/** What transactions of this authority see of a database whose clock was stepped back. */
function steppedBack(authority: Authority, byMs: number): Authority {
  return {
    ...authority,
    transact: (verb, work) =>
      authority.transact(verb, (tx) => work({ ...tx, authorityNow: async () => (await tx.authorityNow()) - byMs })),
  };
}

test("B24 (4) the database's clock steps back 2 s right after an instant was made: it is not made again", async () => {
  const { id, at } = await daily();
  await world.passes(at);
  await world.materialize([id]);
  const after = steppedBack(world.authority, 2000);
  await scannerOf(after).pass();
  expect(await nextOf(id)).toBe(at + DAY);
  // An edit that makes the cursor compute anew, before the instant has come a second time.
  const { rows } = await world.admin.query("select definition from schedule_revision where schedule_id = $1", [id]);
  const change = { definition: definitionOf({ ...rows[0].definition, endAt: "9000-01-01T00:00:00Z" }) };
  const edit = { tenantId: world.tenantId, actor: "test", scheduleId: id, expectedRevision: 1, change };
  expect(await reviseSchedule(after, edit)).toMatchObject({ kind: "revised", schedule: { nextRunAt: at + DAY } });
});

test("B24 (4) a cursor that stands before the instant once more, as after a restore of it alone, makes the same run", async () => {
  const { id, at } = await daily();
  await world.passes(at);
  await world.materialize([id]);
  await world.admin.query(
    "update schedule_cursor set next_run_at = $2, next_due_at = $2, last_nominal_at = null where schedule_id = $1",
    [id, new Date(at)],
  );
  await world.materialize([id]);
  expect(await instants(id)).toEqual([at]);
  expect((await world.outbox()).flatMap((row) => row.runs)).toHaveLength(1);
});
