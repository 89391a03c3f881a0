import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { leaveToRelay } from "../../src/authority/runs/bear.ts";
import { materialize } from "../../src/authority/runs/materialize.ts";
import { pauseSchedule } from "../../src/authority/schedules/pause-schedule.ts";
import { resumeSchedule } from "../../src/authority/schedules/resume-schedule.ts";
import { adoptBehindTheBack, tzVersion } from "../support/tz-versions.ts";
import { createWorld, type World } from "../support/world.ts";
import * as scene from "./scenes.ts";

const { ahead, behind, DAY, HOUR } = scene;

let world: World;
beforeEach(async () => {
  world = await createWorld();
});
afterEach(async () => {
  await world.check();
  await world.close();
});

describe("a local appointment under another tz database", () => {
  test("clocks turn out to be behind: what is due by the old data is only moved, and runs at its true instant", async () => {
    await scene.startUnder(world, ahead, behind);
    const oldAt = scene.minutesFromNow(0);
    const id = await scene.scheduleDue(world, scene.dailyAt(oldAt, ahead), oldAt);
    await scene.adopt(world, "2025c");
    expect((await world.materialize([id])).runs).toBe(0);
    const cursor = await scene.cursorOf(world, id);
    expect([cursor.next_run_at, cursor.next_due_at]).toEqual([new Date(oldAt + HOUR), new Date(oldAt + HOUR)]);
    expect(cursor.tz_version).toBe("2025c");
    expect(await scene.instantsOf(world, id)).toEqual([]);
  });

  test("clocks turn out to be behind after it ran: it does not run again an hour later", async () => {
    await scene.startUnder(world, ahead, behind);
    const ranAt = scene.minutesFromNow(0);
    const id = await scene.scheduleDue(world, scene.dailyAt(ranAt, ahead), ranAt);
    await world.materialize([id]);
    await scene.adopt(world, "2025c");
    await world.makeDue(id); // whatever wakes it
    await world.materialize([id]);
    const cursor = await scene.cursorOf(world, id);
    expect(cursor.next_run_at).toEqual(new Date(ranAt + DAY + HOUR));
    expect(await scene.instantsOf(world, id)).toEqual([ranAt]);
  });

  test("clocks turn out to be ahead: its true instant has gone by, so it is due now, as a missed one", async () => {
    await scene.startUnder(world, behind, ahead);
    const oldAt = scene.minutesFromNow(50);
    const misfire = { policy: "latest" as const, graceMs: 60_000, maxCatchUp: 100 };
    const id = await scene.scheduleDue(world, scene.dailyAt(oldAt, behind), oldAt, { misfire });
    await scene.adopt(world, "2026f");
    const done = await world.materialize([id]);
    expect(done.runs).toBe(1);
    expect(await scene.instantsOf(world, id)).toEqual([oldAt - HOUR]);
    expect((await scene.cursorOf(world, id)).next_run_at).toEqual(new Date(oldAt - HOUR + DAY));
  });

  test("clocks turn out to be ahead after it ran: the next day's is an hour earlier, and its link leads to the last", async () => {
    await scene.startUnder(world, behind, ahead);
    const ranAt = scene.minutesFromNow(-1);
    const id = await scene.scheduleDue(world, scene.dailyAt(ranAt, behind), ranAt);
    await world.materialize([id]);
    await scene.adopt(world, "2026f");
    await world.makeDue(id);
    await world.materialize([id]);
    const cursor = await scene.cursorOf(world, id);
    expect(cursor.next_run_at).toEqual(new Date(ranAt + DAY - HOUR));
    const againAt = await world.makeDue(id, 0);
    await world.materialize([id]);
    const links = await world.admin.query(
      "select prev_scheduled_at as at from run where schedule_id = $1 and scheduled_at = $2",
      [id, new Date(againAt)],
    );
    expect(links.rows).toEqual([{ at: new Date(ranAt) }]);
  });

  test("clocks ahead: appointments whose true instants were used run at once, each once, and the chain holds", async () => {
    await scene.startUnder(world, behind, ahead);
    const ranAt = scene.minutesFromNow(0);
    const minutes = [0, 20, 40].map((more) => (ranAt / 60_000 + more) % 60);
    const everyHour = Array.from({ length: 24 }, (_, hour) => hour).join(",");
    const rule = { kind: "cron" as const, expression: `${minutes} ${everyHour} * * *`, zone: scene.VANCOUVER };
    const misfire = { policy: "all" as const, graceMs: 0, maxCatchUp: 100 };
    const id = await scene.scheduleDue(world, rule, ranAt, { misfire, overlap: { policy: "allow" } });
    await world.materialize([id]);
    expect(await scene.instantsOf(world, id)).toEqual([ranAt]);
    await scene.adopt(world, "2026f");
    while ((await world.materialize([id])).stillDue);
    // Those 20, 40 and 60 minutes later by the clock were passed over when it turned out to be an hour ahead.
    expect(await scene.instantsOf(world, id)).toEqual([ranAt, ranAt + 1, ranAt + 2, ranAt + 3]);
    const links = await world.admin.query(
      "select prev_scheduled_at as at from run where schedule_id = $1 order by scheduled_at",
      [id],
    );
    expect(links.rows.map((row) => row.at?.getTime())).toEqual([undefined, ranAt, ranAt + 1, ranAt + 2]);
    expect((await scene.cursorOf(world, id)).next_run_at).toEqual(new Date(ranAt + 20 * 60_000));
  });
});

