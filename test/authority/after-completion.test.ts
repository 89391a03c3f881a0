import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { completeRuns } from "../../src/authority/attempts/complete.ts";
import { failRuns } from "../../src/authority/attempts/fail.ts";
import type { Grant } from "../../src/authority/attempts/grant.ts";
import { restoreLostEnds } from "../../src/authority/repair/lost-ends.ts";
import { fromTheBeginning, restoreLostLiveRows } from "../../src/authority/repair/lost-live-rows.ts";
import { cancelRuns } from "../../src/authority/runs/cancel.ts";
import { runNow } from "../../src/authority/runs/run-now.ts";
import { deleteSchedule } from "../../src/authority/schedules/delete-schedule.ts";
import { pauseSchedule } from "../../src/authority/schedules/pause-schedule.ts";
import { resumeSchedule } from "../../src/authority/schedules/resume-schedule.ts";
import { reviseSchedule } from "../../src/authority/schedules/revise-schedule.ts";
import type { Definition } from "../../src/domain/definition.ts";
import type { Uuid } from "../../src/kernel/ids.ts";
import { scannerOf } from "../loops/scanning.ts";
import { createWorld, definitionOf, type World } from "../support/world.ts";
import { replay } from "./dead-letters/letters.ts";
import { bear, failForGood, history, running, start, states } from "./scenes.ts";

const MINUTE = 60_000;
const delayed = (delayMs: number) => ({ rule: { kind: "afterCompletion", delayMs } as const });

