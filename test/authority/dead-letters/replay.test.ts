import { createHash, randomUUID } from "node:crypto";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { expireLeases } from "../../../src/authority/attempts/expire.ts";
import { failRuns } from "../../../src/authority/attempts/fail.ts";
import { forgetOldLetters, readLetterGauges } from "../../../src/authority/dead-letters/keep.ts";
import { replayRun } from "../../../src/authority/dead-letters/replay.ts";
import { cancelRuns } from "../../../src/authority/runs/cancel.ts";
import { runAdHoc } from "../../../src/authority/runs/run-ad-hoc.ts";
import { runNow } from "../../../src/authority/runs/run-now.ts";
import { deleteSchedule } from "../../../src/authority/schedules/delete-schedule.ts";
import { pauseSchedule } from "../../../src/authority/schedules/pause-schedule.ts";
import { resumeSchedule } from "../../../src/authority/schedules/resume-schedule.ts";
import { reviseSchedule } from "../../../src/authority/schedules/revise-schedule.ts";
import { mintId, type Uuid } from "../../../src/kernel/ids.ts";
import { listAttempts } from "../../../src/store/reads/runs.ts";
import { createWorld, definitionOf, type World } from "../../support/world.ts";
import { allow, bear, failForGood, history, liveOf, running, start, stateOf, states } from "../scenes.ts";
import { attemptsOf, decisionsOf, dismiss, givenUp, letterOf, replay } from "./letters.ts";

