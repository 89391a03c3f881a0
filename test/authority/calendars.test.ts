import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { deleteCalendar } from "../../src/authority/calendars/delete-calendar.ts";
import { putCalendar } from "../../src/authority/calendars/put-calendar.ts";
import { deleteSchedule } from "../../src/authority/schedules/delete-schedule.ts";
import { reviseSchedule } from "../../src/authority/schedules/revise-schedule.ts";
import { type CalendarUse, calendarDefinitionSchema } from "../../src/domain/calendar/definition.ts";
import { createWorld, definitionOf, type World } from "../support/world.ts";
import { history, rangesOf, start } from "./scenes.ts";

const DAY = 86_400_000;
const EVERY_SECOND = { kind: "cron", expression: "* * * * * *", seconds: true, zone: "Etc/UTC" } as const;
const NOTHING = { weekend: [] };
const dateOf = (at: number) => new Date(at).toISOString().slice(0, 10);
const weekdayOf = (at: number) => new Date(at).getUTCDay();

describe("a schedule's calendars", () => {
  let world: World;
  beforeAll(async () => {
    world = await createWorld();
  });
  afterEach(() => world.check());
  afterAll(() => world.close());

  const define = (is: object) => calendarDefinitionSchema.parse(is);
  const closed = (at: number) => ({ ...NOTHING, dates: [{ date: dateOf(at), name: "Closed" }] });
  const exclude = (name: string): CalendarUse[] => [{ name, onExcluded: "exclude" }];
  const shift = (name: string): CalendarUse[] => [{ name, onExcluded: "shift" }];

  /** Puts the next version in force, whatever was there. */
  async function put(name: string, is: object, tenantId = world.tenantId) {
    const { rows } = await world.admin.query("select version from calendar_head where tenant_id = $1 and name = $2", [
      tenantId,
      name,
    ]);
    const expectedVersion = rows[0]?.version ?? 0;
    return putCalendar(world.authority, { tenantId, actor: "test", name, expectedVersion, definition: define(is) });
  }
  const who = (scheduleId: string) => ({ tenantId: world.tenantId, actor: "test", scheduleId });
  const cursor = async (scheduleId: string) =>
    (await world.admin.query("select * from schedule_cursor where schedule_id = $1", [scheduleId])).rows[0];
  const standAt = (scheduleId: string, at: number) =>
    world.admin.query("update schedule_cursor set next_run_at = $2, next_due_at = $2 where schedule_id = $1", [
      scheduleId,
      new Date(at),
    ]);
  const now = async (): Promise<number> =>
    Number((await world.admin.query("select extract(epoch from clock_timestamp()) * 1000 as now")).rows[0].now);
  const dueOf = async (scheduleId: string) =>
    (
      await world.admin.query(
        `select r.scheduled_at, r.due_at, r.skip_reason, l.not_before from run r left join live_run l on l.id = r.id
          where r.schedule_id = $1 order by r.scheduled_at`,
        [scheduleId],
      )
    ).rows;

  /** A second that has just passed (or comes after `inMs`), with some time around it on the same date. */
  async function secondToday(inMs = 0): Promise<number> {
    for (;;) {
      const at = Math.floor((await now()) / 1000) * 1000 + inMs;
      if (dateOf(at - 15_000) === dateOf(at + 15_000)) return at;
      await world.passes(at + 16_000);
    }
  }
  const secondly = (calendars: CalendarUse[], change: object = {}) =>
    world.newSchedule({ rule: EVERY_SECOND, calendars, overlap: { policy: "allow" }, ...change });
  /** On these weekdays, at the time of day of `at`. */
  const weekly = (at: number, weekdays: readonly number[]) =>
    ({
      ...EVERY_SECOND,
      expression: `${new Date(at).getUTCSeconds()} ${new Date(at).getUTCMinutes()} ${new Date(at).getUTCHours()} * * ${weekdays.join(",")}`,
    }) as const;

  it("skip what they exclude, with the reason, as a range where it is much, and the chain goes on", async () => {
    const at = await secondToday();
    await put("holidays", NOTHING);
    await put("holidays", closed(at));
    const scheduleId = await secondly(exclude("holidays"), { maxRuns: 1 });
    await standAt(scheduleId, at - 9000);
    expect(await world.materialize([scheduleId])).toMatchObject({ runs: 0, skips: 1 });
    const [range] = await rangesOf(world, scheduleId);
    expect(range).toMatchObject({ from_at: new Date(at - 9000), reason: "calendar" });
    const moved = await cursor(scheduleId);
    expect(moved).toMatchObject({ last_nominal_at: range!.to_at, calendar_version: 2, runs_made: 0n });
    expect(moved.next_run_at.getTime()).toBe(range!.to_at.getTime() + 1000);

    await world.passes(moved.next_run_at.getTime() + 1);
    await world.materialize([scheduleId]);
    expect((await cursor(scheduleId)).last_nominal_at.getTime()).toBeGreaterThanOrEqual(moved.next_run_at.getTime());
    expect((await history(world, scheduleId)).filter((run) => run.skip_reason !== "calendar")).toEqual([]);
    expect((await cursor(scheduleId)).runs_made).toBe(0n);
  });

  it("are taken as they stand when the instant comes: an edit works without a touch of the schedule, both ways", async () => {
    const at = await secondToday();
    await put("edited", NOTHING);
    const scheduleId = await secondly(exclude("edited"));
    const planned = await cursor(scheduleId);
    const version = async () =>
      (await world.admin.query("select xmin, revision from schedule where id = $1", [scheduleId])).rows;
    const untouched = await version();

    const exists = await put("edited", { ...NOTHING, ranges: [{ from: dateOf(at - DAY), to: dateOf(at + DAY) }] });
    expect(exists.kind).toBe("changed");
    expect(await cursor(scheduleId)).toEqual(planned);
    await world.passes(planned.next_run_at.getTime() + 1);
    await world.materialize([scheduleId]);
    const newly = await cursor(scheduleId);
    expect(newly.calendar_version).toBe(2);

    await put("edited", { ...NOTHING, yearly: [{ date: "01-01" }] });
    expect(await cursor(scheduleId)).toEqual(newly);
    await world.passes(newly.next_run_at.getTime() + 1);
    await world.materialize([scheduleId]);
    expect((await cursor(scheduleId)).calendar_version).toBe(3);
    const runs = await history(world, scheduleId);
    for (const run of runs) {
      const wasExcluded = run.scheduled_at < newly.next_run_at;
      expect([run.state, run.skip_reason]).toEqual(wasExcluded ? ["skipped", "calendar"] : ["queued", null]);
    }
    expect(new Set(runs.map((run) => run.state)).size).toBe(2);
    expect(await version()).toEqual(untouched);
  });

  it("shift an instant: its run is born when it comes, and starts when it is due and not before", async () => {
    const at = await secondToday();
    await put("shifting", closed(at));
    const scheduleId = await world.newSchedule({
      rule: weekly(at, [weekdayOf(at)]),
      calendars: shift("shifting"),
      startDeadlineMs: 60_000,
    });
    await standAt(scheduleId, at);
    // Whoever has room in the queues now has none for another day's work.
    const { runs, intents } = await world.materialize([scheduleId], { sizeOf: () => 1, publishNow: () => true });
    expect([runs, intents.map((row) => row.published_at)]).toEqual([1, [null]]);
    const dueAt = new Date(at + DAY);
    expect(await dueOf(scheduleId)).toEqual([
      { scheduled_at: new Date(at), due_at: dueAt, skip_reason: null, not_before: dueAt },
    ]);
    const run = (await history(world, scheduleId))[0]!;
    const { rows } = await world.admin.query("select available_at from outbox where runs = $1", [[run.id]]);
    expect(rows).toEqual([{ available_at: dueAt }]);
    const { rows: deadlines } = await world.admin.query("select start_deadline from live_run where id = $1", [run.id]);
    expect(deadlines).toEqual([{ start_deadline: new Date(at + DAY + 60_000) }]);
    expect((await cursor(scheduleId)).next_run_at).toEqual(new Date(at + 7 * DAY));

    // Whoever claims it all the same is told that it is not due, and its place stays.
    await expect(start(world, run.id)).rejects.toThrow("did not start");
    expect((await history(world, scheduleId))[0]!.state).toBe("queued");
    await world.admin.query("update live_run set due_at = due_at - interval '1 day' where id = $1", [run.id]);
    await world.makeAvailable();
    expect((await start(world, run.id)).runId).toBe(run.id);
  });

  it("merge what is shifted onto one day, whether one pass finds both or the second a day later", async () => {
    const at = await secondToday(2000);
    const days = { ...NOTHING, dates: [{ date: dateOf(at) }, { date: dateOf(at - DAY) }] };
    await put("long-weekend", days);
    const rule = weekly(at, [weekdayOf(at - DAY), weekdayOf(at)]);
    const both = await world.newSchedule({ rule, calendars: shift("long-weekend") });
    const second = await world.newSchedule({ rule, calendars: shift("long-weekend") });
    const alone = await world.newSchedule({ rule, calendars: shift("long-weekend") });
    const skipped = await world.newSchedule({ rule, calendars: shift("long-weekend") });
    const moved = { due_at: new Date(at + DAY), skip_reason: null };
    const yesterday = { scheduled_at: new Date(at - DAY) };
    const today = { scheduled_at: new Date(at) };
    const merged = { due_at: new Date(at), skip_reason: "calendar-merged" };

    await standAt(second, at - DAY);
    await standAt(skipped, at - DAY);
    await world.materialize([second, skipped]);
    expect(await dueOf(second)).toMatchObject([{ ...yesterday, ...moved }]);
    // Somebody's start deadline, say: the earlier instant comes to nothing after all.
    await world.admin.query("delete from outbox where runs = (select array_agg(id) from run where schedule_id = $1)", [
      skipped,
    ]);
    await world.admin.query("delete from live_run where schedule_id = $1", [skipped]);
    await world.admin.query(
      "update run set state = 'skipped', skip_reason = 'start-deadline', finished_at = clock_timestamp() where schedule_id = $1",
      [skipped],
    );

    await world.passes(at + 1);
    await standAt(both, at - DAY);
    await standAt(alone, at);
    await world.materialize([both, second, alone, skipped]);
    expect(await dueOf(both)).toMatchObject([
      { ...yesterday, ...moved },
      { ...today, ...merged },
    ]);
    expect(await dueOf(second)).toMatchObject([
      { ...yesterday, ...moved },
      { ...today, ...merged },
    ]);
    // No run of yesterday: today's instant is the one that is moved.
    expect(await dueOf(alone)).toMatchObject([{ ...today, ...moved }]);
    expect(await dueOf(skipped)).toMatchObject([
      { ...yesterday, skip_reason: "start-deadline" },
      { ...today, ...moved },
    ]);
  });

  it("are the tenant's own: another tenant's calendar of that name decides nothing", async () => {
    const at = await secondToday();
    const stranger = await world.newTenant("globex");
    await put("shared-name", NOTHING);
    await put("shared-name", closed(at), stranger);
    const ours = await secondly(exclude("shared-name"));
    const theirs = await secondly(exclude("shared-name"), { tenantId: stranger });
    await standAt(ours, at);
    await standAt(theirs, at);
    await world.materialize([ours, theirs]);
    expect((await history(world, ours))[0]!.state).toBe("queued");
    expect((await history(world, theirs))[0]).toMatchObject({ state: "skipped", skip_reason: "calendar" });
    const gone = await deleteCalendar(world.authority, { tenantId: stranger, actor: "test", name: "shared-name" });
    expect(gone).toEqual({ kind: "in-use", scheduleIds: [theirs] });
  });

  it("that vanished set aside who names them; others go on, and nothing is settled until they are back", async () => {
    const at = await secondToday();
    await put("vanishing", NOTHING);
    const faulty = await secondly(exclude("vanishing"));
    const healthy = await secondly([]);
    await world.admin.query("delete from calendar_use where calendar = 'vanishing'");
    await world.admin.query("delete from calendar_head where name = 'vanishing'");
    await standAt(faulty, at);
    await standAt(healthy, at);
    await world.materialize([faulty, healthy]);
    expect((await history(world, healthy)).length).toBeGreaterThan(0);
    expect(await history(world, faulty)).toEqual([]);
    expect(await cursor(faulty)).toMatchObject({
      fault: 'calendars: there is no calendar "vanishing"',
      next_run_at: new Date(at),
      next_due_at: null,
    });

    expect(await put("vanishing", closed(at))).toMatchObject({ kind: "created", calendar: { version: 2 } });
    await world.materialize([faulty]);
    expect(await cursor(faulty)).toMatchObject({ fault: null, calendar_version: 2 });
    expect((await cursor(faulty)).next_run_at.getTime()).toBeGreaterThan(at);
  });

  it("are changed by an edit of the schedule from then on, and the chain stays whole", async () => {
    const at = await secondToday();
    await put("open", NOTHING);
    await put("shut", closed(at));
    const scheduleId = await secondly(exclude("open"));
    const first = (await cursor(scheduleId)).next_run_at.getTime();
    await world.passes(first + 1);
    const definition = definitionOf({
      rule: EVERY_SECOND,
      overlap: { policy: "allow" },
      calendars: [...exclude("shut"), ...exclude("open")],
    });
    const revised = await reviseSchedule(world.authority, {
      ...who(scheduleId),
      expectedRevision: 1,
      change: { definition },
    });
    expect(revised).toMatchObject({ kind: "revised", schedule: { definition: { calendars: [{ name: "shut" }, {}] } } });
    const edited = await cursor(scheduleId);
    await world.passes(edited.next_run_at.getTime() + 1);
    await world.materialize([scheduleId]);
    for (const run of await history(world, scheduleId)) {
      expect(run.state).toBe(run.scheduled_at < edited.next_run_at ? "queued" : "skipped");
    }
    // Of several calendars, the sum of their versions.
    expect((await cursor(scheduleId)).calendar_version).toBe(2);
    const remove = (name: string) => deleteCalendar(world.authority, { tenantId: world.tenantId, actor: "test", name });
    expect((await remove("open")).kind).toBe("in-use");
    await deleteSchedule(world.authority, who(scheduleId));
    expect([(await remove("open")).kind, (await remove("shut")).kind]).toEqual(["deleted", "deleted"]);
  });

  it("a batch without calendars reads none", async () => {
    const scheduleId = await secondly([]);
    await standAt(scheduleId, await secondToday());
    await world.admin.query("alter table calendar_head rename to hidden_calendar_head");
    try {
      await world.materialize([scheduleId]);
    } finally {
      await world.admin.query("alter table hidden_calendar_head rename to calendar_head");
    }
    expect((await history(world, scheduleId)).length).toBeGreaterThan(0);
    expect((await cursor(scheduleId)).calendar_version).toBeNull();
  });
});

