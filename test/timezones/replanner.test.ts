import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Authority } from "../../src/authority/authority.ts";
import { leaveToRelay } from "../../src/authority/runs/bear.ts";
import { materialize } from "../../src/authority/runs/materialize.ts";
import { followAdoption, pinZones } from "../../src/authority/timezones/pin-zones.ts";
import { countBehind } from "../../src/authority/timezones/replan-walk.ts";
import type { Uuid } from "../../src/kernel/ids.ts";
import { createReplanner } from "../../src/loops/replanner.ts";
import { adoptBehindTheBack, candidateOf, tzVersion } from "../support/tz-versions.ts";
import { createWorld, type World } from "../support/world.ts";
import * as scene from "./scenes.ts";

const { ahead, behind, HOUR, MINUTE, VANCOUVER } = scene;

let world: World;
let moved: (number | null)[];
beforeEach(async () => {
  moved = [];
  world = await createWorld({
    signals: {
      scheduleMoved: (at) => void moved.push(at),
      outboxGrew: () => {},
      slotsFreed: () => {},
      effectsDue: () => {},
    },
  });
});
afterEach(async () => {
  await world.check();
  await world.close();
});

const never = new AbortController().signal;

/** Drives it until it has nothing more to do at once; `laterMs` is how far its clock then is. */
function replannerOf(authority: Authority): { walk(): Promise<number>; laterMs(ms: number): void } {
  let aheadMs = 0;
  const clock = { ...authority.clock, monotonic: () => authority.clock.monotonic() + aheadMs };
  const replanner = createReplanner({ authority: Object.create(authority, { clock: { value: clock } }) });
  return {
    laterMs: (ms) => {
      aheadMs += ms;
    },
    async walk() {
      let did = 0;
      for (;;) {
        const done = await replanner.pass(never);
        did += done.did;
        if (!done.more) return did;
      }
    },
  };
}

const isReplanned = async () =>
  (await world.admin.query("select replanned_at is not null as done from tz_data order by adopted_at desc nulls last"))
    .rows[0].done;

describe("the replanner", () => {
  test("moves a true instant that is earlier than the stored one before anybody would look, and wakes the scanners", async () => {
    await scene.startUnder(world, behind, ahead);
    const oldAt = scene.minutesFromNow(3 * 60);
    const id = await scene.scheduleDue(world, scene.dailyAt(oldAt, behind), oldAt);
    await scene.adopt(world, "2026f");
    expect(await countBehind(world.authority)).toBe(1);
    moved = [];
    expect(await replannerOf(world.authority).walk()).toBe(1);
    expect((await scene.cursorOf(world, id)).next_due_at).toEqual(new Date(oldAt - HOUR));
    expect(moved).toEqual([oldAt - HOUR]);
    expect(await countBehind(world.authority)).toBe(0);
  });

  test("leaves alone what no changed zone touches: other zones, intervals, and payloads that only name the zone", async () => {
    await scene.startUnder(world, behind, ahead);
    const ids = [
      await world.newSchedule({ rule: { kind: "cron", expression: "0 9 * * *", zone: "America/Los_Angeles" } }),
      await world.newSchedule({
        rule: { kind: "interval", everyMs: 60_000, anchorAt: 0 },
        payload: { zone: VANCOUVER },
      }),
    ];
    const before = await Promise.all(ids.map((id) => scene.cursorOf(world, id)));
    await scene.adopt(world, "2026f");
    expect(await replannerOf(world.authority).walk()).toBe(0);
    expect(await Promise.all(ids.map((id) => scene.cursorOf(world, id)))).toEqual(before);
  });

  test("goes by due time through more than one window, aliases and joined rules included, and finds each once", async () => {
    await scene.startUnder(world, behind, ahead);
    const ids: Uuid[] = [];
    for (let n = 0; n < 12; n++) {
      const at = scene.minutesFromNow(180 + ((n * 7) % 12));
      const rule = scene.dailyAt(at, behind);
      const one = n % 3 === 0 ? { ...rule, zone: "Canada/Pacific" } : rule;
      ids.push(await scene.scheduleDue(world, n % 4 === 0 ? ({ kind: "anyOf", rules: [one] } as never) : one, at));
    }
    await scene.adopt(world, "2026f");
    const replanner = replannerOf(world.authority);
    expect(await replanner.walk()).toBe(12);
    expect(await replanner.walk()).toBe(0);
    for (const id of ids) expect((await scene.cursorOf(world, id)).tz_version).toBe("2026f");
  });

  test("is done when a walk finds nothing that began after every process had noticed; another adoption begins anew", async () => {
    await scene.startUnder(world, behind, ahead);
    await scene.adopt(world, "2026f");
    const replanner = replannerOf(world.authority);
    await replanner.walk();
    expect(await isReplanned()).toBe(false);
    replanner.laterMs(61_000);
    await replanner.walk();
    expect(await isReplanned()).toBe(true);
    await scene.adopt(world, "2026f");
    expect(await isReplanned()).toBe(false);
  });

  test("walks again for what somebody held", async () => {
    await scene.startUnder(world, behind, ahead);
    const oldAt = scene.minutesFromNow(3 * 60);
    const id = await scene.scheduleDue(world, scene.dailyAt(oldAt, behind), oldAt);
    await scene.adopt(world, "2026f");
    const stranger = await world.stranger();
    await stranger.query("select from schedule_cursor where schedule_id = $1 for update", [id]);
    const replanner = replannerOf(world.authority);
    await replanner.walk();
    replanner.laterMs(61_000);
    await replanner.walk();
    await stranger.rollback();
    expect(await isReplanned()).toBe(false);
    await replanner.walk();
    expect((await scene.cursorOf(world, id)).next_due_at).toEqual(new Date(oldAt - HOUR));
    await replanner.walk();
    expect(await isReplanned()).toBe(true);
  });

  test("plans nothing by a version it does not go by", async () => {
    await scene.startUnder(world, behind, ahead);
    const oldAt = scene.minutesFromNow(3 * 60);
    const id = await scene.scheduleDue(world, scene.dailyAt(oldAt, behind), oldAt);
    await adoptBehindTheBack(world, "2026f");
    expect(await replannerOf(world.authority).walk()).toBe(0);
    expect((await scene.cursorOf(world, id)).next_due_at).toEqual(new Date(oldAt));
  });
});

