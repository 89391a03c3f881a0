import { afterEach, beforeEach, expect, test } from "vitest";
import { createRevisionCache } from "../../src/authority/revisions.ts";
import { reviseSchedule } from "../../src/authority/schedules/revise-schedule.ts";
import type { Queryable } from "../../src/store/database.ts";
import { createWorld, type World } from "../support/world.ts";

let world: World;
beforeEach(async () => {
  world = await createWorld();
});
afterEach(() => world.close());

/** A process's cache, and how many times it asked the database. */
function freshCache() {
  const cache = createRevisionCache(world.authority.pinned);
  const asked = { times: 0 };
  const db: Queryable = {
    query: (...args) => {
      asked.times += 1;
      return world.db.query(...(args as Parameters<Queryable["query"]>)) as never;
    },
  };
  return { cache, asked, load: (keys: Parameters<typeof cache.load>[1]) => cache.load(db, keys) };
}

async function keyOf(scheduleId: string) {
  const { rows } = await world.admin.query(
    "select schedule_id, revision, content from schedule_cursor where schedule_id = $1",
    [scheduleId],
  );
  return { scheduleId, revision: rows[0].revision as number, content: rows[0].content as string | null };
}

test("schedules that say the same are read once, and others are not taken for them", async () => {
  const [one, same, other] = [
    await world.newSchedule({ payload: { region: "eu" } }),
    await world.newSchedule({ payload: { region: "eu" } }),
    await world.newSchedule({ payload: { region: "us" } }),
  ];
  const { cache, asked, load } = freshCache();
  await load([await keyOf(one)]);
  await load([await keyOf(same)]);
  expect(asked.times).toBe(1);
  await load([await keyOf(other)]);
  expect(asked.times).toBe(2);
  expect(cache.get(await keyOf(same)).payload).toEqual({ region: "eu" });
  expect(cache.get(await keyOf(other)).payload).toEqual({ region: "us" });
});

test("a run does what the revision it was born under said, also after an edit", async () => {
  const scheduleId = await world.newSchedule({ payload: { version: "old" }, overlap: { policy: "allow" } });
  await world.makeDue(scheduleId, 5000);
  await world.materialize([scheduleId]);
  const revised = await reviseSchedule(world.authority, {
    tenantId: world.tenantId,
    actor: "test",
    scheduleId,
    expectedRevision: 1,
    change: { payload: { version: "new" } },
  });
  expect(revised.kind).toBe("revised");
  await world.makeDue(scheduleId, 2000);
  await world.materialize([scheduleId]);
  const grants = await world.claimAll();
  expect(grants.map((grant) => grant.payload.version)).toEqual(["old", "new"]);
});

test("who does not know a revision's digest finds it by its key", async () => {
  const scheduleId = await world.newSchedule({ payload: { asked: "plainly" } });
  const { cache, load } = freshCache();
  const key = { scheduleId, revision: 1, content: null };
  await load([await keyOf(scheduleId), key]);
  expect(cache.get(key).payload).toEqual({ asked: "plainly" });
  expect(cache.get(await keyOf(scheduleId)).payload).toEqual({ asked: "plainly" });
});

test("a batch keeps what it found in the cache while it loads the rest", async () => {
  const cache = createRevisionCache(world.authority.pinned);
  const key = (n: number) => {
    const id = `00000000-0000-0000-0000-${n.toString(16).padStart(12, "0")}`;
    return { scheduleId: id, revision: 1, content: id };
  };
  const anything: Queryable = {
    query: async (_, [ids]: readonly unknown[] = []) =>
      (ids as string[]).map((id) => ({
        schedule_id: id,
        revision: 1,
        content: id,
        definition: "{}",
        payload: "{}",
      })) as never,
  };
  await cache.load(
    anything,
    Array.from({ length: 50_000 }, (_, n) => key(n)),
  );
  await cache.load(anything, [key(0), key(60_000)]);
  expect(cache.get(key(0))).toBeDefined();
  expect(() => cache.get(key(1))).toThrow();
});

test("rows from before there were digests are read by their key", async () => {
  const scheduleId = await world.newSchedule({ payload: { from: "before" } });
  for (const table of ["schedule_revision", "schedule_cursor"])
    await world.admin.query(`update ${table} set content = null`);
  await world.makeDue(scheduleId);
  await world.materialize([scheduleId]);
  expect((await world.claimAll())[0]!.payload).toEqual({ from: "before" });
});
