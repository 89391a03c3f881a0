import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { deleteSchedule } from "../../src/authority/schedules/delete-schedule.ts";
import { pauseSchedule } from "../../src/authority/schedules/pause-schedule.ts";
import { resumeSchedule } from "../../src/authority/schedules/resume-schedule.ts";
import { reviseSchedule } from "../../src/authority/schedules/revise-schedule.ts";
import { createWorld, definitionOf, type World } from "../support/world.ts";
import { away, EVERY_MINUTE, history, MINUTE, rangesOf } from "./scenes.ts";

describe("instants that were missed", () => {
  let world: World;
  beforeAll(async () => {
    world = await createWorld();
  });
  afterEach(() => world.check());
  afterAll(() => world.close());

  const who = (scheduleId: string) => ({ tenantId: world.tenantId, actor: "test", scheduleId });

  const next = async (scheduleId: string) =>
    (
      (await world.admin.query("select next_run_at from schedule_cursor where schedule_id = $1", [scheduleId])).rows[0]
        .next_run_at as Date
    ).getTime();

  it("latest: one run for the newest, one range for the rest, the next in the future", async () => {
    const { scheduleId, firstAt } = await away(world, 500);
    expect(await world.materialize([scheduleId])).toMatchObject({ runs: 1, skips: 1 });
    expect(await history(world, scheduleId)).toMatchObject([
      { scheduled_at: new Date(firstAt + 500 * MINUTE), state: "queued", trigger: "catch-up" },
    ]);
    expect(await rangesOf(world, scheduleId)).toEqual([
      { from_at: new Date(firstAt), to_at: new Date(firstAt + 499 * MINUTE), instants: 500n, reason: "misfire" },
    ]);
    expect(await next(scheduleId)).toBe(firstAt + 501 * MINUTE);
  });

  it("skip: no run; up to three contiguous instants are rows of their own", async () => {
    const { scheduleId, firstAt } = await away(world, 2, { misfire: { policy: "skip", graceMs: 0, maxCatchUp: 1 } });
    expect(await world.materialize([scheduleId])).toMatchObject({ runs: 0, skips: 3 });
    expect(await history(world, scheduleId)).toMatchObject(
      [0, 1, 2].map((n) => ({
        scheduled_at: new Date(firstAt + n * MINUTE),
        state: "skipped",
        skip_reason: "misfire",
      })),
    );
    expect(await rangesOf(world, scheduleId)).toEqual([]);
  });

  it("all: the oldest run, up to the limit, on the late lane; the rest is a range", async () => {
    const { scheduleId, firstAt } = await away(world, 20, { misfire: { policy: "all", graceMs: 0, maxCatchUp: 5 } });
    expect(await world.materialize([scheduleId])).toMatchObject({ runs: 5, skips: 1 });
    const runs = await history(world, scheduleId);
    expect(runs.map((run) => run.scheduled_at.getTime())).toEqual([0, 1, 2, 3, 4].map((n) => firstAt + n * MINUTE));
    expect(new Set(runs.map((run) => run.trigger))).toEqual(new Set(["catch-up"]));
    expect(await rangesOf(world, scheduleId)).toMatchObject([
      { from_at: new Date(firstAt + 5 * MINUTE), to_at: new Date(firstAt + 20 * MINUTE), instants: 16n },
    ]);
    expect(
      (await world.outbox())
        .filter((row) => runs.some((run) => row.runs.includes(run.id)))
        .every((row) => row.lane === 2),
    ).toBe(true);
  });

  it("late by less than the grace simply runs, whatever the policy", async () => {
    const { scheduleId } = await away(world, 2, { misfire: { policy: "skip", graceMs: 10 * MINUTE, maxCatchUp: 1 } });
    expect(await world.materialize([scheduleId])).toMatchObject({ runs: 3, skips: 0 });
    expect((await history(world, scheduleId)).every((run) => run.trigger === "schedule")).toBe(true);
  });

  it("what lies below the floor of history is a range, however little it is", async () => {
    const { scheduleId, firstAt } = await away(world, 1);
    const { rows } = await world.admin.query("select floor_at from history_floor");
    const floorAt = (rows[0].floor_at as Date).getTime();
    await world.admin.query(
      `update schedule_cursor set next_run_at = f.at, next_due_at = f.at
         from (select to_timestamp($2 / 1000.0) as at) f where schedule_id = $1`,
      [scheduleId, floorAt - 2 * MINUTE],
    );
    await world.materialize([scheduleId]);
    const [below, above] = await rangesOf(world, scheduleId);
    expect(below).toMatchObject({
      from_at: new Date(floorAt - 2 * MINUTE),
      to_at: new Date(floorAt - MINUTE),
      instants: 2n,
      reason: "history-floor",
    });
    expect(above).toMatchObject({ from_at: new Date(floorAt), to_at: new Date(firstAt), reason: "misfire" });
    expect(await history(world, scheduleId)).toMatchObject([{ scheduled_at: new Date(firstAt + MINUTE) }]);
  });

  async function paused(minutes: number, change: Parameters<World["newSchedule"]>[0] = {}) {
    const { scheduleId } = await away(world, 0, change);
    await pauseSchedule(world.authority, who(scheduleId));
    const { rows } = await world.admin.query(
      `update schedule_cursor set next_run_at = date_trunc('minute', clock_timestamp()) - $2 * interval '1 minute', last_nominal_at = null
        where schedule_id = $1 returning next_run_at`,
      [scheduleId, minutes],
    );
    await world.admin.query("delete from outbox where runs <@ (select array_agg(id) from run where schedule_id = $1)", [
      scheduleId,
    ]);
    await world.admin.query("delete from live_run where schedule_id = $1", [scheduleId]);
    await world.admin.query("delete from run where schedule_id = $1", [scheduleId]);
    return { scheduleId, firstAt: (rows[0].next_run_at as Date).getTime() };
  }

  it.each([
    ["latest", undefined, { runs: 1, skipped: 10 }],
    ["skip", undefined, { runs: 0, skipped: 11 }],
    ["all", undefined, { runs: 11, skipped: 0 }],
    ["latest", "skip", { runs: 0, skipped: 11 }],
    ["skip", "all", { runs: 11, skipped: 0 }],
  ] as const)("a pause of ten minutes under policy %s, answered with %s", async (policy, answer, plan) => {
    const { scheduleId, firstAt } = await paused(10, { misfire: { policy, graceMs: 0, maxCatchUp: 100 } });
    const resumed = await resumeSchedule(world.authority, {
      ...who(scheduleId),
      ...(answer === undefined ? {} : { misfire: answer }),
    });
    expect(resumed).toMatchObject({
      kind: "resumed",
      plan,
      schedule: { status: "active", nextRunAt: firstAt + 11 * MINUTE },
    });
    for (const range of await rangesOf(world, scheduleId)) expect(range.reason).toBe("paused");
    expect(await resumeSchedule(world.authority, who(scheduleId))).toMatchObject({ kind: "not-paused" });
  });

  it("resumed after an edit that left nothing to come, a schedule is finished", async () => {
    const { scheduleId } = await paused(10);
    const change = { definition: definitionOf({ rule: EVERY_MINUTE, endAt: "2026-01-01T00:00:00Z" }) };
    await reviseSchedule(world.authority, { ...who(scheduleId), expectedRevision: 1, change });
    const resumed = await resumeSchedule(world.authority, who(scheduleId));
    expect(resumed).toMatchObject({ kind: "resumed", schedule: { status: "finished", nextRunAt: null } });
  });

  it("an instant from before the history that is kept cannot be run if past; one within it can", async () => {
    const once = (at: string) => ({ rule: { kind: "once", at } as const, runIfPast: true });
    await expect(world.newSchedule(once("2001-01-01T00:00:00Z"))).rejects.toThrow("further back than history is kept");
    const scheduleId = await world.newSchedule(once(new Date(Date.now() - 60_000).toISOString()));
    const change = { definition: definitionOf(once("2001-01-01T00:00:00Z")) };
    expect(await reviseSchedule(world.authority, { ...who(scheduleId), expectedRevision: 1, change })).toMatchObject({
      kind: "invalid",
      fault: { field: "at", found: "2001-01-01T00:00:00Z" },
    });
  });

  it("an edit in a pause does not swallow what fell into it", async () => {
    const { scheduleId, firstAt } = await paused(10);
    const change = { definition: definitionOf({ rule: { kind: "cron", expression: "0 0 1 1 *", zone: "Etc/UTC" } }) };
    const revised = await reviseSchedule(world.authority, { ...who(scheduleId), expectedRevision: 1, change });
    expect(revised).toMatchObject({ kind: "revised", schedule: { status: "paused", nextDueAt: null } });
    expect(await rangesOf(world, scheduleId)).toEqual([
      { from_at: new Date(firstAt), to_at: new Date(firstAt + 10 * MINUTE), instants: 11n, reason: "paused" },
    ]);
    expect(await resumeSchedule(world.authority, who(scheduleId))).toMatchObject({ plan: { runs: 0, skipped: 0 } });
  });

  it("a deletion in a pause does not swallow what fell into it", async () => {
    const { scheduleId, firstAt } = await paused(10);
    expect(await deleteSchedule(world.authority, who(scheduleId))).toMatchObject({ kind: "deleted" });
    expect(await rangesOf(world, scheduleId)).toEqual([
      { from_at: new Date(firstAt), to_at: new Date(firstAt + 10 * MINUTE), instants: 11n, reason: "paused" },
    ]);
    expect(await history(world, scheduleId)).toEqual([]);
  });

  it("an edit in a pause that touches no instant leaves them for the resume", async () => {
    const { scheduleId, firstAt } = await paused(10);
    await reviseSchedule(world.authority, {
      ...who(scheduleId),
      expectedRevision: 1,
      change: { payload: { new: true } },
    });
    expect(await next(scheduleId)).toBe(firstAt);
    expect(await rangesOf(world, scheduleId)).toEqual([]);
    expect(await resumeSchedule(world.authority, who(scheduleId))).toMatchObject({ plan: { runs: 1, skipped: 10 } });
    expect(await history(world, scheduleId)).toMatchObject([{ revision: 2 }]);
  });

  it("an edit that touches no instant leaves an active cursor alone, and one that is late is told so", async () => {
    const { scheduleId } = await away(world, 0);
    await world.materialize([scheduleId]);
    const before = await next(scheduleId);
    const change = { name: "another name" };
    expect(await reviseSchedule(world.authority, { ...who(scheduleId), expectedRevision: 1, change })).toMatchObject({
      kind: "revised",
    });
    expect(await next(scheduleId)).toBe(before);
    expect(await reviseSchedule(world.authority, { ...who(scheduleId), expectedRevision: 1, change })).toMatchObject({
      kind: "conflict",
      schedule: { revision: 2 },
    });
  });
});