describe("a schedule that runs so long after its last run ended", () => {
  let world: World;
  beforeAll(async () => {
    world = await createWorld();
  });
  afterEach(() => world.check());
  afterAll(() => world.close());

  const who = (scheduleId: Uuid) => ({ tenantId: world.tenantId, actor: "test", scheduleId });
  const succeed = (grant: Grant) => completeRuns(world.authority, [{ ...grant, output: null }]);
  const hear = (scheduleId: Uuid) => world.materialize([scheduleId]);
  const words = async (scheduleId: Uuid) =>
    (await world.admin.query("select id from outbox where kind = 'schedule' and schedule_id = $1", [scheduleId])).rows;
  async function cursor(scheduleId: Uuid) {
    const { rows } = await world.admin.query(
      `select s.status, c.next_run_at, c.next_due_at, c.awaits_end
         from schedule s join schedule_cursor c on c.schedule_id = s.id where s.id = $1`,
      [scheduleId],
    );
    const [{ status, next_run_at, next_due_at, awaits_end }] = rows;
    const ms = (at: Date | null) => at?.getTime() ?? null;
    return { status, nextRunAt: ms(next_run_at), nextDueAt: ms(next_due_at), awaitsEnd: awaits_end };
  }
  const endOf = async (runId: Uuid) => Math.floor(((await world.run(runId)).finished_at as Date).getTime());
  const newest = async (scheduleId: Uuid) => (await history(world, scheduleId)).at(-1)!.id;

  /** Its first run runs: it was due at once. */
  async function begun(delayMs: number, change: Partial<Definition> = {}) {
    const scheduleId = await world.newSchedule({ ...delayed(delayMs), ...change });
    const { nextRunAt } = await cursor(scheduleId);
    await world.passes(nextRunAt!);
    await hear(scheduleId);
    return { scheduleId, grant: await start(world, await newest(scheduleId)) };
  }

  it("begins at once, awaits the end while it runs, and then knows its next instant", async () => {
    const { scheduleId, grant } = await begun(5 * MINUTE);
    expect(await cursor(scheduleId)).toEqual({ status: "active", nextRunAt: null, nextDueAt: null, awaitsEnd: true });
    await succeed(grant);
    expect(await words(scheduleId)).toHaveLength(1);
    expect(await hear(scheduleId)).toMatchObject({ heard: 1, runs: 0 });
    const nextRunAt = (await endOf(grant.runId)) + 5 * MINUTE;
    expect(await cursor(scheduleId)).toEqual({ status: "active", nextRunAt, nextDueAt: nextRunAt, awaitsEnd: false });
    expect(await words(scheduleId)).toEqual([]);
  });

  it("begins at startAt, and ends with endAt", async () => {
    const startAt = new Date(Math.floor(Date.now()) + 60 * MINUTE);
    const later = await world.newSchedule({ ...delayed(1000), startAt: startAt.toISOString() });
    expect(await cursor(later)).toMatchObject({ nextRunAt: startAt.getTime() });
    const endAt = new Date(Date.now() + 10_000).toISOString();
    const { scheduleId, grant } = await begun(MINUTE, { endAt });
    await succeed(grant);
    await hear(scheduleId);
    expect(await cursor(scheduleId)).toMatchObject({ status: "finished", nextRunAt: null, awaitsEnd: false });
  });

  it("goes on by itself, run after run, each so long after the end of the one before", async () => {
    const { scheduleId, grant } = await begun(20);
    const scanner = scannerOf(world.authority);
    let at = grant;
    for (let n = 0; n < 3; n++) {
      await succeed(at);
      // The scanner finds what it was told of, without a cursor that is due.
      for (const seen = at.runId; (await newest(scheduleId)) === seen; ) await scanner.pass();
      const [run] = (await history(world, scheduleId)).slice(-1);
      expect(run!.scheduled_at.getTime()).toBe((await endOf(at.runId)) + 20);
      at = await start(world, run!.id);
    }
    await succeed(at);
    await scanner.leave();
    expect(await states(world, scheduleId)).toEqual(["succeeded", "succeeded", "succeeded", "succeeded"]);
  });

  it.each(["failed", "canceled", "skipped"] as const)("a run that ended as %s is followed as well", async (state) => {
    const change = state === "skipped" ? { startDeadlineMs: 1000 } : {};
    const scheduleId = await world.newSchedule({ ...delayed(MINUTE), ...change });
    await world.passes((await cursor(scheduleId)).nextRunAt!);
    await hear(scheduleId);
    const runId = await newest(scheduleId);
    if (state === "failed") {
      const failure = { transient: false, code: "broken", message: "" };
      await failRuns(world.authority, [{ ...(await start(world, runId)), failure }]);
    } else if (state === "canceled") {
      await cancelRuns(world.authority, [{ tenantId: world.tenantId, runId }] as never);
    } else {
      await world.admin.query(
        "update live_run set start_deadline = clock_timestamp() - interval '1 ms' where id = $1",
        [runId],
      );
      await world.claimAll();
    }
    expect(await states(world, scheduleId)).toEqual([state]);
    await hear(scheduleId);
    expect(await cursor(scheduleId)).toMatchObject({ nextRunAt: (await endOf(runId)) + MINUTE });
  });

  it("a manual run beside it makes no second chain: the next instant follows the last end there was", async () => {
    const { scheduleId, grant } = await begun(MINUTE, { overlap: { policy: "allow" } });
    const made = (await runNow(world.authority, who(scheduleId))) as { runId: Uuid };
    const manual = await start(world, made.runId);
    await succeed(grant);
    await hear(scheduleId);
    // One of its runs is open yet.
    expect(await cursor(scheduleId)).toMatchObject({ nextRunAt: null, awaitsEnd: true });
    await succeed(manual);
    await hear(scheduleId);
    expect(await cursor(scheduleId)).toMatchObject({ nextRunAt: (await endOf(manual.runId)) + MINUTE });

    const again = (await runNow(world.authority, who(scheduleId))) as { runId: Uuid };
    await succeed(await start(world, again.runId));
    await hear(scheduleId);
    expect(await cursor(scheduleId)).toMatchObject({
      nextRunAt: (await endOf(again.runId)) + MINUTE,
      awaitsEnd: false,
    });
    expect(await states(world, scheduleId)).toEqual(["succeeded", "succeeded", "succeeded"]);
  });

  it("two ends that it hears of together bring one instant, after the later", async () => {
    const { scheduleId, grant } = await begun(MINUTE, { overlap: { policy: "allow" } });
    const made = (await runNow(world.authority, who(scheduleId))) as { runId: Uuid };
    await succeed(grant);
    await succeed(await start(world, made.runId));
    expect(await hear(scheduleId)).toMatchObject({ heard: 2 });
    expect(await cursor(scheduleId)).toMatchObject({ nextRunAt: (await endOf(made.runId)) + MINUTE });
  });

  it("paused: an end meanwhile is kept for the resume, and what fell into the pause follows the policy", async () => {
    const { scheduleId, grant } = await begun(10);
    await pauseSchedule(world.authority, who(scheduleId));
    expect(await cursor(scheduleId)).toMatchObject({ status: "paused", awaitsEnd: true });
    await succeed(grant);
    await hear(scheduleId);
    const nextRunAt = (await endOf(grant.runId)) + 10;
    expect(await cursor(scheduleId)).toEqual({ status: "paused", nextRunAt, nextDueAt: null, awaitsEnd: false });
    await world.passes(nextRunAt);
    expect(await hear(scheduleId)).toMatchObject({ runs: 0, skips: 0 });
    expect(await resumeSchedule(world.authority, who(scheduleId))).toMatchObject({ plan: { runs: 1, skipped: 0 } });
    expect(await cursor(scheduleId)).toMatchObject({ status: "active", awaitsEnd: true });
  });

  it("resumed while its run is open, it awaits the end as before", async () => {
    const { scheduleId, grant } = await begun(MINUTE);
    await pauseSchedule(world.authority, who(scheduleId));
    expect(await resumeSchedule(world.authority, who(scheduleId))).toMatchObject({ schedule: { status: "active" } });
    await succeed(grant);
    await hear(scheduleId);
    expect(await cursor(scheduleId)).toMatchObject({ nextRunAt: (await endOf(grant.runId)) + MINUTE });
  });

  it("the last run there may be finishes it, a deletion ends it, and their ends bring nothing", async () => {
    const { scheduleId, grant } = await begun(10, { maxRuns: 1 });
    expect(await cursor(scheduleId)).toMatchObject({ status: "finished", awaitsEnd: false });
    await succeed(grant);
    await hear(scheduleId);
    expect(await cursor(scheduleId)).toMatchObject({ status: "finished", nextRunAt: null });
    const other = await begun(10);
    await deleteSchedule(world.authority, who(other.scheduleId));
    await succeed(other.grant);
    await hear(other.scheduleId);
    expect(await cursor(other.scheduleId)).toMatchObject({ status: "deleted", nextRunAt: null, awaitsEnd: false });
    expect(await words(other.scheduleId)).toEqual([]);
  });

  it("an instant that is skipped has ended: the next one follows from it", async () => {
    const misfire = { policy: "skip", graceMs: 0, maxCatchUp: 1 } as const;
    const scheduleId = await world.newSchedule({ ...delayed(MINUTE), misfire });
    await world.passes((await cursor(scheduleId)).nextRunAt! + 1);
    const done = await hear(scheduleId);
    expect(done).toMatchObject({ runs: 0, skips: 1 });
    expect(await cursor(scheduleId)).toMatchObject({ nextRunAt: Math.floor(done.nowAt) + MINUTE, awaitsEnd: false });
  });

  it("another delay counts from the same end; another rule forgets the end, and the other way round it awaits one", async () => {
    const { scheduleId, grant } = await begun(MINUTE);
    const revise = (expectedRevision: number, definition: object) =>
      reviseSchedule(world.authority, {
        ...who(scheduleId),
        expectedRevision,
        change: { definition: definitionOf(definition as Record<string, unknown>) },
      });
    await revise(1, { rule: { kind: "cron", expression: "0 0 1 1 *", zone: "Etc/UTC" } });
    expect(await cursor(scheduleId)).toMatchObject({ awaitsEnd: false, nextRunAt: expect.any(Number) });
    await revise(2, delayed(MINUTE));
    expect(await cursor(scheduleId)).toMatchObject({ status: "active", awaitsEnd: true, nextRunAt: null });
    await succeed(grant);
    await hear(scheduleId);
    const endedAt = await endOf(grant.runId);
    expect(await cursor(scheduleId)).toMatchObject({ nextRunAt: endedAt + MINUTE });
    await revise(3, delayed(10 * MINUTE));
    expect(await cursor(scheduleId)).toMatchObject({ nextRunAt: endedAt + 10 * MINUTE });
    await revise(4, { ...delayed(10 * MINUTE), class: "long" });
    expect(await cursor(scheduleId)).toMatchObject({ nextRunAt: endedAt + 10 * MINUTE });
  });

  describe("that was another schedule before", () => {
    const later = (scheduleId: Uuid, definition: Partial<Definition> = {}, authority = world.authority) =>
      reviseSchedule(authority, {
        ...who(scheduleId),
        expectedRevision: 1,
        change: { definition: definitionOf({ ...delayed(MINUTE), ...definition }) },
      });
    const allowed = { overlap: { policy: "allow" } } as const;

    it("edited while a run is open, it goes on from the end of that run", async () => {
      const { scheduleId, grant } = await running(world);
      expect(await later(scheduleId)).toMatchObject({ kind: "revised" });
      expect(await cursor(scheduleId)).toMatchObject({ nextRunAt: null, awaitsEnd: true });
      await succeed(grant);
      await world.check();
      await hear(scheduleId);
      expect(await cursor(scheduleId)).toMatchObject({ nextRunAt: (await endOf(grant.runId)) + MINUTE });
    });

    it("edited when all its runs are made, it goes on once it may make more", async () => {
      const { scheduleId, grant } = await running(world, { maxRuns: 1 });
      await later(scheduleId, { maxRuns: 1 });
      expect(await cursor(scheduleId)).toMatchObject({ status: "finished", awaitsEnd: false });
      const change = { definition: definitionOf(delayed(MINUTE)) };
      await reviseSchedule(world.authority, { ...who(scheduleId), expectedRevision: 2, change });
      await succeed(grant);
      await hear(scheduleId);
      expect(await cursor(scheduleId)).toMatchObject({ nextRunAt: (await endOf(grant.runId)) + MINUTE });
    });

    it("end / edit: a run that ends while the edit waits for it is followed, though it told nobody", async () => {
      const { scheduleId, grant } = await running(world, allowed);
      const held = world.faults.hold("complete:locked");
      const ending = succeed(grant);
      await held.arrived;
      const editing = later(scheduleId, allowed, world.another());
      await world.lockWaits();
      held.release();
      expect(await ending).toEqual([{ kind: "accepted" }]);
      expect(await editing).toMatchObject({ kind: "revised" });
      const { nextRunAt, awaitsEnd } = await cursor(scheduleId);
      expect(awaitsEnd).toBe(false);
      expect(nextRunAt).toBeGreaterThanOrEqual((await endOf(grant.runId)) + MINUTE);
    });

    it("a failed run of those days that is replayed beside its chain and ends last is followed", async () => {
      const { scheduleId, grant } = await running(world, allowed);
      await failForGood(world, grant);
      await later(scheduleId, allowed);
      const second = await start(world, await bear(world, scheduleId, 1000));
      expect(await replay(world, grant.runId)).toMatchObject({ kind: "replayed" });
      const first = await start(world, grant.runId);
      await succeed(second);
      await hear(scheduleId);
      expect(await cursor(scheduleId)).toMatchObject({ nextRunAt: null, awaitsEnd: true });
      await succeed(first);
      await hear(scheduleId);
      expect(await cursor(scheduleId)).toMatchObject({ nextRunAt: (await endOf(first.runId)) + MINUTE });
    });

    it("a run of those days whose live row was lost is followed, once it has one again", async () => {
      const { scheduleId, grant } = await running(world);
      await later(scheduleId);
      await world.admin.query("delete from live_run where id = $1", [grant.runId]);
      await world.admin.query("update usage set running = running - 1");
      expect(await restoreLostLiveRows(world.authority, fromTheBeginning(), 10_000)).toBe(1);
      await succeed(await start(world, grant.runId));
      await hear(scheduleId);
      expect(await cursor(scheduleId)).toMatchObject({ nextRunAt: (await endOf(grant.runId)) + MINUTE });
    });

    it("the end that the reconciler finds is the last there was, and pauses nothing: what was dealt with is not known any more", async () => {
      const { scheduleId, grant } = await running(world, allowed);
      await failForGood(world, grant);
      await later(scheduleId, { ...allowed, pauseOnFailure: true });
      const second = await start(world, await bear(world, scheduleId, 1000));
      await replay(world, grant.runId);
      const first = await start(world, grant.runId);
      await failForGood(world, second);
      await hear(scheduleId);
      expect(await cursor(scheduleId)).toMatchObject({ status: "paused" });
      await resumeSchedule(world.authority, who(scheduleId));
      await failForGood(world, first);
      await world.admin.query("delete from outbox where kind = 'schedule' and schedule_id = $1", [scheduleId]);
      expect(await restoreLostEnds(world.authority, 100)).toBe(1);
      await hear(scheduleId);
      const nextRunAt = (await endOf(first.runId)) + MINUTE;
      expect(await cursor(scheduleId)).toMatchObject({ status: "active", nextRunAt });
    });
  });

  it("an end whose word is lost is found by the reconciler, once", async () => {
    const { scheduleId, grant } = await begun(MINUTE);
    expect(await restoreLostEnds(world.authority, 100)).toBe(0);
    await succeed(grant);
    expect(await restoreLostEnds(world.authority, 100)).toBe(0);
    await world.admin.query("delete from outbox where kind = 'schedule' and schedule_id = $1", [scheduleId]);
    await expect(world.check()).rejects.toThrow("an end that a schedule awaits");
    expect(await restoreLostEnds(world.authority, 100)).toBe(1);
    expect(await restoreLostEnds(world.authority, 100)).toBe(0);
    await hear(scheduleId);
    expect(await cursor(scheduleId)).toMatchObject({ nextRunAt: (await endOf(grant.runId)) + MINUTE });
  });

  it("paused by a failure, it goes on from that end when it is resumed", async () => {
    const { scheduleId, grant } = await begun(MINUTE, { pauseOnFailure: true });
    const failure = { transient: false, code: "broken", message: "" };
    await failRuns(world.authority, [{ ...grant, failure }]);
    await hear(scheduleId);
    const nextRunAt = (await endOf(grant.runId)) + MINUTE;
    expect(await cursor(scheduleId)).toEqual({ status: "paused", nextRunAt, nextDueAt: null, awaitsEnd: false });
    await resumeSchedule(world.authority, who(scheduleId));
    expect(await cursor(scheduleId)).toMatchObject({ status: "active", nextDueAt: nextRunAt });
  });
});