describe("several processes", () => {
  test("B18 (2) two scanners, one with each rule set, make one run of a local date", async () => {
    await scene.startUnder(world, behind, ahead);
    const oldAt = scene.minutesFromNow(50);
    const id = await scene.scheduleDue(world, scene.dailyAt(oldAt, behind), oldAt);
    await adoptBehindTheBack(world, "2026f");
    const noticed = await scene.newProcess(world, ahead);
    expect([world.authority.tzVersion, noticed.tzVersion]).toEqual(["2025c", "2026f"]);
    expect((await materialize(noticed, [id], leaveToRelay)).runs).toBe(1);
    // The other one, which had found it due, meets a cursor that a version it does not go by has planned.
    expect((await world.materialize([id])).runs).toBe(0);
    expect(world.authority.tzVersion).toBe("2026f");
    expect(await scene.instantsOf(world, id)).toEqual([oldAt - HOUR]);
  });

  test.each([
    ["behind", ahead, behind],
    ["ahead", behind, ahead],
  ] as const)(
    "B18 (2) both at the same time, clocks turning out to be %s: one run of the local date at most",
    async (_, before, after) => {
      await scene.startUnder(world, before, after);
      const oldAt = scene.minutesFromNow(0);
      const id = await scene.scheduleDue(world, scene.dailyAt(oldAt, before), oldAt);
      await adoptBehindTheBack(world, after.zones.version);
      const noticed = await scene.newProcess(world, after);
      for (let n = 0; n < 3; n++)
        await Promise.all([world.materialize([id]), materialize(noticed, [id], leaveToRelay)]);
      // Each passes over what the other holds, so the one that has noticed may not have had its turn yet.
      await materialize(noticed, [id], leaveToRelay);
      expect((await scene.instantsOf(world, id)).length).toBeLessThanOrEqual(1);
      const next = (await scene.cursorOf(world, id)).next_run_at!.getTime();
      const ran = (await scene.instantsOf(world, id)).length === 1;
      expect(scene.dailyAt(next, after)).toEqual(scene.dailyAt(oldAt, before));
      expect(next - oldAt > 12 * HOUR).toBe(ran);
    },
  );

  test("a process that has not noticed does not plan backwards what one that has planned anew", async () => {
    await scene.startUnder(world, ahead, behind);
    const oldAt = scene.minutesFromNow(0);
    const id = await scene.scheduleDue(world, scene.dailyAt(oldAt, ahead), oldAt);
    await adoptBehindTheBack(world, "2025c");
    const noticed = await scene.newProcess(world, behind);
    await materialize(noticed, [id], leaveToRelay);
    const planned = await scene.cursorOf(world, id);
    await world.materialize([id]);
    expect(await scene.cursorOf(world, id)).toEqual(planned);
  });

  test("a transaction that has begun ends by the version it began with, and says so beside what it computed", async () => {
    await scene.startUnder(world, ahead, behind);
    const oldAt = scene.minutesFromNow(0);
    const id = await scene.scheduleDue(world, scene.dailyAt(oldAt, ahead), oldAt);
    const held = world.faults.hold("materialize:cursors-locked");
    const settling = world.materialize([id]);
    await held.arrived;
    await scene.adopt(world, "2025c");
    expect(world.authority.tzVersion).toBe("2025c");
    held.release();
    expect((await settling).runs).toBe(1);
    const cursor = await scene.cursorOf(world, id);
    expect([cursor.tz_version, cursor.next_run_at]).toEqual(["2026f", new Date(oldAt + DAY)]);
    expect(cursor.last_nominal_local).toContain("-07:00[America/Vancouver]");
    await world.makeDue(id);
    await world.materialize([id]);
    expect((await scene.cursorOf(world, id)).next_run_at).toEqual(new Date(oldAt + DAY + HOUR));
    expect(await scene.instantsOf(world, id)).toEqual([oldAt]);
  });

  test("a schedule created by a process that has not noticed is planned anew like any other", async () => {
    await scene.startUnder(world, ahead, behind);
    await adoptBehindTheBack(world, "2025c");
    const at = scene.minutesFromNow(90);
    const id = await world.newSchedule({ rule: scene.dailyAt(at, ahead) });
    expect((await scene.cursorOf(world, id)).tz_version).toBe("2026f");
    const noticed = await scene.newProcess(world, behind);
    await materialize(noticed, [id], leaveToRelay);
    expect(await scene.cursorOf(world, id)).toMatchObject({ tz_version: "2025c", next_run_at: new Date(at + HOUR) });
  });
});

