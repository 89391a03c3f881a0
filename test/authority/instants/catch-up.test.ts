import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { pauseSchedule } from "../../../src/authority/schedules/pause-schedule.ts";
import { resumeSchedule } from "../../../src/authority/schedules/resume-schedule.ts";
import { reviseSchedule } from "../../../src/authority/schedules/revise-schedule.ts";
import type { Uuid } from "../../../src/kernel/ids.ts";
import { createWorld, definitionOf, type World } from "../../support/world.ts";
import { history, MINUTE, rangesOf } from "../scenes.ts";

const SECOND = 1_000;
const EVERY_SECOND = { kind: "interval", everyMs: SECOND, anchorAt: 0 } as const;

/** `all`, over more missed instants than one plan takes. */
describe("a long catch-up", () => {
  let world: World;
  beforeAll(async () => {
    world = await createWorld();
  });
  afterEach(() => world.check());
  afterAll(() => world.close());

  const who = (scheduleId: Uuid) => ({ tenantId: world.tenantId, actor: "test", scheduleId });
  async function missed(seconds: number, misfire: { policy: "all" | "latest"; maxCatchUp: number }) {
    const scheduleId = await world.newSchedule({
      rule: EVERY_SECOND,
      overlap: { policy: "allow" },
      misfire: { ...misfire, graceMs: MINUTE },
    });
    const firstAt = await world.makeDue(scheduleId, seconds * SECOND);
    return { scheduleId, firstAt };
  }
  const caughtUp = async (scheduleId: Uuid) =>
    (await history(world, scheduleId))
      .filter((run) => run.trigger === "catch-up")
      .map((run) => run.scheduled_at.getTime());
  /** The passes of a scanner, until nothing is due any more. */
  async function goOn(scheduleId: Uuid) {
    for (let passes = 1; ; passes++) {
      const done = await world.materialize([scheduleId]);
      await world.check();
      if (!done.stillDue) return passes;
    }
  }

  it("is paced over plans, remembered in between, and still runs exactly the oldest it may; the rest is one range", async () => {
    const { scheduleId, firstAt } = await missed(2_000, { policy: "all", maxCatchUp: 600 });
    expect(await world.materialize([scheduleId])).toMatchObject({ runs: 250, skips: 0, stillDue: true });
    expect(await goOn(scheduleId)).toBe(2);
    expect(await caughtUp(scheduleId)).toEqual(Array.from({ length: 600 }, (_, n) => firstAt + n * SECOND));
    const [range, ...more] = await rangesOf(world, scheduleId);
    expect(more).toEqual([]);
    expect(range).toMatchObject({ from_at: new Date(firstAt + 600 * SECOND), reason: "misfire" });
    // What was within its grace has run, on time as far as that goes.
    const onTime = (await history(world, scheduleId)).filter((run) => run.trigger === "schedule");
    expect(onTime[0]!.scheduled_at.getTime()).toBe(range!.to_at.getTime() + SECOND);
    expect(onTime.length).toBeGreaterThanOrEqual(60);
  });

  it("a pause or an edit in the middle first settles it whole", async () => {
    for (const end of ["pause", "edit"] as const) {
      const { scheduleId } = await missed(1_000, { policy: "all", maxCatchUp: 600 });
      await world.materialize([scheduleId]);
      if (end === "pause") await pauseSchedule(world.authority, who(scheduleId));
      else {
        const change = {
          definition: definitionOf({ rule: { kind: "cron", expression: "0 0 1 1 *", zone: "Etc/UTC" } }),
        };
        await reviseSchedule(world.authority, { ...who(scheduleId), expectedRevision: 1, change });
      }
      expect(await caughtUp(scheduleId)).toHaveLength(600);
      const { rows } = await world.admin.query(
        "select catch_up_until, caught_up, catch_up_reason from schedule_cursor where schedule_id = $1",
        [scheduleId],
      );
      expect(rows).toEqual([{ catch_up_until: null, caught_up: 0, catch_up_reason: null }]);
    }
  });

  it("a resume begins it, says what it will come to, and leaves the rest to the scanner, answered as asked", async () => {
    const { scheduleId, firstAt } = await missed(0, { policy: "latest", maxCatchUp: 700 });
    await pauseSchedule(world.authority, who(scheduleId));
    // Three thousand seconds went by in the pause.
    await world.admin.query(
      `update schedule_cursor set next_run_at = to_timestamp($2 / 1000.0), last_nominal_at = null where schedule_id = $1`,
      [scheduleId, firstAt - 3_000 * SECOND],
    );
    await world.admin.query("delete from outbox where runs <@ (select array_agg(id) from run where schedule_id = $1)", [
      scheduleId,
    ]);
    await world.admin.query("delete from live_run where schedule_id = $1", [scheduleId]);
    await world.admin.query("delete from run where schedule_id = $1", [scheduleId]);
    const resumed = await resumeSchedule(world.authority, { ...who(scheduleId), misfire: "all" });
    expect(resumed).toMatchObject({
      kind: "resumed",
      plan: { runs: 700, skipped: null },
      schedule: { status: "active" },
    });
    expect(await caughtUp(scheduleId)).toHaveLength(250);
    await goOn(scheduleId);
    expect(await caughtUp(scheduleId)).toHaveLength(700);
    expect(await rangesOf(world, scheduleId)).toMatchObject([{ reason: "paused" }]);
  });
});
