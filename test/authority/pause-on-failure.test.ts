import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { completeRuns } from "../../src/authority/attempts/complete.ts";
import { failRuns } from "../../src/authority/attempts/fail.ts";
import type { Grant } from "../../src/authority/attempts/grant.ts";
import { publishOutbox } from "../../src/authority/dispatch/publish.ts";
import { fillIdleGuards } from "../../src/authority/repair/idle-guards.ts";
import { leaveToRelay } from "../../src/authority/runs/bear.ts";
import { materialize } from "../../src/authority/runs/materialize.ts";
import { runNow } from "../../src/authority/runs/run-now.ts";
import { deleteSchedule } from "../../src/authority/schedules/delete-schedule.ts";
import { pauseSchedule } from "../../src/authority/schedules/pause-schedule.ts";
import { resumeSchedule } from "../../src/authority/schedules/resume-schedule.ts";
import { reviseSchedule } from "../../src/authority/schedules/revise-schedule.ts";
import type { Uuid } from "../../src/kernel/ids.ts";
import { showId } from "../../src/kernel/ids.ts";
import { createWorld, definitionOf, type World } from "../support/world.ts";
import { replay } from "./dead-letters/letters.ts";
import { allow, bear, failForGood, liveOf, makeDue, running, start, stateOf, states } from "./scenes.ts";

const PAUSES = { pauseOnFailure: true } as const;