describe("a run that was given up", () => {
  let world: World;
  beforeAll(async () => {
    world = await createWorld();
  });
  afterEach(() => world.check());
  afterAll(() => world.close());

  const who = (scheduleId: Uuid) => ({ tenantId: world.tenantId, actor: "test", scheduleId });

  it("fails and gets its dead letter in one transaction: both or neither", async () => {
    const { grant } = await running(world);
    world.faults.once("fail:written", () => {
      throw new Error("the process died");
    });
    await expect(failForGood(world, grant)).rejects.toThrow("the process died");
    expect(await stateOf(world, grant.runId)).toBe("running");
    expect(await letterOf(world, grant.runId)).toBeUndefined();
    await failForGood(world, grant);
    expect(await stateOf(world, grant.runId)).toBe("failed");
    expect(await letterOf(world, grant.runId)).toMatchObject({
      reason: "permanent",
      error_code: "broken",
      error_message: "no use",
      attempts: 1,
      resolved_at: null,
    });
  });

  it("is opened again as the same run, with a fresh budget; attempts and fences go on growing", async () => {
    const { scheduleId, runId, grant } = await givenUp(world, { payload: { v: 1 }, startDeadlineMs: 120_000 });
    const before = await world.run(runId);
    expect(await replay(world, runId)).toEqual({ kind: "replayed", state: "queued" });
    expect(await world.run(runId)).toMatchObject({
      ...before,
      state: "open",
      finished_at: null,
      error_code: null,
      error_message: null,
    });
    expect(await liveOf(world, runId)).toMatchObject({
      lane: 2,
      held_by: "replay",
      guard: scheduleId,
      attempt: 1,
      budget_attempt: 0,
      expiries: 0,
      interruptions: 0,
      start_deadline: null,
      revision: 1,
    });
    expect((await liveOf(world, runId))!.budget_from).toSatisfy((at: Date) => at > (before.finished_at as Date));
    expect(await attemptsOf(world, runId)).toMatchObject([
      { n: 1, outcome: "failed", error_code: "broken", ended: true },
    ]);
    await world.check();

    const again = await start(world, runId, "worker-b");
    expect(again).toMatchObject({ attempt: 2, payload: { v: 1 } });
    expect(again.fence).toBeGreaterThan(grant.fence);
    // The worker of before comes back from the dead: what it reported then is known, and it may do nothing more.
    expect(await failForGood(world, grant)).toEqual([{ kind: "already-reported" }]);
    expect(await world.complete(grant)).toMatchObject({ kind: "stale-fence" });
    expect(await world.complete(again, "whole after all")).toMatchObject({ kind: "accepted" });
    expect(await world.run(runId)).toMatchObject({ state: "succeeded", attempts: 2, error_code: null });
    expect((await listAttempts(world.db, world.tenantId, runId)).map((one) => one.outcome)).toEqual([
      "failed",
      "succeeded",
    ]);
    expect(await letterOf(world, runId)).toMatchObject({
      resolution: "replayed",
      resolved_by: "anna",
      reason: "permanent",
    });
    const { rows } = await world.admin.query("select actor, after from audit_event where subject = $1", [runId]);
    expect(rows).toEqual([{ actor: "anna", after: { reason: "mended" } }]);
  });

  it("has its whole retry budget again", async () => {
    const retry = { maxAttempts: 2, baseMs: 100, capMs: 100, maxElapsedMs: 60_000 };
    const { grant } = await running(world, { retry } as never);
    const transient = { transient: true, code: "again", message: "later" };
    const { runId } = grant;
    const fail = async (fence: bigint) => (await failRuns(world.authority, [{ runId, fence, failure: transient }]))[0]!;
    const next = async () => {
      await world.makeAvailable();
      return (await start(world, runId)).fence;
    };
    expect((await fail(grant.fence)).kind).toBe("retrying");
    expect(await fail(await next())).toEqual({ kind: "failed", reason: "attempts-exhausted" });
    // Long ago: the elapsed budget counts from the replay as well.
    await world.admin.query("update run set admitted_at = admitted_at - interval '1 day' where id = $1", [runId]);
    await replay(world, runId);
    expect((await fail(await next())).kind).toBe("retrying");
    expect(await fail(await next())).toEqual({ kind: "failed", reason: "attempts-exhausted" });
    expect(await attemptsOf(world, runId)).toHaveLength(4);
    expect(await letterOf(world, runId)).toMatchObject({ attempts: 4, resolved_at: null });
  });

  it("and fails again has its letter opened anew; what was decided before stays on record", async () => {
    const { runId } = await givenUp(world);
    const first = await letterOf(world, runId);
    await replay(world, runId);
    expect(await letterOf(world, runId)).toMatchObject({ resolution: "replayed", resolved_by: "anna" });
    const again = await start(world, runId);
    const failure = { transient: false, code: "worse", message: "even less use" };
    await failRuns(world.authority, [{ runId, fence: again.fence, failure }]);
    const second = await letterOf(world, runId);
    expect(second).toMatchObject({
      error_code: "worse",
      attempts: 2,
      resolved_at: null,
      resolution: null,
      resolved_by: null,
    });
    expect(second.created_at > first.created_at).toBe(true);
    await dismiss(world, runId);
    expect(await decisionsOf(world, runId)).toMatchObject([
      {
        n: 1,
        resolution: "replayed",
        resolved_by: "anna",
        reason: "mended",
        error_code: "broken",
        attempts: 1,
        failed_at: first.created_at,
      },
      { n: 2, resolution: "dismissed", resolved_by: "bert", reason: "not worth it", error_code: "worse", attempts: 2 },
    ]);
  });

  it("is replayed once: a second replay finds it open, and so does a dismissal", async () => {
    const { runId } = await givenUp(world);
    await replay(world, runId);
    expect(await replay(world, runId)).toEqual({ kind: "not-failed", state: "queued" });
    expect(await dismiss(world, runId)).toEqual({ kind: "resolved", state: "replayed" });
    await world.complete(await start(world, runId));
    expect(await replay(world, runId)).toEqual({ kind: "not-failed", state: "succeeded" });
    expect(await decisionsOf(world, runId)).toHaveLength(1);
  });

  it("asked for again with the same key is the same replay, whatever became of the run", async () => {
    const { runId } = await givenUp(world);
    const key = (body: string) => ({ key: "replay:k", bodySha256: createHash("sha256").update(body).digest() });
    const ask = (body: string, tenantId = world.tenantId, authority = world.authority) =>
      replayRun(authority, { tenantId, actor: "anna", runId, reason: null, requestKey: key(body) });
    const both = await Promise.all([ask("{}"), ask("{}", world.tenantId, world.another())]);
    expect(both.map((one) => one.kind).sort()).toEqual(["repeated", "replayed"]);
    expect(await ask("other")).toEqual({ kind: "key-reused" });
    expect(await ask("{}", await world.newTenant("foreign"))).toEqual({ kind: "not-found" });
    await failForGood(world, await start(world, runId));
    expect(await ask("{}")).toEqual({ kind: "repeated", state: "failed" });
    expect(await decisionsOf(world, runId)).toHaveLength(1);
  });

  it("may be dismissed and replayed later all the same; dismissed, it stays failed", async () => {
    const { runId } = await givenUp(world);
    expect(await dismiss(world, runId)).toEqual({ kind: "dismissed" });
    expect(await dismiss(world, runId)).toEqual({ kind: "resolved", state: "dismissed" });
    expect(await stateOf(world, runId)).toBe("failed");
    expect(await replay(world, runId)).toMatchObject({ kind: "replayed" });
    expect(await decisionsOf(world, runId)).toMatchObject([{ resolution: "dismissed" }, { resolution: "replayed" }]);
  });

  it("of another tenant, or never given up, has no letter", async () => {
    const { runId } = await givenUp(world);
    const foreign = { tenantId: await world.newTenant("stranger"), actor: "x", runId, reason: null };
    expect(await replayRun(world.authority, foreign)).toEqual({ kind: "not-found" });
    const { grant } = await running(world);
    expect(await replay(world, grant.runId)).toEqual({ kind: "not-found" });
    expect(await dismiss(world, grant.runId)).toEqual({ kind: "not-found" });
    expect(await replay(world, randomUUID())).toEqual({ kind: "not-found" });
  });

  it("waits behind what is open, in the order of the instants, and never overtakes", async () => {
    const { scheduleId, runId } = await givenUp(world);
    const second = await bear(world, scheduleId, 50_000);
    const third = await bear(world, scheduleId, 40_000);
    const grant = await start(world, second);
    expect(await replay(world, runId)).toEqual({ kind: "replayed", state: "blocked" });
    expect(await states(world, scheduleId)).toEqual(["blocked", "running", "blocked"]);
    await world.check();
    await world.complete(grant);
    expect(await states(world, scheduleId)).toEqual(["queued", "succeeded", "blocked"]);
    const again = await start(world, runId);
    expect(again.attempt).toBe(2);
    await world.complete(again);
    expect(await stateOf(world, third)).toBe("queued");
  });

  it.each(["skip", "bufferOne", "cancelRunning"] as const)(
    "under %s replaces and cancels nothing, and is not the one that waits",
    async (policy) => {
      const { scheduleId, runId } = await givenUp(world, { overlap: { policy } });
      const second = await bear(world, scheduleId, 50_000);
      const grant = await start(world, second);
      expect(await replay(world, runId)).toEqual({ kind: "replayed", state: "blocked" });
      expect((await liveOf(world, second))!.cancel_requested_at).toBeNull();
      if (policy === "bufferOne") {
        const third = await bear(world, scheduleId, 40_000);
        const fourth = await bear(world, scheduleId, 30_000);
        expect([await stateOf(world, third), await stateOf(world, fourth)]).toEqual(["skipped", "blocked"]);
      }
      expect(await stateOf(world, runId)).toBe("blocked");
      await world.complete(grant);
      expect(await stateOf(world, runId)).toBe("queued");
    },
  );

  it("takes one of several slots, or its own where there is no limit", async () => {
    const two = await givenUp(world, allow(2));
    await bear(world, two.scheduleId, 50_000);
    expect(await replay(world, two.runId)).toEqual({ kind: "replayed", state: "queued" });
    const free = await givenUp(world, allow());
    await bear(world, free.scheduleId, 50_000);
    expect(await replay(world, free.runId)).toEqual({ kind: "replayed", state: "queued" });
    expect(await liveOf(world, free.runId)).toMatchObject({ guard: free.runId });
  });

  it("keeps the revision it was made under, while slots are those of the one in force", async () => {
    const { scheduleId, runId } = await givenUp(world, { payload: { v: 1 } });
    const change = {
      payload: { v: 2 },
      definition: definitionOf({ job: { kind: "function", name: "test.other" }, ...allow(2) }),
    };
    await reviseSchedule(world.authority, { ...who(scheduleId), expectedRevision: 1, change });
    await start(world, await bear(world, scheduleId, 50_000));
    expect(await replay(world, runId)).toEqual({ kind: "replayed", state: "queued" });
    expect(await start(world, runId)).toMatchObject({ job: { name: "test.noop" }, payload: { v: 1 } });
    expect((await history(world, scheduleId)).map((run) => run.revision)).toEqual([1, 2]);
  });

  it("without a schedule, or with a payload of its own, is done with what it brought along", async () => {
    const work = definitionOf();
    const made = await runAdHoc(world.authority, {
      tenantId: world.tenantId,
      actor: "test",
      work,
      payload: { own: 1 },
    });
    const adHoc = (made as { runId: Uuid }).runId;
    await failForGood(world, await start(world, adHoc));
    expect(await replay(world, adHoc)).toEqual({ kind: "replayed", state: "queued" });
    expect(await start(world, adHoc)).toMatchObject({ attempt: 2, payload: { own: 1 }, scheduleId: null });
    const scheduleId = await world.newSchedule({ payload: { of: "the schedule" } });
    const now = (await runNow(world.authority, { ...who(scheduleId), payload: { own: 2 } })) as { runId: Uuid };
    await failForGood(world, await start(world, now.runId));
    await replay(world, now.runId);
    expect(await start(world, now.runId)).toMatchObject({ attempt: 2, payload: { own: 2 } });
  });

  it("of a paused or finished schedule runs; of a deleted one it does not, and can be dismissed", async () => {
    const paused = await givenUp(world);
    await pauseSchedule(world.authority, who(paused.scheduleId));
    expect(await replay(world, paused.runId)).toEqual({ kind: "replayed", state: "queued" });
    await world.complete(await start(world, paused.runId));
    const finished = await givenUp(world);
    await world.admin.query("update schedule set status = 'finished' where id = $1", [finished.scheduleId]);
    await world.admin.query(
      "update schedule_cursor set next_run_at = null, next_due_at = null where schedule_id = $1",
      [finished.scheduleId],
    );
    expect(await replay(world, finished.runId)).toMatchObject({ kind: "replayed" });
    const deleted = await givenUp(world);
    await deleteSchedule(world.authority, who(deleted.scheduleId));
    expect(await replay(world, deleted.runId)).toEqual({ kind: "schedule-deleted" });
    expect(await dismiss(world, deleted.runId)).toEqual({ kind: "dismissed" });
  });

  it("is canceled with its schedule while it waits, and by hand", async () => {
    const one = await givenUp(world);
    await replay(world, one.runId);
    await deleteSchedule(world.authority, who(one.scheduleId));
    expect(await stateOf(world, one.runId)).toBe("canceled");
    const two = await givenUp(world);
    await replay(world, two.runId);
    await cancelRuns(world.authority, [{ tenantId: world.tenantId, runId: two.runId }]);
    expect(await world.run(two.runId)).toMatchObject({ state: "canceled", attempts: 1 });
    expect(await replay(world, two.runId)).toEqual({ kind: "not-failed", state: "canceled" });
  });

  it("below the history floor is gone for good, also when its partition is gone already", async () => {
    const { runId } = await givenUp(world);
    const floor = (at: string) => world.admin.query(`update history_floor set floor_at = ${at}`);
    const before = (await world.admin.query("select floor_at::text as at from history_floor")).rows[0].at;
    await floor("clock_timestamp()");
    expect(await replay(world, runId)).toEqual({ kind: "history-removed" });
    await floor(`'${before}'`);
    await world.admin.query(
      `insert into dead_letter (run_id, scheduled_at, tenant_id, class, reason, fingerprint, attempts, created_at)
       values ($1, '2020-01-01Z', $2, 'short', 'permanent', 'f', 1, '2020-01-01Z')`,
      [mintId(Date.UTC(2020, 0, 1), 0), world.tenantId],
    );
    const { rows } = await world.admin.query("select run_id from dead_letter where fingerprint = 'f'");
    expect(await replay(world, rows[0].run_id)).toEqual({ kind: "history-removed" });
    await world.admin.query("delete from dead_letter where fingerprint = 'f'");
  });

  it("that killed its workers counts its expiries anew", async () => {
    const { grant } = await running(world);
    await world.admin.query("update live_run set expiries = 4 where id = $1", [grant.runId]);
    await world.expireLease(grant.runId);
    await expireLeases(world.authority, [grant.runId], 0);
    expect(await letterOf(world, grant.runId)).toMatchObject({ reason: "crash-loop" });
    await replay(world, grant.runId);
    await start(world, grant.runId);
    await world.expireLease(grant.runId);
    await expireLeases(world.authority, [grant.runId], 0);
    expect(await stateOf(world, grant.runId)).toBe("retrying");
    expect((await attemptsOf(world, grant.runId)).map((one) => one.outcome)).toEqual(["expired", "expired"]);
  });

  it("is kept while it is open, and forgotten long after it was resolved", async () => {
    const [open, old, recent] = [await givenUp(world), await givenUp(world), await givenUp(world)];
    await dismiss(world, old.runId);
    await dismiss(world, recent.runId);
    await world.admin.query("update dead_letter set created_at = clock_timestamp() - interval '1 year'");
    await world.admin.query(
      "update dead_letter set resolved_at = clock_timestamp() - interval '31 days' where run_id = $1",
      [old.runId],
    );
    const { open: waiting, oldestAgeMs } = await readLetterGauges(world.authority);
    expect(waiting).toBeGreaterThan(0);
    expect(oldestAgeMs).toBeGreaterThan(364 * 86_400_000);
    expect(await forgetOldLetters(world.authority, 100)).toBe(1);
    expect(await forgetOldLetters(world.authority, 100)).toBe(0);
    expect(await letterOf(world, old.runId)).toBeUndefined();
    expect(await decisionsOf(world, old.runId)).toEqual([]);
    expect(await letterOf(world, open.runId)).toBeDefined();
    expect(await decisionsOf(world, recent.runId)).toHaveLength(1);
    expect(await replay(world, old.runId)).toEqual({ kind: "not-found" });
  });

  describe("under pauseOnFailure", () => {
    const PAUSES = { pauseOnFailure: true } as const;
    const statusOf = async (scheduleId: Uuid) =>
      (await world.admin.query("select status from schedule where id = $1", [scheduleId])).rows[0].status;

    it("pauses its schedule even when somebody replays it before the schedule has heard", async () => {
      const { scheduleId, grant } = await running(world, PAUSES);
      const second = await bear(world, scheduleId, 50_000);
      await failForGood(world, grant);
      expect(await replay(world, grant.runId)).toEqual({ kind: "replayed", state: "queued" });
      expect(await statusOf(scheduleId)).toBe("paused");
      expect(await liveOf(world, second)).toMatchObject({ state: "blocked", held_by: "pause" });
      await world.check();
      // It works again: nothing goes on before somebody resumes.
      await world.complete(await start(world, grant.runId));
      expect(await stateOf(world, second)).toBe("blocked");
      await resumeSchedule(world.authority, who(scheduleId));
      expect(await stateOf(world, second)).toBe("queued");
    });

    it("pauses it once more when it fails again, and waits for the resume as what a person asked for", async () => {
      const { scheduleId, runId } = await givenUp(world, PAUSES);
      await world.materialize([scheduleId]);
      const second = await giveUpNow(scheduleId);
      await replay(world, runId);
      expect(await replay(world, second)).toEqual({ kind: "replayed", state: "blocked" });
      await resumeSchedule(world.authority, who(scheduleId));
      await failForGood(world, await start(world, runId));
      await world.materialize([scheduleId]);
      expect(await statusOf(scheduleId)).toBe("paused");
      expect(await liveOf(world, second)).toMatchObject({ state: "blocked", held_by: "pause" });
      await world.check();
      await resumeSchedule(world.authority, who(scheduleId));
      expect(await liveOf(world, second)).toMatchObject({ state: "queued", held_by: "replay" });
    });

    /** A manual run is no way around the pause, but runs. */
    async function giveUpNow(scheduleId: Uuid): Promise<Uuid> {
      const made = (await runNow(world.authority, who(scheduleId))) as { runId: Uuid };
      await failForGood(world, await start(world, made.runId));
      await world.materialize([scheduleId]);
      return made.runId;
    }
  });

  describe("under afterCompletion", () => {
    const cursorOf = async (scheduleId: Uuid) =>
      (
        await world.admin.query("select next_run_at, awaits_end from schedule_cursor where schedule_id = $1", [
          scheduleId,
        ])
      ).rows[0];

    async function ended(delayMs: number) {
      const scheduleId = await world.newSchedule({ rule: { kind: "afterCompletion", delayMs } } as never);
      await world.passes((await cursorOf(scheduleId)).next_run_at.getTime());
      await world.materialize([scheduleId]);
      const runId = (await history(world, scheduleId)).at(-1)!.id;
      await failForGood(world, await start(world, runId));
      return { scheduleId, runId };
    }

    it("moves the next instant by its end, as a manual run does: there is never a second one", async () => {
      const { scheduleId, runId } = await ended(60_000);
      expect(await replay(world, runId)).toMatchObject({ kind: "replayed" });
      // The failure was heard first.
      const first = (await cursorOf(scheduleId)).next_run_at as Date;
      await world.complete(await start(world, runId));
      await world.materialize([scheduleId]);
      const endedAt = ((await world.run(runId)).finished_at as Date).getTime();
      expect((await cursorOf(scheduleId)).next_run_at.getTime()).toBe(Math.floor(endedAt) + 60_000);
      expect((await cursorOf(scheduleId)).next_run_at > first).toBe(true);
      expect(await states(world, scheduleId)).toEqual(["succeeded"]);
    });

    it("and the next instant that comes meanwhile waits behind it, and its end is awaited, not the replay's", async () => {
      const { scheduleId, runId } = await ended(1);
      await replay(world, runId);
      await world.passes(((await cursorOf(scheduleId)).next_run_at as Date).getTime());
      await world.materialize([scheduleId]);
      expect(await states(world, scheduleId)).toEqual(["queued", "blocked"]);
      await world.complete(await start(world, runId));
      await world.materialize([scheduleId]);
      expect(await states(world, scheduleId)).toEqual(["succeeded", "queued"]);
      expect(await cursorOf(scheduleId)).toEqual({ next_run_at: null, awaits_end: true });
    });
  });
});