describe("what an adoption leaves alone", () => {
  test("a rule of a zone that did not change keeps its cursor, and takes the version with its next run", async () => {
    await scene.startUnder(world, ahead, behind);
    const id = await world.newSchedule({ rule: { kind: "cron", expression: "0 9 * * *", zone: "Europe/Berlin" } });
    const before = await scene.cursorOf(world, id);
    await scene.adopt(world, "2025c");
    await world.materialize([id]);
    expect(await scene.cursorOf(world, id)).toEqual(before);
    await world.makeDue(id);
    await world.materialize([id]);
    expect((await scene.cursorOf(world, id)).tz_version).toBe("2025c");
  });

  test("a paused schedule that nothing has touched is planned anew by its resume", async () => {
    await scene.startUnder(world, ahead, behind);
    const oldAt = scene.minutesFromNow(0);
    const id = await scene.scheduleDue(world, scene.dailyAt(oldAt, ahead), oldAt + DAY);
    await pauseSchedule(world.authority, { tenantId: world.tenantId, actor: "test", scheduleId: id });
    await world.admin.query("update schedule_cursor set next_run_at = $1", [new Date(oldAt)]);
    await scene.adopt(world, "2025c");
    await resumeSchedule(world.authority, { tenantId: world.tenantId, actor: "test", scheduleId: id });
    const cursor = await scene.cursorOf(world, id);
    expect([cursor.next_due_at, cursor.tz_version]).toEqual([new Date(oldAt + HOUR), "2025c"]);
    expect(await scene.instantsOf(world, id)).toEqual([]);
  });

  test("a paused schedule stays paused, and its resume settles by the new data", async () => {
    await scene.startUnder(world, ahead, behind);
    const oldAt = scene.minutesFromNow(0);
    const id = await scene.scheduleDue(world, scene.dailyAt(oldAt + 5 * 60_000, ahead), oldAt + 5 * 60_000);
    await pauseSchedule(world.authority, { tenantId: world.tenantId, actor: "test", scheduleId: id });
    await scene.adopt(world, "2025c");
    await world.materialize([id]);
    const paused = await scene.cursorOf(world, id);
    expect([paused.next_due_at, paused.next_run_at]).toEqual([null, new Date(oldAt + 5 * 60_000 + HOUR)]);
    await resumeSchedule(world.authority, { tenantId: world.tenantId, actor: "test", scheduleId: id });
    expect((await scene.cursorOf(world, id)).next_due_at).toEqual(new Date(oldAt + 5 * 60_000 + HOUR));
    expect(await scene.instantsOf(world, id)).toEqual([]);
  });
});

test("data of before that nobody has any more: what is remembered of the last run has to do", async () => {
  await scene.startUnder(world, ahead, behind);
  const ranAt = scene.minutesFromNow(0);
  const id = await scene.scheduleDue(world, scene.dailyAt(ranAt, ahead), ranAt);
  await world.materialize([id]);
  await world.admin.query("update schedule_cursor set tz_version = '2019a'");
  await scene.adopt(world, "2025c");
  await world.makeDue(id);
  await world.materialize([id]);
  expect((await scene.cursorOf(world, id)).next_run_at).toEqual(new Date(ranAt + DAY + HOUR));
});

test("rules that read no clock do not mind: what they wait for stays, though nobody knows the data of before", async () => {
  await scene.startUnder(world, ahead, behind);
  const interval = await world.newSchedule({ rule: { kind: "interval", everyMs: 3_600_000, anchorAt: 0 } });
  const once = await world.newSchedule({
    rule: { kind: "once", at: new Date(scene.minutesFromNow(90)).toISOString() },
  });
  // Half an hour off its rule, as what follows from the end of a run would be.
  const offAt = new Date(scene.minutesFromNow(30));
  await world.admin.query(
    "update schedule_cursor set tz_version = '2019a', next_run_at = $2, next_due_at = $2 where schedule_id = $1",
    [interval, offAt],
  );
  await world.admin.query("update schedule_cursor set tz_version = '2019a' where schedule_id = $1", [once]);
  const before = [await scene.cursorOf(world, interval), await scene.cursorOf(world, once)];
  await scene.adopt(world, "2025c");
  await world.materialize([interval, once]);
  expect([await scene.cursorOf(world, interval), await scene.cursorOf(world, once)]).toEqual(before);
});

test("two adoptions without a run between them: what was served under the first data stays served", async () => {
  const third = tzVersion("2027a", { [scene.VANCOUVER]: "PST8:30|-30600|" });
  await scene.startUnder(world, ahead, behind);
  await scene.newProcess(world, third);
  const ranAt = scene.minutesFromNow(0);
  const id = await scene.scheduleDue(world, scene.dailyAt(ranAt, ahead), ranAt);
  await world.materialize([id]);
  for (const [version, laterMs] of [
    ["2025c", HOUR],
    ["2027a", 1.5 * HOUR],
    ["2026f", 0],
  ] as const) {
    await scene.adopt(world, version);
    await world.makeDue(id);
    await world.materialize([id]);
    expect((await scene.cursorOf(world, id)).next_run_at, version).toEqual(new Date(ranAt + DAY + laterMs));
  }
  expect(await scene.instantsOf(world, id)).toEqual([ranAt]);
});
