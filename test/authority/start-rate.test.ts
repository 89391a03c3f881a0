import { afterEach, beforeEach, expect, test } from "vitest";
import { claimRuns } from "../../src/authority/attempts/claim.ts";
import { findDirectWork } from "../../src/authority/dispatch/direct.ts";
import { restoreLostIntents } from "../../src/authority/repair/lost-intents.ts";
import { SlotAccounts } from "../../src/domain/dispatch/slot-accounts.ts";
import { dueSchedule } from "../support/system.ts";
import { createWorld, type World } from "../support/world.ts";

const RATE = 5;
let world: World;
beforeEach(async () => {
  world = await createWorld();
  const id = await dueSchedule(world.authority, world.admin, { tenantId: world.tenantId, runs: 40, job: "test.noop" });
  await world.materialize([id]);
  await world.admin.query("insert into quota (tenant_id, class, start_rate_per_second) values ($1, 'short', $2)", [
    world.tenantId,
    RATE,
  ]);
});
afterEach(async () => {
  await world.check();
  await world.close();
});

const find = () =>
  findDirectWork(world.authority, "short", 30, new SlotAccounts({ slots: 30, reservedFraction: 0, now: () => 0 }));
/** Time is moved by editing rows: the window began so long ago. */
const age = (ms: number) =>
  world.admin.query("update usage set starts_window_at = clock_timestamp() - $1 * interval '1 ms'", [ms]);
const windowOf = async () =>
  (await world.admin.query("select starts_in_window as starts from usage")).rows[0]?.starts as number | undefined;

test("without Redis, a start rate holds in every second: no more than it start, the rest waits for the next", async () => {
  expect(await world.claimAll()).toHaveLength(RATE);
  await age(500);
  await world.makeAvailable();
  expect(await world.claimAll()).toHaveLength(0);
  expect(await windowOf()).toBe(RATE);
  await age(1_000);
  await world.makeAvailable();
  expect(await world.claimAll("worker-b")).toHaveLength(RATE);
});

test("two workers at once are held to one rate", async () => {
  const rows = (await world.outbox()).map((row) => row.id);
  const outcomes = await Promise.all([world.claim(rows.slice(0, 20)), world.claim(rows.slice(20))]);
  expect(outcomes.flatMap((one) => one.grants)).toHaveLength(RATE);
});

test("what waits for its tenant's next second is not looked at before, is labelled, and is told when", async () => {
  await world.claimAll();
  await world.makeAvailable();
  await age(400);
  const { hints, nowAt, nextAt } = await find();
  expect(hints).toEqual([]);
  expect(nextAt! - nowAt).toBeGreaterThan(0);
  expect(nextAt! - nowAt).toBeLessThanOrEqual(600);
  const { rows } = await world.admin.query(
    "select held_by, count(*)::int as n from live_run where state = 'queued' group by 1",
  );
  expect(rows).toEqual([{ held_by: "rate", n: 40 - RATE }]);
  await age(1_000);
  expect((await find()).hints).toHaveLength(RATE);
});

test("a hint from Redis starts one run where there is a rate, however many it names", async () => {
  await world.admin.query(
    `with all_of as (select array_agg(runs[1] order by id) as runs, min(id) as id from outbox)
     , gone as (delete from outbox o using all_of a where o.id <> a.id)
     update outbox o set runs = a.runs[1:20] from all_of a where o.id = a.id`,
  );
  const [row] = await world.outbox();
  expect(row!.runs).toHaveLength(20);
  const { grants } = await claimRuns(world.authority, {
    claimId: crypto.randomUUID(),
    worker: "worker-a",
    slots: { short: 30 },
    hints: [{ rowId: row!.id, epoch: 1, fetched: {} }],
    repeated: false,
  });
  expect(grants).toHaveLength(1);
  const left = await world.outbox();
  expect(left.map((one) => one.runs.length)).toEqual(Array(19).fill(1));
  // Counted: should Redis fail now, the second goes on where it was.
  expect(await windowOf()).toBe(1);
  // The other twenty are named by nothing now, on purpose.
  expect(await restoreLostIntents(world.authority, 100)).toBe(20);
});

test("a rate that is removed holds nobody", async () => {
  expect(await world.claimAll()).toHaveLength(RATE);
  await world.admin.query("update usage set start_rate_per_second = null");
  await world.makeAvailable();
  expect(await world.claimAll()).toHaveLength(40 - RATE);
});
