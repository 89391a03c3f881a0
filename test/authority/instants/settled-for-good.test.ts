import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { completeRuns } from "../../../src/authority/attempts/complete.ts";
import { putCalendar } from "../../../src/authority/calendars/put-calendar.ts";
import { deleteSchedule } from "../../../src/authority/schedules/delete-schedule.ts";
import { pauseSchedule } from "../../../src/authority/schedules/pause-schedule.ts";
import { resumeSchedule } from "../../../src/authority/schedules/resume-schedule.ts";
import { reviseSchedule } from "../../../src/authority/schedules/revise-schedule.ts";
import { calendarDefinitionSchema } from "../../../src/domain/calendar/definition.ts";
import { deriveRunId, type Uuid } from "../../../src/kernel/ids.ts";
import { createWorld, definitionOf, type World } from "../../support/world.ts";
import { failForGood, history, makeDue, rangesOf, running, start } from "../scenes.ts";

const PAUSES = { pauseOnFailure: true } as const;
const cron = (expression: string) => ({ rule: { kind: "cron", expression, zone: "Etc/UTC" } as const });
const DAY = 86_400_000;

/** A chain ends at an edit of what instants are made of, and at a deletion: nothing of it may be lost, nor begun anew. */
describe("what is settled for good", () => {
  let world: World;
  beforeAll(async () => {
    world = await createWorld();
  });
  afterEach(() => world.check());
  afterAll(() => world.close());

  const who = (scheduleId: Uuid) => ({ tenantId: world.tenantId, actor: "test", scheduleId });
  const revise = (scheduleId: Uuid, change: Parameters<typeof definitionOf>[0]) =>
    reviseSchedule(world.authority, {
      ...who(scheduleId),
      expectedRevision: 1,
      change: { definition: definitionOf(change) },
    });
  const remove = (scheduleId: Uuid) => deleteSchedule(world.authority, who(scheduleId));
  const status = async (scheduleId: Uuid) =>
    (await world.admin.query("select status from schedule where id = $1", [scheduleId])).rows[0].status;
  const words = async (scheduleId: Uuid) =>
    (await world.admin.query("select 1 from outbox where kind = 'schedule' and schedule_id = $1", [scheduleId])).rows
      .length;
  /** The verb has heard of what was told so far; now this happens, before it settles. */
  const meanwhile = (deed: () => Promise<unknown>) =>
    world.faults.once("materialize:cursors-locked", async () => {
      await deed();
    });
  /** An instant of a paused schedule has come and gone; answers the id of its run or skip. */
  async function fallIntoPause(scheduleId: Uuid): Promise<Uuid> {
    const { rows } = await world.admin.query(
      `update schedule_cursor set next_run_at = date_trunc('second', clock_timestamp() - interval '30 seconds'), awaits_end = false
        where schedule_id = $1 returning next_run_at`,
      [scheduleId],
    );
    return deriveRunId(scheduleId, "schedule", rows[0].next_run_at.getTime());
  }
  const fateOf = async (scheduleId: Uuid, runId: Uuid) =>
    (await history(world, scheduleId)).find((run) => run.id === runId);

  it("a failure told during a deletion loses no due instant; the word left is cleared away", async () => {
    const { scheduleId, grant } = await running(world, PAUSES);
    const due = await makeDue(world, scheduleId, 30_000);
    meanwhile(() => failForGood(world, grant));
    expect(await remove(scheduleId)).toEqual({ kind: "deleted", canceled: 1 });
    expect(await fateOf(scheduleId, due)).toMatchObject({ state: "canceled" });
    expect(await words(scheduleId)).toBe(1);
    expect(await world.materialize([scheduleId])).toMatchObject({ heard: 1, runs: 0, skips: 0 });
    expect([await words(scheduleId), await status(scheduleId)]).toEqual([0, "deleted"]);
  });

  it("a failure told during an edit loses no due instant, and pauses at the next look", async () => {
    const { scheduleId, grant } = await running(world, PAUSES);
    const due = await makeDue(world, scheduleId, 30_000);
    meanwhile(() => failForGood(world, grant));
    expect(await revise(scheduleId, { ...PAUSES, ...cron("5 * * * *") })).toMatchObject({
      kind: "revised",
      schedule: { status: "active" },
    });
    expect(await fateOf(scheduleId, due)).toMatchObject({ state: "queued", revision: 1 });
    expect(await world.materialize([scheduleId])).toMatchObject({ heard: 1 });
    expect(await status(scheduleId)).toBe("paused");
  });

  it.each([
    ["a deletion", remove],
    ["an edit", (scheduleId: Uuid) => revise(scheduleId, { ...PAUSES, ...cron("5 * * * *") })],
  ])("a failure told during %s of what a person has paused loses no instant of the pause", async (_, end) => {
    const { scheduleId, grant } = await running(world, PAUSES);
    await pauseSchedule(world.authority, who(scheduleId));
    const due = await fallIntoPause(scheduleId);
    meanwhile(() => failForGood(world, grant));
    await end(scheduleId);
    expect(await fateOf(scheduleId, due)).toMatchObject({ state: "skipped", skip_reason: "paused" });
  });

  it("an end told during the edit of a paused one that follows ends moves no instant of the pause", async () => {
    const follows = (delayMs: number) => ({ rule: { kind: "afterCompletion", delayMs } as const });
    const { scheduleId, grant } = await running(world, follows(1_000));
    await pauseSchedule(world.authority, who(scheduleId));
    const due = await fallIntoPause(scheduleId);
    meanwhile(() => completeRuns(world.authority, [{ ...grant, output: null }]));
    expect(await revise(scheduleId, follows(2_000))).toMatchObject({ kind: "revised", schedule: { status: "paused" } });
    expect(await fateOf(scheduleId, due)).toMatchObject({ state: "skipped", skip_reason: "paused" });
    expect(await world.materialize([scheduleId])).toMatchObject({ heard: 1, runs: 0 });
  });

  it("a failure told during a resume or a pause is heard after it: the answer says what was done", async () => {
    const { scheduleId, grant } = await running(world, PAUSES);
    await pauseSchedule(world.authority, who(scheduleId));
    const due = await fallIntoPause(scheduleId);
    meanwhile(() => failForGood(world, grant));
    expect(await resumeSchedule(world.authority, who(scheduleId))).toMatchObject({
      kind: "resumed",
      schedule: { status: "active" },
      plan: { runs: 1, skipped: 0 },
    });
    const second = await start(world, due);
    await world.materialize([scheduleId]);
    expect(await status(scheduleId)).toBe("paused");
    await resumeSchedule(world.authority, who(scheduleId));
    const late = await makeDue(world, scheduleId, 10_000);
    meanwhile(() => failForGood(world, second));
    expect(await pauseSchedule(world.authority, who(scheduleId))).toMatchObject({ kind: "paused", settled: 1 });
    expect(await fateOf(scheduleId, late)).toMatchObject({ skip_reason: null });
  });

  it.each([
    ["edited", (scheduleId: Uuid, change: object) => revise(scheduleId, { ...change, ...cron("5 * * * *") })],
    ["deleted", remove],
    [
      "edited, though an earlier release left the catch-up on its cursor",
      async (scheduleId: Uuid, change: object) => {
        await world.admin.query(
          `update schedule_cursor set catch_up_until = clock_timestamp(), caught_up = 250, catch_up_reason = 'misfire'
            where schedule_id = $1`,
          [scheduleId],
        );
        return revise(scheduleId, { ...change, ...cron("5 * * * *") });
      },
    ],
  ])("a catch-up that a failure has stopped stays stopped when the paused schedule is %s", async (_, end) => {
    const change = { ...PAUSES, misfire: { policy: "all", graceMs: 0, maxCatchUp: 1_000 } as const };
    const secondly = { kind: "cron", expression: "* * * * * *", seconds: true, zone: "Etc/UTC" } as const;
    const scheduleId = await world.newSchedule({ ...change, rule: secondly });
    await world.makeDue(scheduleId, 600_000);
    await world.materialize([scheduleId]);
    await failForGood(world, await start(world, (await history(world, scheduleId))[0]!.id));
    await world.materialize([scheduleId]);
    expect(await status(scheduleId)).toBe("paused");
    const { rows } = await world.admin.query(
      "select catch_up_until, caught_up, catch_up_reason from schedule_cursor where schedule_id = $1",
      [scheduleId],
    );
    expect(rows).toEqual([{ catch_up_until: null, caught_up: 0, catch_up_reason: null }]);
    await end(scheduleId, change);
    expect((await history(world, scheduleId)).filter((run) => run.state !== "skipped")).toHaveLength(250);
    expect((await rangesOf(world, scheduleId)).map((range) => range.reason)).toEqual(["paused"]);
  });

  it("what fell into a pause is skipped, though a window would have it due only later", async () => {
    const change = { windowMs: 20 * 3_600_000 };
    const scheduleId = await world.newSchedule({ ...change, ...cron("0 0 1 * *") });
    await pauseSchedule(world.authority, who(scheduleId));
    const due = await fallIntoPause(scheduleId);
    await revise(scheduleId, { ...change, ...cron("0 0 2 * *") });
    expect(await history(world, scheduleId)).toMatchObject([{ id: due, state: "skipped", skip_reason: "paused" }]);
  });

  it.each([
    ["shift", "paused"],
    ["exclude", "calendar"],
  ] as const)("what fell into a pause is skipped, though a calendar says %s: as %s", async (onExcluded, reason) => {
    const day = (n: number) => new Date(Date.now() + n * DAY).toISOString().slice(0, 10);
    const definition = calendarDefinitionSchema.parse({ weekend: [], ranges: [{ from: day(-1), to: day(1) }] });
    await putCalendar(world.authority, { ...who(""), name: onExcluded, expectedVersion: 0, definition });
    const change = { calendars: [{ name: onExcluded, onExcluded }] };
    const scheduleId = await world.newSchedule({ ...change, ...cron("0 0 1 1 *") });
    await pauseSchedule(world.authority, who(scheduleId));
    const due = await fallIntoPause(scheduleId);
    await revise(scheduleId, { ...change, ...cron("0 0 2 1 *") });
    expect(await history(world, scheduleId)).toMatchObject([{ id: due, state: "skipped", skip_reason: reason }]);
  });
});
