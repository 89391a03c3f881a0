import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createAuthority } from "../../../src/authority/authority.ts";
import { dropHistory, watchFloor } from "../../../src/authority/retention/drop-history.ts";
import { raiseHistoryFloor } from "../../../src/authority/retention/raise-floor.ts";
import { createRetention } from "../../../src/loops/retention.ts";
import type { Database } from "../../../src/store/database.ts";
import { ensurePartitions } from "../../../src/store/partitions.ts";
import { createWorld, type World } from "../../support/world.ts";
import { begin, step } from "../operations/pasts.ts";
import { AFTER_MIDNIGHT, history } from "../scenes.ts";

const DAY_MS = 86_400_000;
const WEEK_MS = 7 * DAY_MS;
const TERMS = { historyDays: 30, requestKeyDays: 7, auditDays: 400, afterwards: "drop" } as const;

describe("keepers of history that meet others", () => {
  let world: World;
  /** Monday, seven weeks and more ago: the first week of history. */
  let floorAt: number;
  let endedBefore: number;

  beforeEach(async () => {
    world = await createWorld();
    const { rows } = await world.admin.query("select floor_at from history_floor");
    floorAt = (rows[0].floor_at as Date).getTime() - 6 * WEEK_MS;
    await world.admin.query("update history_floor set floor_at = $1", [new Date(floorAt)]);
    const { nowAt } = await watchFloor(world.authority);
    endedBefore = nowAt - TERMS.historyDays * DAY_MS;
    await ensurePartitions(world.db, { nowAt, aheadDays: 1, width: "week" });
  });
  afterEach(async () => {
    await world.check();
    await world.close();
  });

  const floorNow = async () => (await watchFloor(world.authority)).floorAt;
  /** A schedule and a backfill of one minute of the first week. */
  async function pastMinute() {
    const scheduleId = await world.newSchedule({ rule: AFTER_MIDNIGHT });
    const operationId = await begin(world, scheduleId, floorAt + DAY_MS, floorAt + DAY_MS + 60_000);
    return { scheduleId, operationId };
  }

  it("keeper / keeper: one that has looked at an older week does not lower what another has raised meanwhile", async () => {
    const held = world.faults.hold("raise-floor:looked");
    const late = raiseHistoryFloor(world.authority, endedBefore);
    await held.arrived;
    const other = world.another();
    for (const weeks of [1, 2]) {
      const toAt = floorAt + weeks * WEEK_MS;
      expect(await raiseHistoryFloor(other, endedBefore)).toEqual({ kind: "raised", toAt });
    }
    held.release();
    await late;
    expect(await floorNow()).toBe(floorAt + 2 * WEEK_MS);
  });

  it("reader / keeper: while somebody has used history for long, no dropping is begun that others would wait behind", async () => {
    await raiseHistoryFloor(world.authority, endedBefore);
    const reader = await world.stranger();
    const [begun] = await reader.query("select count(*), extract(epoch from now())::float8 * 1000 as at from run");
    await world.passes((begun!.at as number) + 5_000);
    const order = { floorAt: await floorNow(), isKnown: true, endedBefore, afterwards: "drop" } as const;
    world.faults.once("drop-history:noted", () => {
      throw new Error("it has begun");
    });
    expect(await dropHistory(world.authority, order)).toMatchObject({
      detached: [],
      dropped: [],
      waiting: [{ for: expect.stringMatching(/the long transaction of/) }],
    });
    expect((await world.admin.query("select name from retired_partition")).rows).toEqual([]);
    await reader.commit();
    expect((await dropHistory(world.another(), order)).dropped).toHaveLength(2);
  });

  it("backfill / raised floor: the floor that is read is the one of after the locks", async () => {
    const { scheduleId, operationId } = await pastMinute();
    const stranger = await world.stranger();
    await stranger.query("select 1 from schedule_cursor where schedule_id = $1 for update", [scheduleId]);
    const stepping = step(world, operationId);
    await world.lockWaits();
    // While it waits for the schedule, the keeper gives the week up.
    await raiseHistoryFloor(world.another(), endedBefore);
    await stranger.commit();
    await stepping;
    expect(await history(world, scheduleId)).toEqual([]);
  });

  it("keeper / backfill: who begins between a keeper's two looks, and has read the old floor, is waited for", async () => {
    const { scheduleId, operationId } = await pastMinute();
    const writing = world.faults.hold("backfill:written");
    let stepping: Promise<unknown> | undefined;
    // Between whatever the keeper reads first, the floor or who is under way, and the other.
    const query: Database["query"] = async (statement, values) => {
      const rows = await world.db.query(statement, values);
      if (stepping === undefined) {
        stepping = step(world, operationId);
        await writing.arrived;
        await raiseHistoryFloor(world.another(), endedBefore);
      }
      return rows as never;
    };
    const authority = createAuthority({ ...world.authority, db: { ...world.db, query } });
    const keeper = createRetention({ authority, terms: TERMS });
    world.faults.once("drop-history:noted", () => {
      throw new Error("it has not waited");
    });
    await keeper.pass(new AbortController().signal);
    expect(await floorNow()).toBeGreaterThan(floorAt);
    writing.release();
    await stepping;
    // Its run is seen by the look that comes after the wait.
    while ((await keeper.pass(new AbortController().signal)).more);
    const [grant] = await world.claimAll();
    expect(await world.complete(grant!)).toMatchObject({ kind: "accepted" });
    expect(await history(world, scheduleId)).toMatchObject([{ state: "succeeded", trigger: "backfill" }]);
  });
});
