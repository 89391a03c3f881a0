import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { resumeSchedule } from "../../../src/authority/schedules/resume-schedule.ts";
import { reviseSchedule } from "../../../src/authority/schedules/revise-schedule.ts";
import type { Overlap } from "../../../src/domain/definition.ts";
import { createWorld, definitionOf, type World } from "../../support/world.ts";
import { EVERY_MINUTE, failForGood, hintsOf, history, MINUTE, start, stateOf, states } from "../scenes.ts";
import { bearLater, begin, finish, hurry, missed, operationOf, runIdAt, step } from "./pasts.ts";

describe("a backfill waits its turn", () => {
  let world: World;
  beforeAll(async () => {
    world = await createWorld();
  });
  afterEach(() => world.check());
  afterAll(() => world.close());

  /** A schedule with skipped minutes whose later instants simply run. */
  async function punctualFromNowOn(minutes: number, overlap: Overlap) {
    const { scheduleId, firstAt } = await missed(world, minutes, { overlap });
    const definition = definitionOf({ rule: EVERY_MINUTE, overlap });
    await reviseSchedule(world.authority, {
      tenantId: world.tenantId,
      actor: "test",
      scheduleId,
      expectedRevision: 1,
      change: { definition },
    });
    return { scheduleId, firstAt };
  }

  /** A schedule with ten skipped minutes and one run that runs. */
  async function busy(overlap: Overlap) {
    const { scheduleId, firstAt } = await punctualFromNowOn(9, overlap);
    const runId = await bearLater(world, scheduleId, 1);
    const grant = await start(world, runId);
    const at = (n: number) => firstAt + n * MINUTE;
    return { scheduleId, at, runId, grant, past: (n: number) => runIdAt(scheduleId, at(n)) };
  }
  const backfilled = async (scheduleId: string) =>
    (await history(world, scheduleId)).filter((run) => run.trigger === "backfill").map((run) => run.state);

  it.each(["forbid", "skip", "bufferOne", "cancelRunning"] as const)(
    "under %s: behind what runs, in order, whatever the policy says of others",
    async (policy) => {
      const { scheduleId, at, runId, grant, past } = await busy({ policy });
      expect(await finish(world, await begin(world, scheduleId, at(0), at(3)))).toBe("ended");
      expect(await stateOf(world, runId)).toBe("running");
      const { rows } = await world.admin.query("select cancel_requested_at from live_run where id = $1", [runId]);
      expect(rows[0].cancel_requested_at).toBeNull();
      expect(await backfilled(scheduleId)).toEqual(["blocked", "blocked", "blocked"]);
      await world.complete(grant);
      expect(await backfilled(scheduleId)).toEqual(["queued", "blocked", "blocked"]);
      await world.complete(await start(world, past(0)));
      await world.complete(await start(world, past(1)));
      await world.complete(await start(world, past(2)));
      expect(await backfilled(scheduleId)).toEqual(["succeeded", "succeeded", "succeeded"]);
    },
  );

  it("takes the guard where it is free, and each of several slots", async () => {
    const one = await missed(world, 5, { overlap: { policy: "forbid" } });
    await finish(world, await begin(world, one.scheduleId, one.firstAt, one.firstAt + 3 * MINUTE));
    expect(await backfilled(one.scheduleId)).toEqual(["queued", "blocked", "blocked"]);
    const two = await missed(world, 5, { overlap: { policy: "allow", limit: 2 } });
    await finish(world, await begin(world, two.scheduleId, two.firstAt, two.firstAt + 3 * MINUTE));
    expect(await backfilled(two.scheduleId)).toEqual(["queued", "queued", "blocked"]);
  });

  it("bufferOne: the one that waits is replaced by the next one, what was backfilled is not", async () => {
    const { scheduleId, at, grant } = await busy({ policy: "bufferOne" });
    await finish(world, await begin(world, scheduleId, at(0), at(2)));
    const first = await bearLater(world, scheduleId, 2);
    expect(await stateOf(world, first)).toBe("blocked");
    const second = await bearLater(world, scheduleId, 3);
    expect(await stateOf(world, first)).toBe("skipped");
    expect(await stateOf(world, second)).toBe("blocked");
    expect(await backfilled(scheduleId)).toEqual(["blocked", "blocked"]);
    await world.complete(grant);
    expect(await backfilled(scheduleId)).toEqual(["queued", "blocked"]);
  });

  it("cancelRunning: the schedule's next run takes a waiting holder's place, and those behind it stay", async () => {
    const { scheduleId, firstAt } = await punctualFromNowOn(5, { policy: "cancelRunning" });
    await finish(world, await begin(world, scheduleId, firstAt, firstAt + 3 * MINUTE));
    const next = await bearLater(world, scheduleId, 1);
    expect(await stateOf(world, next)).toBe("queued");
    expect(await backfilled(scheduleId)).toEqual(["canceled", "blocked", "blocked"]);
    await world.complete(await start(world, next));
    expect(await backfilled(scheduleId)).toEqual(["canceled", "queued", "blocked"]);
  });

  it("never lets more runs of the schedule wait than its pace makes in a second", async () => {
    const { scheduleId, at, grant, past } = await busy({ policy: "forbid" });
    const id = await begin(world, scheduleId, at(0), at(6), { pacePerSecond: 2 });
    await step(world, id);
    expect(await backfilled(scheduleId)).toEqual(["blocked", "blocked"]);
    await hurry(world, id);
    expect(await step(world, id)).toBe("stepped");
    expect(await backfilled(scheduleId)).toHaveLength(2);
    expect(await operationOf(world, id)).toMatchObject({
      state: "working",
      message: expect.stringMatching(/^it waits/),
    });
    await world.complete(grant);
    await world.complete(await start(world, past(0)));
    await hurry(world, id);
    await step(world, id);
    expect(await backfilled(scheduleId)).toEqual(["succeeded", "queued", "blocked", "blocked"]);
    expect(await operationOf(world, id)).toMatchObject({ done: 4, message: null });
  });

  it("under pauseOnFailure stops with the first failure, and goes on with the resume", async () => {
    const change = { overlap: { policy: "forbid" }, pauseOnFailure: true } as const;
    const { scheduleId, firstAt } = await missed(world, 9, change);
    const id = await begin(world, scheduleId, firstAt, firstAt + 4 * MINUTE, { pacePerSecond: 2 });
    await step(world, id);
    await failForGood(world, await start(world, runIdAt(scheduleId, firstAt)));
    // The schedule has been told and has not heard: the backfill hears of it first.
    await hurry(world, id);
    expect(await step(world, id)).toBe("stepped");
    expect(await operationOf(world, id)).toMatchObject({ done: 2, message: expect.stringContaining("pauseOnFailure") });
    expect(await backfilled(scheduleId)).toEqual(["failed", "blocked"]);
    await world.check();
    await resumeSchedule(world.authority, { tenantId: world.tenantId, actor: "test", scheduleId });
    const { rows } = await world.admin.query("select held_by from live_run where schedule_id = $1", [scheduleId]);
    expect(rows).toEqual([{ held_by: "replay" }]);
    expect(await finish(world, id)).toBe("ended");
    expect(await backfilled(scheduleId)).toEqual(["failed", "queued", "blocked", "blocked"]);
  });

  it("does not wait for what a failure holds, once the schedule does not stop at failures any more", async () => {
    const change = { overlap: { policy: "forbid" }, pauseOnFailure: true } as const;
    const { scheduleId, firstAt } = await missed(world, 9, change);
    const id = await begin(world, scheduleId, firstAt, firstAt + 4 * MINUTE, { pacePerSecond: 1 });
    for (let k = 0; k < 2; k++) {
      await hurry(world, id);
      await step(world, id);
    }
    await failForGood(world, await start(world, runIdAt(scheduleId, firstAt)));
    await world.materialize([scheduleId]);
    const { rows } = await world.admin.query("select held_by from live_run where schedule_id = $1", [scheduleId]);
    expect(rows).toEqual([{ held_by: "pause" }]);
    const definition = definitionOf({ rule: EVERY_MINUTE, overlap: { policy: "forbid" }, pauseOnFailure: false });
    const request = {
      tenantId: world.tenantId,
      actor: "test",
      scheduleId,
      expectedRevision: 1,
      change: { definition },
    };
    expect(await reviseSchedule(world.authority, request)).toMatchObject({ kind: "revised" });
    for (let k = 0; k < 3; k++) {
      await hurry(world, id);
      await step(world, id);
    }
    expect(await backfilled(scheduleId)).toEqual(["failed", "blocked", "queued", "blocked"]);
    expect((await operationOf(world, id)).message).toBe(null);
  });

  it("does not guess about a holder that is ending: it looks again", async () => {
    const { scheduleId, at, grant } = await busy({ policy: "forbid" });
    const id = await begin(world, scheduleId, at(0), at(2));
    const held = world.faults.hold("complete:written");
    const end = world.complete(grant);
    await held.arrived;
    const other = world.another();
    expect(await step(world, id, other)).toBe("postponed");
    expect(await operationOf(world, id)).toMatchObject({ state: "pending", done: 0 });
    held.release();
    await end;
    expect(await finish(world, id, other)).toBe("ended");
    expect(await backfilled(scheduleId)).toEqual(["queued", "blocked"]);
  });

  it("while other runs are born, start and end: all its runs happen, once, and nobody deadlocks", async () => {
    const { scheduleId, firstAt } = await punctualFromNowOn(30, { policy: "forbid" });
    const id = await begin(world, scheduleId, firstAt, firstAt + 30 * MINUTE);
    const others = [world.authority, world.another(), world.another()] as const;
    let open = true;
    const driving = finish(world, id, others[1]).finally(() => {
      open = false;
    });
    const bearing = (async () => {
      for (let n = 1; n <= 20; n++) await bearLater(world, scheduleId, n);
    })();
    const working = (async () => {
      for (let idle = 0; idle < 3; ) {
        const grants = await world.claimAll();
        for (const grant of grants) await world.complete(grant);
        idle = grants.length === 0 && !open ? idle + 1 : 0;
      }
    })();
    expect(await driving).toBe("ended");
    await Promise.all([bearing, working]);
    for (let left = 100; (await world.live()).length > 0 && left > 0; left--) {
      // A hint that met a run in somebody's hands was put back for a moment.
      await world.makeAvailable();
      for (const grant of await world.claimAll()) await world.complete(grant);
    }
    expect(await operationOf(world, id)).toMatchObject({ done: 30, failed: 0 });
    const runs = await history(world, scheduleId);
    expect(runs.filter((run) => run.trigger === "backfill")).toHaveLength(30);
    expect(new Set(runs.map((run) => run.state))).toEqual(new Set(["succeeded"]));
    for (const { metrics } of others) {
      const codes = (await metrics.verbFaults.get()).values.map((one) => one.labels.code);
      expect(codes).not.toContain("40P01");
    }
  });

  it("by two drivers at once makes every run once", async () => {
    const { scheduleId, firstAt } = await missed(world, 40);
    const id = await begin(world, scheduleId, firstAt, firstAt + 40 * MINUTE, { pacePerSecond: 7 });
    const drivers = [world.authority, world.another(), world.another()];
    for (let n = 0; n < 8; n++) {
      await hurry(world, id);
      const outcomes = await Promise.all(drivers.map((one) => step(world, id, one)));
      expect(outcomes.filter((one) => one !== "missed").length).toBeLessThanOrEqual(1);
    }
    expect(await operationOf(world, id)).toMatchObject({ state: "done", done: 40 });
    expect(await states(world, scheduleId)).toHaveLength(40);
    const [runId] = (await history(world, scheduleId)).map((run) => run.id);
    expect(await hintsOf(world, runId!)).toHaveLength(1);
  });
});