describe("a calendar", () => {
  let world: World;
  beforeAll(async () => {
    world = await createWorld();
  });
  afterAll(() => world.close());
  const put = (name: string, expectedVersion: number, is: object) =>
    putCalendar(world.authority, {
      tenantId: world.tenantId,
      actor: "test",
      name,
      expectedVersion,
      definition: calendarDefinitionSchema.parse(is),
    });
  const remove = (name: string) => deleteCalendar(world.authority, { tenantId: world.tenantId, actor: "test", name });

  it("made by several at once is made once; changed by several at once, by one", async () => {
    const dates = Array.from({ length: 6 }, (_, n) => ({ dates: [{ date: `2026-01-0${n + 1}` }] }));
    const made = await Promise.all(dates.map((is) => put("raced", 0, is)));
    expect(made.map((one) => one.kind).sort()).toEqual([...Array(5).fill("conflict"), "created"]);
    const changes = await Promise.all(
      dates.map(({ dates: [one] }) => put("raced", 1, { yearly: [{ date: one!.date.slice(5) }] })),
    );
    expect(changes.map((one) => one.kind).sort()).toEqual(["changed", ...Array(5).fill("conflict")]);
  });

  it("made by somebody between our look and our writing is theirs", async () => {
    const held = world.faults.hold("put-calendar:looked");
    const ours = put("contested", 0, { weekend: [] });
    await held.arrived;
    expect((await put("contested", 0, {})).kind).toBe("created");
    held.release();
    expect(await ours).toMatchObject({ kind: "conflict", current: { version: 1 } });
  });

  it("that a schedule is just beginning to use is not deleted", async () => {
    await put("wanted", 0, {});
    const stranger = await world.stranger();
    await stranger.query("select from calendar_head where name = 'wanted' for key share");
    await stranger.query(
      "insert into calendar_use (tenant_id, calendar, schedule_id) values ($1, 'wanted', gen_random_uuid())",
      [world.tenantId],
    );
    // An edit does not wait for those who use it.
    expect((await put("wanted", 1, { weekend: [] })).kind).toBe("changed");
    const removed = remove("wanted");
    await world.lockWaits();
    await stranger.commit();
    expect((await removed).kind).toBe("in-use");
  });

  it("that is just being deleted is not there to be used", async () => {
    await put("leaving", 0, {});
    const stranger = await world.stranger();
    await stranger.query("delete from calendar_head where name = 'leaving'");
    const made = world.newSchedule({ calendars: [{ name: "leaving", onExcluded: "exclude" }] });
    const refused = expect(made).rejects.toThrow('{"kind":"unknown-calendar","name":"leaving"}');
    await world.lockWaits();
    await stranger.commit();
    await refused;
  });
});
