import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { putCalendar } from "../../../src/authority/calendars/put-calendar.ts";
import { estimateBackfill } from "../../../src/authority/operations/backfill/estimate.ts";
import { calendarDefinitionSchema } from "../../../src/domain/calendar/definition.ts";
import { createWorld, type World } from "../../support/world.ts";
import { history, liveOf } from "../scenes.ts";
import { begin, finish, operationOf, runIdAt } from "./pasts.ts";

const DAY = 86_400_000;
const HOUR = 3_600_000;

describe("a backfill of a schedule with calendars", () => {
  let world: World;
  beforeAll(async () => {
    world = await createWorld();
  });
  afterEach(() => world.check());
  afterAll(() => world.close());

  const midnight = () => Math.floor(Date.now() / DAY) * DAY;
  const dateOf = (at: number) => new Date(at).toISOString().slice(0, 10);

  /** Daily at noon, with a calendar that excludes the day before yesterday. */
  async function withHoliday(name: string, onExcluded: "exclude" | "shift") {
    const definition = calendarDefinitionSchema.parse({ weekend: [], dates: [{ date: dateOf(midnight() - 2 * DAY) }] });
    await putCalendar(world.authority, {
      tenantId: world.tenantId,
      actor: "test",
      name,
      expectedVersion: 0,
      definition,
    });
    return world.newSchedule({
      rule: { kind: "cron", expression: "0 12 * * *", zone: "Etc/UTC" },
      overlap: { policy: "allow" },
      calendars: [{ name, onExcluded }],
    } as never);
  }
  const range = (scheduleId: string, policy: "missing" | "all-skipped") => ({
    tenantId: world.tenantId,
    scheduleId,
    fromAt: midnight() - 4 * DAY,
    toAt: midnight(),
    policy,
  });

  it("leaves out the days that they exclude, and says so, unless everything is asked for", async () => {
    const scheduleId = await withHoliday("holidays", "exclude");
    expect(await estimateBackfill(world.authority, range(scheduleId, "missing"))).toMatchObject({
      estimate: { instants: 4, runs: 3, tally: { unrecorded: 3, "excluded:calendar": 1 } },
    });
    expect(await estimateBackfill(world.authority, range(scheduleId, "all-skipped"))).toMatchObject({
      estimate: { instants: 4, runs: 4 },
    });
    const id = await begin(world, scheduleId, midnight() - 4 * DAY, midnight());
    expect(await finish(world, id)).toBe("ended");
    expect(await operationOf(world, id)).toMatchObject({ done: 3, tally: { "excluded:calendar": 1 } });
    const days = (await history(world, scheduleId)).map((run) => dateOf(run.scheduled_at.getTime()));
    expect(days).toEqual([4, 3, 1].map((ago) => dateOf(midnight() - ago * DAY)));
  });

  it("knows of a shift onto an instant that has its own run: one run, not two", async () => {
    const scheduleId = await withHoliday("shifting", "shift");
    expect(await estimateBackfill(world.authority, range(scheduleId, "missing"))).toMatchObject({
      estimate: { instants: 4, runs: 3, tally: { "excluded:calendar-merged": 1 } },
    });
  });

  it("of a schedule with a window is due when each run would have been", async () => {
    const scheduleId = await world.newSchedule({
      rule: { kind: "cron", expression: "0 12 * * *", zone: "Etc/UTC" },
      windowMs: 6 * HOUR,
    } as never);
    const at = midnight() - DAY + 12 * HOUR;
    await finish(world, await begin(world, scheduleId, at, midnight()));
    const { due_at } = (await liveOf(world, runIdAt(scheduleId, at)))!;
    expect((due_at as Date).getTime()).toBeGreaterThanOrEqual(at);
    expect((due_at as Date).getTime()).toBeLessThan(at + 6 * HOUR);
  });
});