describe("a schedule that is paused by a failure", () => {
  let world: World;
  beforeAll(async () => {
    world = await createWorld();
  });
  afterEach(() => world.check());
  afterAll(() => world.close());

  const who = (scheduleId: Uuid) => ({ tenantId: world.tenantId, actor: "test", scheduleId });
  const succeed = (grant: Grant) => completeRuns(world.authority, [{ ...grant, output: null }]);
  const schedule = async (scheduleId: Uuid) =>
    (
      await world.admin.query(
        "select s.status, s.notes, c.next_run_at, c.next_due_at from schedule s join schedule_cursor c on c.schedule_id = s.id where s.id = $1",
        [scheduleId],
      )
    ).rows[0];
  const words = async (scheduleId: Uuid) =>
    (await world.admin.query("select runs from outbox where kind = 'schedule' and schedule_id = $1", [scheduleId]))
      .rows;
  /** What the scanner does with schedules that were told of an end. */
  const hear = (scheduleId: Uuid) => world.materialize([scheduleId]);

  it("hands nothing on: the schedule hears of it, is paused with the reason, and what waits waits for the resume", async () => {
    const { scheduleId, grant } = await running(world, PAUSES);
    const [second, third] = [await bear(world, scheduleId, 50_000), await bear(world, scheduleId, 40_000)];
    expect(await failForGood(world, grant)).toMatchObject([{ kind: "failed" }]);
    expect(await states(world, scheduleId)).toEqual(["failed", "blocked", "blocked"]);
    expect(await words(scheduleId)).toEqual([{ runs: [grant.runId] }]);
    await world.check();
    expect(await hear(scheduleId)).toMatchObject({ heard: 1, runs: 0 });
    expect(await schedule(scheduleId)).toMatchObject({
      status: "paused",
      notes: `Paused because ${showId("run", grant.runId)} failed (pauseOnFailure)`,
      next_due_at: null,
    });
    expect(await words(scheduleId)).toEqual([]);
    expect(await liveOf(world, second)).toMatchObject({ state: "blocked", held_by: "pause" });
    const { rows } = await world.admin.query(
      "select actor from audit_event where subject = $1 and action = 'schedule.pause'",
      [scheduleId],
    );
    expect(rows).toEqual([{ actor: "punctual" }]);

    await world.check();
    expect(await resumeSchedule(world.authority, who(scheduleId))).toMatchObject({
      kind: "resumed",
      // What was said of the pause is over.
      schedule: { status: "active", notes: null },
    });
    expect(await states(world, scheduleId)).toEqual(["failed", "queued", "blocked"]);
    await succeed(await start(world, second));
    await succeed(await start(world, third));
    expect(await states(world, scheduleId)).toEqual(["failed", "succeeded", "succeeded"]);
  });

  it("an instant that is due when the schedule hears of the failure falls into the pause", async () => {
    const { scheduleId, grant } = await running(world, PAUSES);
    await failForGood(world, grant);
    await makeDue(world, scheduleId, 30_000);
    expect(await hear(scheduleId)).toMatchObject({ heard: 1, runs: 0, skips: 0 });
    expect(await resumeSchedule(world.authority, who(scheduleId))).toMatchObject({ plan: { runs: 1, skipped: 0 } });
  });

  it("a fault beside it is no way around the pause", async () => {
    const { scheduleId, grant } = await running(world, PAUSES);
    await makeDue(world, scheduleId, 30_000);
    await world.admin.query(
      `update schedule_cursor set fault = 'lost its zone', fault_retry_at = clock_timestamp(), next_due_at = null
        where schedule_id = $1`,
      [scheduleId],
    );
    await failForGood(world, grant);
    expect(await hear(scheduleId)).toMatchObject({ heard: 1, runs: 0 });
    expect(await hear(scheduleId)).toMatchObject({ heard: 0, runs: 0 });
    expect(await schedule(scheduleId)).toMatchObject({ status: "paused", next_due_at: null });
  });

  it("the relay never publishes the word", async () => {
    const { scheduleId, grant } = await running(world, PAUSES);
    await failForGood(world, grant);
    const { rows } = await publishOutbox(world.authority, new Map([["short", 100]]));
    expect(rows.flatMap((row) => row.runs)).not.toContain(grant.runId);
    expect(await words(scheduleId)).toHaveLength(1);
    await hear(scheduleId);
  });

  it("what succeeds or is tried again pauses nothing", async () => {
    const { scheduleId, grant } = await running(world, PAUSES);
    const second = await bear(world, scheduleId, 50_000);
    await failRuns(world.authority, [{ ...grant, failure: { transient: true, code: "again", message: "" } }]);
    expect(await states(world, scheduleId)).toEqual(["retrying", "blocked"]);
    await world.makeAvailable();
    await succeed(await start(world, grant.runId));
    expect(await states(world, scheduleId)).toEqual(["succeeded", "queued"]);
    expect(await words(scheduleId)).toEqual([]);
    await succeed(await start(world, second));
  });

  it("the reconciler leaves what a failure holds alone, before the schedule has heard of it and after", async () => {
    const { scheduleId, grant } = await running(world, PAUSES);
    const second = await bear(world, scheduleId, 50_000);
    await failForGood(world, grant);
    expect(await fillIdleGuards(world.authority, 100)).toBe(0);
    await hear(scheduleId);
    expect(await fillIdleGuards(world.authority, 100)).toBe(0);
    expect(await stateOf(world, second)).toBe("blocked");
  });

  it("with several slots, one that succeeds after the failure hands nothing on to what is held", async () => {
    const scheduleId = await world.newSchedule({ ...allow(2), ...PAUSES });
    const ids: Uuid[] = [];
    for (let ago = 60_000; ago > 56_000; ago -= 1000) ids.push(await bear(world, scheduleId, ago));
    const [first, other] = [await start(world, ids[0]!), await start(world, ids[1]!)];
    await failForGood(world, first);
    await hear(scheduleId);
    await succeed(other);
    expect(await states(world, scheduleId)).toEqual(["failed", "succeeded", "blocked", "blocked"]);
    await world.check();
    await resumeSchedule(world.authority, who(scheduleId));
    expect(await states(world, scheduleId)).toEqual(["failed", "succeeded", "queued", "queued"]);
  });

  it("hearing of a failure / another end: who ends meanwhile waits, and then hands nothing on to what is held by then", async () => {
    const scheduleId = await world.newSchedule({ ...allow(2), ...PAUSES });
    const ids: Uuid[] = [];
    for (let ago = 60_000; ago > 56_000; ago -= 1000) ids.push(await bear(world, scheduleId, ago));
    const [first, other] = [await start(world, ids[0]!), await start(world, ids[1]!)];
    await failForGood(world, first);
    await makeDue(world, scheduleId, 30_000);
    const held = world.faults.hold("hear-ends:written");
    const hearing = hear(scheduleId);
    await held.arrived;
    const ending = completeRuns(world.another(), [{ ...other, output: null }]);
    await world.lockWaits();
    held.release();
    expect(await hearing).toMatchObject({ heard: 1, runs: 0 });
    expect(await ending).toEqual([{ kind: "accepted" }]);
    expect(await states(world, scheduleId)).toEqual(["failed", "succeeded", "blocked", "blocked"]);
  });

  it("another end / hearing of a failure: what was handed on before the schedule hears of it goes on", async () => {
    const scheduleId = await world.newSchedule({ ...allow(2), ...PAUSES });
    const ids: Uuid[] = [];
    for (let ago = 60_000; ago > 56_000; ago -= 1000) ids.push(await bear(world, scheduleId, ago));
    const [first, other] = [await start(world, ids[0]!), await start(world, ids[1]!)];
    await failForGood(world, first);
    const held = world.faults.hold("complete:written");
    const ending = succeed(other);
    await held.arrived;
    const hearing = materialize(world.another(), [scheduleId], leaveToRelay);
    await world.lockWaits();
    held.release();
    await ending;
    expect(await hearing).toMatchObject({ heard: 1 });
    expect(await schedule(scheduleId)).toMatchObject({ status: "paused" });
    expect(await states(world, scheduleId)).toEqual(["failed", "succeeded", "queued", "blocked"]);
  });

  it("a person may run it meanwhile, to see whether it works again; its success hands nothing on, its failure pauses no further", async () => {
    const { scheduleId, grant } = await running(world, PAUSES);
    const second = await bear(world, scheduleId, 50_000);
    await failForGood(world, grant);
    await hear(scheduleId);
    for (const end of [succeed, (grant: Grant) => failForGood(world, grant)]) {
      const made = await runNow(world.authority, who(scheduleId));
      expect(made).toMatchObject({ kind: "created", state: "queued" });
      await end(await start(world, (made as { runId: Uuid }).runId));
      await hear(scheduleId);
      await world.check();
      expect(await stateOf(world, second)).toBe("blocked");
    }
    await resumeSchedule(world.authority, who(scheduleId));
    expect(await stateOf(world, second)).toBe("queued");
    expect(await schedule(scheduleId)).toMatchObject({ status: "active" });
  });

  it("a failure that it hears of only at the resume does not pause it again", async () => {
    const { scheduleId, grant } = await running(world, PAUSES);
    const second = await bear(world, scheduleId, 50_000);
    await failForGood(world, grant);
    await hear(scheduleId);
    const made = (await runNow(world.authority, who(scheduleId))) as { runId: Uuid };
    await failForGood(world, await start(world, made.runId));
    expect(await words(scheduleId)).toHaveLength(1);
    expect(await resumeSchedule(world.authority, who(scheduleId))).toMatchObject({ schedule: { status: "active" } });
    expect(await words(scheduleId)).toEqual([]);
    expect(await stateOf(world, second)).toBe("queued");
  });

  it("a run from before an edit that took the wish back pauses nothing, and what waits goes on", async () => {
    const { scheduleId, grant } = await running(world, PAUSES);
    const second = await bear(world, scheduleId, 50_000);
    const change = { definition: definitionOf() };
    await reviseSchedule(world.authority, { ...who(scheduleId), expectedRevision: 1, change });
    await failForGood(world, grant);
    expect(await stateOf(world, second)).toBe("blocked");
    await world.check();
    await hear(scheduleId);
    expect(await schedule(scheduleId)).toMatchObject({ status: "active" });
    expect(await stateOf(world, second)).toBe("queued");
  });

  it("a run from before an edit that asks for it pauses it, and holds what waits", async () => {
    const { scheduleId, grant } = await running(world);
    const second = await bear(world, scheduleId, 50_000);
    const change = { definition: definitionOf(PAUSES) };
    await reviseSchedule(world.authority, { ...who(scheduleId), expectedRevision: 1, change });
    await failForGood(world, grant);
    expect(await stateOf(world, second)).toBe("blocked");
    await hear(scheduleId);
    expect(await schedule(scheduleId)).toMatchObject({ status: "paused" });
    await resumeSchedule(world.authority, who(scheduleId));
    expect(await stateOf(world, second)).toBe("queued");
  });

  it("a run from before such an edit that is replayed after it and fails again pauses it", async () => {
    const { scheduleId, grant } = await running(world);
    await failForGood(world, grant);
    const change = { definition: definitionOf(PAUSES) };
    await reviseSchedule(world.authority, { ...who(scheduleId), expectedRevision: 1, change });
    await replay(world, grant.runId);
    await failForGood(world, await start(world, grant.runId));
    await hear(scheduleId);
    expect(await schedule(scheduleId)).toMatchObject({ status: "paused" });
  });

  it("such a run hands on while a person has paused the schedule, too: what was born before the pause goes on", async () => {
    const { scheduleId, grant } = await running(world, PAUSES);
    const waiting = await bear(world, scheduleId, 50_000);
    const change = { definition: definitionOf() };
    await reviseSchedule(world.authority, { ...who(scheduleId), expectedRevision: 1, change });
    await pauseSchedule(world.authority, who(scheduleId));
    await failForGood(world, grant);
    expect(await hear(scheduleId)).toMatchObject({ heard: 1 });
    expect(await schedule(scheduleId)).toMatchObject({ status: "paused" });
    expect(await stateOf(world, waiting)).toBe("queued");
  });

  it("such a run hands on its slot, though another from before the edit still runs beside the slots there are now", async () => {
    const { scheduleId, grant } = await running(world, { ...PAUSES, ...allow(2) });
    await start(world, await bear(world, scheduleId, 50_000));
    const waiting = await bear(world, scheduleId, 40_000);
    const change = { definition: definitionOf() };
    await reviseSchedule(world.authority, { ...who(scheduleId), expectedRevision: 1, change });
    await failForGood(world, grant);
    expect(await hear(scheduleId)).toMatchObject({ heard: 1 });
    expect(await stateOf(world, waiting)).toBe("queued");
  });

  it("an edit of a paused one keeps what is held, though it brings slots; a deletion cancels it", async () => {
    const { scheduleId, grant } = await running(world, PAUSES);
    const second = await bear(world, scheduleId, 50_000);
    await failForGood(world, grant);
    const change = { definition: definitionOf({ ...PAUSES, overlap: { policy: "allow" } }) };
    expect(await reviseSchedule(world.authority, { ...who(scheduleId), expectedRevision: 1, change })).toMatchObject({
      kind: "revised",
      schedule: { status: "paused" },
    });
    expect(await stateOf(world, second)).toBe("blocked");
    await world.check();
    expect(await deleteSchedule(world.authority, who(scheduleId))).toEqual({ kind: "deleted", canceled: 1 });
  });

  it("the last run of a schedule pauses it where runs wait behind it, and the resume finishes it", async () => {
    const scheduleId = await world.newSchedule({ ...PAUSES, maxRuns: 2 });
    const [first, second] = [await bear(world, scheduleId, 60_000), await bear(world, scheduleId, 50_000)];
    expect(await schedule(scheduleId)).toMatchObject({ status: "finished" });
    await failForGood(world, await start(world, first));
    await hear(scheduleId);
    expect(await schedule(scheduleId)).toMatchObject({ status: "paused" });
    await resumeSchedule(world.authority, who(scheduleId));
    expect(await schedule(scheduleId)).toMatchObject({ status: "finished" });
    expect(await stateOf(world, second)).toBe("queued");
  });
});
