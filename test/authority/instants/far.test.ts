import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createSchedule } from "../../../src/authority/schedules/create-schedule.ts";
import { deleteSchedule } from "../../../src/authority/schedules/delete-schedule.ts";
import { pauseSchedule } from "../../../src/authority/schedules/pause-schedule.ts";
import { reviseSchedule } from "../../../src/authority/schedules/revise-schedule.ts";
import type { Uuid } from "../../../src/kernel/ids.ts";
import { findSchedule } from "../../../src/store/reads/schedules.ts";
import { createWorld, definitionOf, type World } from "../../support/world.ts";
import { bear, running, states } from "../scenes.ts";

/** As far ahead as anybody can write an instant, and in the year 10000 by UTC. */
const FAR = "9999-12-31T23:59:59-23:59";

describe("instants at the end of time", () => {
  let world: World;
  beforeEach(async () => {
    world = await createWorld();
  });
  afterEach(async () => {
    await world.check();
    await world.close();
  });

  const who = (scheduleId: Uuid) => ({ tenantId: world.tenantId, actor: "test", scheduleId });
  const statusOf = async (id: Uuid) => (await findSchedule(world.db, world.tenantId, id))!.status;
  const revise = (scheduleId: Uuid, expectedRevision: number, change: object) =>
    reviseSchedule(world.authority, {
      ...who(scheduleId),
      expectedRevision,
      change: { definition: definitionOf(change as Record<string, unknown>) },
    });

  it("are refused in a rule, whatever it is that names them", async () => {
    const near = new Date(Date.now() + 60_000).toISOString();
    for (const rule of [
      { kind: "once", at: FAR },
      { kind: "dates", at: [near, "9999-12-31T23:59:59.999Z"] },
      { kind: "interval", everyMs: 1000, anchorAt: FAR },
    ]) {
      const request = { ...who(""), name: "far", labels: {}, payload: {}, definition: definitionOf({ rule }) };
      const { scheduleId: _, ...wanted } = request;
      expect(await createSchedule(world.authority, wanted)).toMatchObject({ kind: "invalid" });
    }
  });

  it("that were accepted once cost a schedule what lies that far, and none of what is near", async () => {
    const scheduleId = await world.newSchedule({ windowMs: 1000 });
    const near = new Date(Date.now() - 60_000).toISOString();
    const rule = { kind: "dates", at: [near, "9999-12-31T23:59:59.999Z"] };
    await world.admin.query(
      `with c as (update schedule_cursor set content = null where schedule_id = $1)
       update schedule_revision set definition = jsonb_set(definition::jsonb, '{rule}', $2), content = null where schedule_id = $1`,
      [scheduleId, JSON.stringify(rule)],
    );
    await bear(world, scheduleId, 30_000);
    expect(await states(world, scheduleId)).toEqual(["queued"]);
    expect(await findSchedule(world.db, world.tenantId, scheduleId)).toMatchObject({
      fault: { message: expect.stringContaining("so far ahead") },
    });
    expect(await pauseSchedule(world.authority, who(scheduleId))).toMatchObject({ kind: "paused" });
    expect(await revise(scheduleId, 1, {})).toMatchObject({ kind: "revised" });
    expect(await deleteSchedule(world.authority, who(scheduleId))).toMatchObject({ kind: "deleted" });
  });

  it("finish a schedule that would go on there, and every verb goes on working on it", async () => {
    const rule = { kind: "afterCompletion", delayMs: 1000 } as const;
    const { scheduleId, grant } = await running(world, { rule });
    expect(await revise(scheduleId, 1, { rule, startAt: FAR })).toMatchObject({ kind: "revised" });
    await world.complete(grant);
    expect(await world.materialize([scheduleId])).toMatchObject({ heard: 1 });
    expect(await statusOf(scheduleId)).toBe("finished");
    expect(await pauseSchedule(world.authority, who(scheduleId))).toMatchObject({ kind: "not-active" });
    expect(await revise(scheduleId, 2, { rule })).toMatchObject({ kind: "revised", schedule: { status: "active" } });
    expect(await revise(scheduleId, 3, { startAt: FAR })).toMatchObject({ schedule: { status: "finished" } });
    expect(await deleteSchedule(world.authority, who(scheduleId))).toMatchObject({ kind: "deleted" });
  });
});