describe("B18 (3) a zone that the adopted data does not have", () => {
  const without = tzVersion("2027a", {
    [VANCOUVER]: undefined,
    "Canada/Pacific": undefined,
    "=Canada/Pacific": undefined,
  });

  test("flags that schedule before it is due, others go on, and it recovers by itself when the zone is back", async () => {
    await scene.startUnder(world, behind, without);
    const at = scene.minutesFromNow(3 * 60);
    const bad = await scene.scheduleDue(world, scene.dailyAt(at, behind), at);
    const good = await world.newSchedule({ rule: { kind: "cron", expression: "0 0 1 1 *", zone: "Europe/Berlin" } });
    await scene.adopt(world, "2027a");
    await replannerOf(world.authority).walk();
    const flagged = await scene.cursorOf(world, bad);
    expect(flagged.fault).toBe('zone "America/Vancouver": The time zone database (2027a) has no zone of this name.');
    expect([flagged.next_due_at, flagged.next_run_at, flagged.tz_version]).toEqual([null, new Date(at), "2025c"]);
    await world.makeDue(good);
    expect((await world.materialize([bad, good])).runs).toBe(1);
    // Tried again and still at fault; then the zone is back.
    expect((await scene.cursorOf(world, bad)).fault).toBe(flagged.fault);
    await scene.adopt(world, "2025c");
    await world.materialize([bad]);
    expect(await scene.cursorOf(world, bad)).toMatchObject({
      fault: null,
      next_due_at: new Date(at),
      tz_version: "2025c",
    });
  });

  test("a schedule whose known instant comes meanwhile runs it once", async () => {
    await scene.startUnder(world, behind, without);
    const at = scene.minutesFromNow(0);
    const id = await scene.scheduleDue(world, scene.dailyAt(at, behind), at);
    await scene.adopt(world, "2027a");
    expect((await world.materialize([id])).runs).toBe(1);
    expect((await world.materialize([id])).runs).toBe(0);
    expect(await scene.cursorOf(world, id)).toMatchObject({
      next_run_at: null,
      fault: expect.stringContaining("no zone of this name"),
    });
    await scene.adopt(world, "2025c");
    await world.admin.query("update schedule_cursor set fault_retry_at = clock_timestamp()");
    await world.materialize([id]);
    expect(await scene.cursorOf(world, id)).toMatchObject({ fault: null, next_run_at: new Date(at + scene.DAY) });
    expect(await scene.instantsOf(world, id)).toEqual([at]);
  });

  test("a zone known to the process that takes a schedule in and not yet to the one that scans is found there", async () => {
    const with2026 = tzVersion("2026z", { "Mars/Olympus": "MST7|-25200|" });
    await pinZones(world.authority, candidateOf(behind));
    await pinZones(world.another(), candidateOf(with2026));
    await adoptBehindTheBack(world, "2026z");
    const scanner = world.another();
    scanner.pinned.turnTo(behind.zones);
    await followAdoption(world.authority, world.db);
    const id = await world.newSchedule({ rule: { kind: "cron", expression: "0 0 1 1 *", zone: "Mars/Olympus" } });
    await world.makeDue(id);
    expect((await materialize(scanner, [id], leaveToRelay)).runs).toBe(1);
    expect(scanner.tzVersion).toBe("2026z");
    expect((await scene.cursorOf(world, id)).fault).toBeNull();
  });
});

test("a broken adopted version stops nobody who goes by the one before", async () => {
  await scene.startUnder(world, behind, ahead);
  const at = scene.minutesFromNow(0);
  const id = await scene.scheduleDue(world, scene.dailyAt(at, behind), at);
  await world.admin.query("update schedule_cursor set tz_version = '2019a'");
  await world.admin.query("update tz_data set bytes = '\\x00' where version = '2026f'");
  await adoptBehindTheBack(world, "2026f");
  expect((await world.materialize([id])).runs).toBe(1);
  expect((await scene.cursorOf(world, id)).next_run_at).toEqual(new Date(at + 24 * 60 * MINUTE));
});
