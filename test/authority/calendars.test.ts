import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { deleteCalendar } from "../../src/authority/calendars/delete-calendar.ts";
import { putCalendar } from "../../src/authority/calendars/put-calendar.ts";
import { createSchedule } from "../../src/authority/schedules/create-schedule.ts";
import { deleteSchedule } from "../../src/authority/schedules/delete-schedule.ts";
import { reviseSchedule } from "../../src/authority/schedules/revise-schedule.ts";
import { calendarDefinitionSchema, type CalendarUse } from "../../src/domain/calendar/definition.ts";
import { createWorld, definitionOf, type World } from "../support/world.ts";
import { history } from "./scenes.ts";

const DAY = 86_400_000;
const dateOf = (at: number) => new Date(at).toISOString().slice(0, 10);
const NOTHING = { weekend: [] };

describe("a schedule's calendars", () => {
  let world: World;
  beforeAll(async () => {
    world = await createWorld();
  });
  afterEach(() => world.check());
  afterAll(() => world.close());

  const define = (is: object) => calendarDefinitionSchema.parse(is);
  /** Puts the next version in force, whatever was there. */
  async function put(name: string, is: object, tenantId = world.tenantId) {
    const { rows } = await world.admin.query("select version from calendar_head where tenant_id = $1 and name = $2", [
      tenantId,
      name,
    ]);
    const expectedVersion = rows[0]?.version ?? 0;
    return putCalendar(world.authority, { tenantId, actor: "test", name, expectedVersion, definition: define(is) });
  }
  const exclude = (name: string): CalendarUse[] => [{ name, onExcluded: "exclude" }];
  const shift = (name: string): CalendarUse[] => [{ name, onExcluded: "shift" }];
  const cursor = async (scheduleId: string) =>
    (await world.admin.query("select * from schedule_cursor where schedule_id = $1", [scheduleId])).rows[0];
  /** A minutely schedule; its next instant is moved to a whole minute of the past (or future). */
  async function minutely(calendars: CalendarUse[], change: object = {}) {
    const rule = { kind: "cron", expression: "* * * * *", zone: "Etc/UTC" } as const;
    return world.newSchedule({ rule, calendars, overlap: { policy: "allow" }, ...change });
  }
  async function standAt(scheduleId: string, at: number) {
    await world.admin.query("update schedule_cursor set next_run_at = $2, next_due_at = $2 where schedule_id = $1", [
      scheduleId,
      new Date(at),
    ]);
  }
  const now = async () =>
    Number((await world.admin.query("select extract(epoch from clock_timestamp()) * 1000 as now")).rows[0].now);
  /** Two whole minutes of one day, which have just passed. */
  async function justNow() {
    for (;;) {
      const at = Math.floor((await now()) / 60_000) * 60_000 - 60_000;
      if (dateOf(at) === dateOf(at + 120_000)) return at;
      await world.passes(at + 120_000);
    }
  }

  it("skip an excluded instant, with the reason, and the chain goes on", async () => {
    await put("holidays", NOTHING);
    const scheduleId = await minutely(exclude("holidays"));
    const at = await justNow();
    await put("holidays", { ...NOTHING, dates: [{ date: dateOf(at), name: "Today" }] });
    await standAt(scheduleId, at);
    expect(await world.materialize([scheduleId])).toMatchObject({ runs: 0, skips: 2 });
    expect(await history(world, scheduleId)).toMatchObject([
      { scheduled_at: new Date(at), state: "skipped", skip_reason: "calendar" },
      { scheduled_at: new Date(at + 60_000), state: "skipped", skip_reason: "calendar" },
    ]);
    const moved = await cursor(scheduleId);
    expect(moved.next_run_at).toEqual(new Date(at + 120_000));
    expect(moved.calendar_version).toBe(2);
    expect(moved.runs_made).toBe(0n);
  });

  it("are as they stand when the instant comes: an edit takes effect without a touch of the schedule, both ways", async () => {
    await put("edited", NOTHING);
    const scheduleId = await minutely(exclude("edited"));
    const at = await justNow();
    const planned = await cursor(scheduleId);
    const revision = (await world.admin.query("select xmin, revision from schedule where id = $1", [scheduleId])).rows;

    await put("edited", { ...NOTHING, ranges: [{ from: dateOf(at - DAY), to: dateOf(at + DAY), name: "Closed" }] });
    expect(await cursor(scheduleId)).toEqual(planned);
    await standAt(scheduleId, at + 60_000);
    expect(await world.materialize([scheduleId])).toMatchObject({ runs: 0, skips: 1 });

    const later = await justNow();
    await standAt(scheduleId, Math.max(later + 60_000, at + 120_000));
    const next = (await cursor(scheduleId)).next_run_at.getTime();
    await put("edited", { ...NOTHING, dates: [{ date: "2001-01-01" }] });
    await world.passes(next);
    expect(await world.materialize([scheduleId])).toMatchObject({ runs: 1, skips: 0 });
    expect((await history(world, scheduleId)).map((run) => run.state)).toEqual(["skipped", "queued"]);
    expect((await cursor(scheduleId)).calendar_version).toBe(3);
    expect((await world.admin.query("select xmin, revision from schedule where id = $1", [scheduleId])).rows).toEqual(
      revision,
    );
  }, 130_000);
});
