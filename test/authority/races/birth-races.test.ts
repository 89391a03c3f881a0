import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import type { Authority } from "../../../src/authority/authority.ts";
import { leaveToRelay } from "../../../src/authority/runs/bear.ts";
import { materialize } from "../../../src/authority/runs/materialize.ts";
import { deleteSchedule } from "../../../src/authority/schedules/delete-schedule.ts";
import { pauseSchedule } from "../../../src/authority/schedules/pause-schedule.ts";
import { reviseSchedule } from "../../../src/authority/schedules/revise-schedule.ts";
import { createWorld, definitionOf, type World } from "../../support/world.ts";
import { history, makeDue, stateOf } from "../scenes.ts";

describe("births that meet other verbs", () => {
  let world: World;
  beforeAll(async () => {
    world = await createWorld();
  });
  afterEach(() => world.check());
  afterAll(() => world.close());

  const who = (scheduleId: string) => ({ tenantId: world.tenantId, actor: "test", scheduleId });
  const cursor = async (scheduleId: string) =>
    (
      await world.admin.query("select next_run_at, next_due_at from schedule_cursor where schedule_id = $1", [
        scheduleId,
      ])
    ).rows[0];

  it("two scanners materialise one due schedule: exactly one run, and the second does not wait for the first", async () => {
    const scheduleId = await world.newSchedule();
    await makeDue(world, scheduleId, 5000);
    const held = world.faults.hold("materialize:written");
    const first = world.materialize([scheduleId]);
    await held.arrived;
    expect(await materialize(world.another(), [scheduleId], leaveToRelay)).toMatchObject({ runs: 0, skips: 0 });
    held.release();
    expect(await first).toMatchObject({ runs: 1 });
    expect(await materialize(world.another(), [scheduleId], leaveToRelay)).toMatchObject({ runs: 0 });
    expect(await history(world, scheduleId)).toHaveLength(1);
    expect(await world.outbox().then((rows) => rows.filter((row) => row.runs.length > 0))).toHaveLength(1);
  });

  it("many scanners over many due schedules: each instant once", async () => {
    const ids = await Promise.all(Array.from({ length: 20 }, () => world.newSchedule()));
    await Promise.all(ids.map((id) => makeDue(world, id, 5000)));
    const scanners = [world.another(), world.another(), world.another()];
    const done = await Promise.all(
      scanners.flatMap((one) => [
        materialize(one, ids, leaveToRelay),
        materialize(one, [...ids].reverse(), leaveToRelay),
      ]),
    );
    expect(done.reduce((sum, one) => sum + one.runs, 0)).toBe(20);
    for (const id of ids) expect(await history(world, id)).toHaveLength(1);
  });

  it("an instant that an earlier life of the cursor has born already is the same run, with one live row", async () => {
    const scheduleId = await world.newSchedule();
    const runId = await makeDue(world, scheduleId, 5000);
    await world.materialize([scheduleId]);
    // As a restore of the cursor alone would leave it.
    const { rows } = await world.admin.query("select scheduled_at from run where id = $1", [runId]);
    await world.admin.query(
      "update schedule_cursor set next_run_at = $2, next_due_at = $2, last_nominal_at = null, runs_made = 0 where schedule_id = $1",
      [scheduleId, rows[0].scheduled_at],
    );
    await world.materialize([scheduleId]);
    expect(await history(world, scheduleId)).toHaveLength(1);
    expect((await world.outbox()).filter((row) => row.runs.includes(runId))).toHaveLength(1);
  });

  it.each(["forbid", "bufferOne", "skip", "cancelRunning"] as const)(
    "%s: a cursor that walks ended instants again blocks no new run behind nobody",
    async (policy) => {
      const scheduleId = await world.newSchedule({
        rule: { kind: "interval", everyMs: 1000, anchorAt: 0 },
        overlap: { policy },
        misfire: { policy: "all", graceMs: 60_000, maxCatchUp: 10 },
      });
      const at = await world.makeDue(scheduleId, 2000);
      await world.materialize([scheduleId]);
      for (let round = 0; round < 9; round++) for (const grant of await world.claimAll()) await world.complete(grant);
      const before = await history(world, scheduleId);
      await world.passes(Date.now() + 1000);
      await world.admin.query(
        "update schedule_cursor set next_run_at = $2, next_due_at = $2, last_nominal_at = null where schedule_id = $1",
        [scheduleId, new Date(at)],
      );
      await world.materialize([scheduleId]);
      const after = await history(world, scheduleId);
      expect(after.length).toBeGreaterThan(before.length);
      expect((await world.live()).filter((run) => run.guard === scheduleId)).toHaveLength(1);
      await deleteSchedule(world.authority, who(scheduleId));
    },
  );

  it("what one transaction has no budget for keeps its cursor, and comes next", async () => {
    const ids: string[] = [];
    for (let n = 0; n < 7; n++) {
      const id = await world.newSchedule({
        rule: { kind: "interval", everyMs: 1000, anchorAt: 0 },
        overlap: { policy: "allow" },
        misfire: { policy: "latest", graceMs: 3_600_000, maxCatchUp: 1 },
      });
      await makeDue(world, id, 1_000_000);
      ids.push(id);
    }
    // A plan has a thousand runs at most, a transaction some three thousand.
    const first = await world.materialize(ids);
    expect(first).toMatchObject({ runs: 3000, unplanned: { length: 4 } });
    const second = await world.materialize(first.unplanned);
    expect(second).toMatchObject({ runs: 3000, unplanned: { length: 1 } });
    expect(await world.materialize(second.unplanned)).toMatchObject({ runs: 1000, unplanned: [] });
    for (const id of ids) await deleteSchedule(world.authority, who(id));
  });

  it("an edit while an instant is due leaves that instant to the old revision", async () => {
    const scheduleId = await world.newSchedule({ payload: { version: "old" } });
    const runId = await makeDue(world, scheduleId, 5000);
    const change = {
      definition: definitionOf({ rule: { kind: "cron", expression: "30 3 * * *", zone: "Etc/UTC" } }),
      payload: { version: "new" },
    };
    const revised = await reviseSchedule(world.authority, { ...who(scheduleId), expectedRevision: 1, change });
    expect(revised).toMatchObject({ kind: "revised", settled: 1, schedule: { revision: 2 } });
    expect(await history(world, scheduleId)).toMatchObject([{ id: runId, state: "queued", revision: 1 }]);
    const grants = await world.claimAll();
    expect(grants.find((one) => one.runId === runId)).toMatchObject({ payload: { version: "old" } });
    const { next_run_at } = await cursor(scheduleId);
    expect([next_run_at.getUTCHours(), next_run_at.getUTCMinutes()]).toEqual([3, 30]);
    expect(next_run_at.getTime()).toBeGreaterThan(Date.now() - 1000);
  });

  it("an edit that comes while a scanner is at the schedule waits, and finds the instant settled", async () => {
    const scheduleId = await world.newSchedule();
    const runId = await makeDue(world, scheduleId, 5000);
    const held = world.faults.hold("materialize:written");
    const scanning = world.materialize([scheduleId]);
    await held.arrived;
    const change = { definition: definitionOf({ rule: { kind: "cron", expression: "30 3 * * *", zone: "Etc/UTC" } }) };
    const editing = reviseSchedule(world.another(), { ...who(scheduleId), expectedRevision: 1, change });
    await world.lockWaits();
    held.release();
    expect(await scanning).toMatchObject({ runs: 1 });
    expect(await editing).toMatchObject({ kind: "revised", settled: 0 });
    expect(await history(world, scheduleId)).toMatchObject([{ id: runId, revision: 1 }]);
  });

  it("a scanner that comes while an edit is at the schedule leaves it alone", async () => {
    const scheduleId = await world.newSchedule();
    const runId = await makeDue(world, scheduleId, 5000);
    const held = world.faults.hold("materialize:written");
    const editing = reviseSchedule(world.authority, {
      ...who(scheduleId),
      expectedRevision: 1,
      change: { payload: { a: 1 } },
    });
    await held.arrived;
    expect(await materialize(world.another(), [scheduleId], leaveToRelay)).toMatchObject({ runs: 0 });
    held.release();
    expect(await editing).toMatchObject({ kind: "revised", settled: 1 });
    expect(await history(world, scheduleId)).toMatchObject([{ id: runId, revision: 1 }]);
  });

  it.each([
    [
      "an edit",
      (authority: Authority, scheduleId: string) =>
        reviseSchedule(authority, { ...who(scheduleId), expectedRevision: 1, change: { payload: { a: 1 } } }),
      { kind: "revised", settled: 1 },
    ],
    [
      "a pause",
      (authority: Authority, scheduleId: string) => pauseSchedule(authority, who(scheduleId)),
      { kind: "paused", settled: 1 },
    ],
    [
      "a deletion",
      (authority: Authority, scheduleId: string) => deleteSchedule(authority, who(scheduleId)),
      { kind: "deleted", canceled: 1 },
    ],
  ])("a scanner that comes while %s has only begun leaves the schedule alone", async (_, change, outcome) => {
    const scheduleId = await world.newSchedule();
    const runId = await makeDue(world, scheduleId, 5000);
    const held = world.faults.hold("materialize:cursors-locked");
    const changing = change(world.authority, scheduleId);
    await held.arrived;
    const other = world.another();
    expect(await materialize(other, [scheduleId], leaveToRelay)).toMatchObject({ runs: 0, skips: 0 });
    held.release();
    expect(await changing).toMatchObject(outcome);
    expect(await materialize(other, [scheduleId], leaveToRelay)).toMatchObject({ runs: 0, skips: 0 });
    expect(await history(world, scheduleId)).toMatchObject([{ id: runId, revision: 1 }]);
  });

  it("a pause settles what is due and takes the schedule out of the due walk", async () => {
    const scheduleId = await world.newSchedule();
    const runId = await makeDue(world, scheduleId, 5000);
    const held = world.faults.hold("materialize:written");
    const scanning = world.materialize([scheduleId]);
    await held.arrived;
    const pausing = pauseSchedule(world.another(), who(scheduleId));
    await world.lockWaits();
    held.release();
    await scanning;
    expect(await pausing).toMatchObject({ kind: "paused", settled: 0 });

    const other = await world.newSchedule();
    const otherRun = await makeDue(world, other, 5000);
    expect(await pauseSchedule(world.authority, who(other))).toMatchObject({ kind: "paused", settled: 1 });
    expect(await pauseSchedule(world.authority, who(other))).toMatchObject({ kind: "not-active" });
    expect(await stateOf(world, runId)).toBe("queued");
    expect(await stateOf(world, otherRun)).toBe("queued");
    expect(await cursor(other)).toMatchObject({ next_due_at: null, next_run_at: expect.any(Date) });
    expect(await world.materialize([scheduleId, other])).toMatchObject({ runs: 0, skips: 0 });
  });

  it("a delete settles what is due, then cancels it: the instant is told, not forgotten", async () => {
    const scheduleId = await world.newSchedule();
    const runId = await makeDue(world, scheduleId, 5000);
    const held = world.faults.hold("materialize:written");
    const deleting = deleteSchedule(world.authority, who(scheduleId));
    await held.arrived;
    expect(await materialize(world.another(), [scheduleId], leaveToRelay)).toMatchObject({ runs: 0 });
    held.release();
    expect(await deleting).toEqual({ kind: "deleted", canceled: 1 });
    expect(await stateOf(world, runId)).toBe("canceled");
    expect(await deleteSchedule(world.authority, who(scheduleId))).toEqual({ kind: "not-found" });
    expect((await world.claimAll()).some((grant) => grant.runId === runId)).toBe(false);
  });
});
