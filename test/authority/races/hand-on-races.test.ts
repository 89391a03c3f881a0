import { setImmediate } from "node:timers/promises";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { completeRuns } from "../../../src/authority/attempts/complete.ts";
import type { Authority } from "../../../src/authority/authority.ts";
import { leaveToRelay } from "../../../src/authority/runs/bear.ts";
import { cancelRuns } from "../../../src/authority/runs/cancel.ts";
import { materialize } from "../../../src/authority/runs/materialize.ts";
import { runNow } from "../../../src/authority/runs/run-now.ts";
import { deleteSchedule } from "../../../src/authority/schedules/delete-schedule.ts";
import { pauseSchedule } from "../../../src/authority/schedules/pause-schedule.ts";
import { resumeSchedule } from "../../../src/authority/schedules/resume-schedule.ts";
import { createWorld, type World } from "../../support/world.ts";
import { allow, bear, makeDue, running, start, stateOf, states } from "../scenes.ts";

describe("a guard that changes hands", () => {
  let world: World;
  beforeAll(async () => {
    world = await createWorld();
  });
  afterEach(() => world.check());
  afterAll(() => world.close());

  it("materialize / complete: a run born while its holder is ending is not lost", async () => {
    const { scheduleId, grant } = await running(world);
    const second = await makeDue(world, scheduleId, 50_000);
    const held = world.faults.hold("materialize:written");
    const birth = world.materialize([scheduleId]);
    await held.arrived;
    // The holder is locked by the birth, so its end waits and then sees who was born behind it.
    const end = completeRuns(world.another(), [{ runId: grant.runId, fence: grant.fence, output: null }]);
    await world.lockWaits();
    held.release();
    expect(await birth).toMatchObject({ runs: 1 });
    expect(await end).toEqual([{ kind: "accepted" }]);
    expect(await stateOf(world, second)).toBe("queued");
  });

  it("complete / materialize: a schedule whose holder is ending is left for the next pass", async () => {
    const { scheduleId, grant } = await running(world);
    const second = await makeDue(world, scheduleId, 50_000);
    const held = world.faults.hold("complete:written");
    const end = completeRuns(world.authority, [{ runId: grant.runId, fence: grant.fence, output: null }]);
    await held.arrived;
    const other = world.another();
    expect(await materialize(other, [scheduleId], leaveToRelay)).toMatchObject({ runs: 0, undecided: 1 });
    expect(await stateOf(world, second)).toBeUndefined();
    held.release();
    await end;
    expect(await materialize(other, [scheduleId], leaveToRelay)).toMatchObject({ runs: 1, undecided: 0 });
    expect(await stateOf(world, second)).toBe("queued");
  });

  it("complete / run-now: a manual run does not guess about a guard that is let go, and has it afterwards", async () => {
    const { scheduleId, grant } = await running(world);
    const held = world.faults.hold("complete:written");
    const end = completeRuns(world.authority, [{ runId: grant.runId, fence: grant.fence, output: null }]);
    await held.arrived;
    const other = world.another();
    const manual = runNow(other, { tenantId: world.tenantId, actor: "test", scheduleId });
    await triedOnce(other, "run-now");
    held.release();
    await end;
    expect(await manual).toMatchObject({ kind: "created", state: "queued" });
  });

  it("complete / resume: what fell into the pause is settled by the resume, which looks again, and not left to a scanner", async () => {
    const { scheduleId, grant } = await running(world);
    const who = { tenantId: world.tenantId, actor: "test", scheduleId };
    await pauseSchedule(world.authority, who);
    const missed = await makeDue(world, scheduleId, 50_000);
    await world.admin.query("update schedule_cursor set next_due_at = null where schedule_id = $1", [scheduleId]);
    const held = world.faults.hold("complete:written");
    const end = completeRuns(world.authority, [{ runId: grant.runId, fence: grant.fence, output: null }]);
    await held.arrived;
    const other = world.another();
    const resume = resumeSchedule(other, who);
    await triedOnce(other, "resume-schedule");
    held.release();
    await end;
    expect(await resume).toMatchObject({ kind: "resumed", plan: { runs: 1, skipped: 0 } });
    expect(await stateOf(world, missed)).toBe("queued");
  });

  /** Resolves when the other process has ended a first transaction of the verb. */
  async function triedOnce(authority: Authority, verb: string): Promise<void> {
    const tries = async () => {
      const { values } = await authority.metrics.verbSeconds.get();
      return values.find((one) => one.metricName?.endsWith("_count") && one.labels.verb === verb)?.value ?? 0;
    };
    while ((await tries()) === 0) await setImmediate();
  }

  it("a new run never overtakes a blocked one, also when it is born while that one gets the guard", async () => {
    const { scheduleId, grant } = await running(world);
    const second = await bear(world, scheduleId, 50_000);
    const third = await makeDue(world, scheduleId, 40_000);
    const held = world.faults.hold("complete:written");
    const end = completeRuns(world.authority, [{ runId: grant.runId, fence: grant.fence, output: null }]);
    await held.arrived;
    const other = world.another();
    expect(await materialize(other, [scheduleId], leaveToRelay)).toMatchObject({ undecided: 1 });
    held.release();
    await end;
    await materialize(other, [scheduleId], leaveToRelay);
    expect(await stateOf(world, second)).toBe("queued");
    expect(await stateOf(world, third)).toBe("blocked");
  });

  it("cancel-blocked / complete: the guard goes past a sibling that is being canceled", async () => {
    const { scheduleId, grant } = await running(world);
    const second = await bear(world, scheduleId, 50_000);
    const third = await bear(world, scheduleId, 40_000);
    const held = world.faults.hold("cancel:written");
    const cancel = cancelRuns(world.authority, [{ tenantId: world.tenantId, runId: second }]);
    await held.arrived;
    const end = completeRuns(world.another(), [{ runId: grant.runId, fence: grant.fence, output: null }]);
    await world.lockWaits();
    held.release();
    expect(await cancel).toEqual([{ kind: "accepted" }]);
    expect(await end).toEqual([{ kind: "accepted" }]);
    expect([await stateOf(world, second), await stateOf(world, third)]).toEqual(["canceled", "queued"]);
  });

  it("cancel-blocked / complete: a sibling whose cancellation is rolled back gets its guard all the same", async () => {
    const { scheduleId, grant } = await running(world);
    const second = await bear(world, scheduleId, 50_000);
    const stranger = await world.stranger();
    await stranger.query("delete from live_run where id = $1", [second]);
    const end = completeRuns(world.authority, [{ runId: grant.runId, fence: grant.fence, output: null }]);
    await world.lockWaits();
    await stranger.rollback();
    await end;
    expect(await stateOf(world, second)).toBe("queued");
  });

  it("complete / cancel-blocked: a sibling that got its guard meanwhile is canceled, and hands it on", async () => {
    const { scheduleId, grant } = await running(world);
    const second = await bear(world, scheduleId, 50_000);
    const third = await bear(world, scheduleId, 40_000);
    const held = world.faults.hold("complete:written");
    const end = completeRuns(world.authority, [{ runId: grant.runId, fence: grant.fence, output: null }]);
    await held.arrived;
    const cancel = cancelRuns(world.another(), [{ tenantId: world.tenantId, runId: second }]);
    await world.lockWaits();
    held.release();
    await end;
    expect(await cancel).toEqual([{ kind: "accepted" }]);
    expect([await stateOf(world, second), await stateOf(world, third)]).toEqual(["canceled", "queued"]);
  });

  it("two cancels that cross over two schedules do not wait for each other for ever", async () => {
    const [one, two] = [await world.newSchedule(), await world.newSchedule()];
    const [holder1, waiter1] = [await bear(world, one, 60_000), await bear(world, one, 50_000)];
    const [holder2, waiter2] = [await bear(world, two, 60_000), await bear(world, two, 50_000)];
    const ask = (...ids: string[]) => ids.map((runId) => ({ tenantId: world.tenantId, runId }));
    const held = world.faults.hold("cancel:locked");
    const first = cancelRuns(world.authority, ask(holder1, waiter2));
    await held.arrived;
    const other = world.another();
    const second = cancelRuns(other, ask(holder2, waiter1));
    await world.lockWaits();
    held.release();
    for (const outcomes of [await first, await second])
      expect(outcomes.map((outcome) => outcome.kind)).toEqual(["accepted", "accepted"]);
    for (const authority of [world.authority, other]) {
      const faults = (await authority.metrics.verbFaults.get()).values.map((value) => value.labels.code);
      expect(faults).not.toContain("40P01");
    }
  });

  it("a cancel that finds a sibling held lets go of what it ends while it waits", async () => {
    const scheduleId = await world.newSchedule();
    const [holder, waiter] = [await bear(world, scheduleId, 60_000), await bear(world, scheduleId, 50_000)];
    const other = await world.admin.connect();
    try {
      await other.query("begin");
      await other.query("select from live_run where id = $1 for update", [waiter]);
      const canceled = cancelRuns(
        world.authority,
        [holder, waiter].map((runId) => ({ tenantId: world.tenantId, runId })),
      );
      await world.lockWaits();
      // Whoever holds the sibling may have to wait for its holder next.
      await other.query("select from live_run where id = $1 for update nowait", [holder]);
      await other.query("commit");
      expect((await canceled).map((outcome) => outcome.kind)).toEqual(["accepted", "accepted"]);
    } finally {
      other.release();
    }
  });

  async function twoRunning() {
    const scheduleId = await world.newSchedule(allow(2));
    const first = await bear(world, scheduleId, 60_000);
    const second = await bear(world, scheduleId, 50_000);
    const third = await bear(world, scheduleId, 40_000);
    const fourth = await bear(world, scheduleId, 30_000);
    expect(await states(world, scheduleId)).toEqual(["queued", "queued", "blocked", "blocked"]);
    return { grants: [await start(world, first), await start(world, second)] as const, third, fourth };
  }

  it("two enders under allow(2) hand their slots to two siblings, oldest first", async () => {
    const { grants, third, fourth } = await twoRunning();
    const held = world.faults.hold("complete:written");
    const [one, two] = grants.map((grant) => [{ runId: grant.runId, fence: grant.fence, output: null }]);
    const first = completeRuns(world.authority, one!);
    await held.arrived;
    const second = completeRuns(world.another(), two!);
    await world.lockWaits();
    held.release();
    expect([await first, await second]).toEqual([[{ kind: "accepted" }], [{ kind: "accepted" }]]);
    expect([await stateOf(world, third), await stateOf(world, fourth)]).toEqual(["queued", "queued"]);
  });

  it("two enders under allow(2): when the first is rolled back, the second still serves the oldest", async () => {
    const { grants, third, fourth } = await twoRunning();
    const reached = Promise.withResolvers<void>();
    const gate = Promise.withResolvers<void>();
    world.faults.once("complete:written", async () => {
      reached.resolve();
      await gate.promise;
      throw new Error("the machine died");
    });
    const [one, two] = grants.map((grant) => [{ runId: grant.runId, fence: grant.fence, output: null }]);
    const first = completeRuns(world.authority, one!).catch((error: Error) => error.message);
    await reached.promise;
    const second = completeRuns(world.another(), two!);
    await world.lockWaits();
    gate.resolve();
    expect(await first).toBe("the machine died");
    expect(await second).toEqual([{ kind: "accepted" }]);
    expect([await stateOf(world, third), await stateOf(world, fourth)]).toEqual(["queued", "blocked"]);
    expect(await completeRuns(world.authority, one!)).toEqual([{ kind: "accepted" }]);
    expect(await stateOf(world, fourth)).toBe("queued");
  });

  it("both enders in one batch serve both siblings", async () => {
    const { grants, third, fourth } = await twoRunning();
    await completeRuns(
      world.authority,
      grants.map((grant) => ({ runId: grant.runId, fence: grant.fence, output: null })),
    );
    expect([await stateOf(world, third), await stateOf(world, fourth)]).toEqual(["queued", "queued"]);
  });

  it("delete / complete with an older blocked run: the blocked one is canceled, the running one ends alone", async () => {
    const { scheduleId, grant } = await running(world);
    const second = await bear(world, scheduleId, 50_000);
    const third = await makeDue(world, scheduleId, 40_000);
    const held = world.faults.hold("delete:locked");
    const deletion = deleteSchedule(world.authority, { tenantId: world.tenantId, actor: "test", scheduleId });
    await held.arrived;
    const end = completeRuns(world.another(), [{ runId: grant.runId, fence: grant.fence, output: null }]);
    await world.lockWaits();
    held.release();
    expect(await deletion).toEqual({ kind: "deleted", canceled: 2 });
    expect(await end).toEqual([{ kind: "accepted" }]);
    expect([await stateOf(world, second), await stateOf(world, third)]).toEqual(["canceled", "canceled"]);
  });

  it("complete / delete with an older blocked run: the delete looks again, and cancels the new holder", async () => {
    const { scheduleId, grant } = await running(world);
    const second = await bear(world, scheduleId, 50_000);
    const held = world.faults.hold("complete:written");
    const end = completeRuns(world.authority, [{ runId: grant.runId, fence: grant.fence, output: null }]);
    await held.arrived;
    // The first look finds the holder ending; the second comes after it has ended.
    world.faults.once("materialize:cursors-locked", () => {});
    world.faults.once("materialize:cursors-locked", async () => {
      held.release();
      await end;
    });
    expect(await deleteSchedule(world.authority, { tenantId: world.tenantId, actor: "test", scheduleId })).toEqual({
      kind: "deleted",
      canceled: 1,
    });
    expect(await stateOf(world, second)).toBe("canceled");
  });
});
