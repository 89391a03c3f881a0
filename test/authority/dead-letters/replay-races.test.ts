import { setImmediate } from "node:timers/promises";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { claimRuns } from "../../../src/authority/attempts/claim.ts";
import { completeRuns } from "../../../src/authority/attempts/complete.ts";
import { failRuns } from "../../../src/authority/attempts/fail.ts";
import type { Grant } from "../../../src/authority/attempts/grant.ts";
import type { Authority } from "../../../src/authority/authority.ts";
import { forgetOldLetters } from "../../../src/authority/dead-letters/keep.ts";
import { leaveToRelay } from "../../../src/authority/runs/bear.ts";
import { materialize } from "../../../src/authority/runs/materialize.ts";
import { runAdHoc } from "../../../src/authority/runs/run-ad-hoc.ts";
import { deleteSchedule } from "../../../src/authority/schedules/delete-schedule.ts";
import type { Uuid } from "../../../src/kernel/ids.ts";
import { createWorld, definitionOf, type World } from "../../support/world.ts";
import { allow, bear, failForGood, hintsOf, makeDue, start, stateOf, states } from "../scenes.ts";
import { deadlocks, decisionsOf, dismiss, givenUp, giveUp, letterOf, replay } from "./letters.ts";

describe("a replay that meets others", () => {
  let world: World;
  let other: Authority;
  beforeAll(async () => {
    world = await createWorld();
    other = world.another();
  });
  afterEach(async () => {
    await world.check();
    expect(await deadlocks(world.authority, other)).toBe(0);
  });
  afterAll(() => world.close());

  const done = ({ runId, fence }: Grant) => [{ runId, fence, output: null }];
  const claimBy = async (authority: Authority, runId: Uuid, claimId: Uuid) =>
    claimRuns(authority, {
      claimId,
      worker: "worker-b",
      slots: { short: 10 },
      hints: (await hintsOf(world, runId)).map((rowId) => ({ rowId, epoch: 1 })),
      repeated: false,
    });

  it("replay / claim: a sibling that is being looked at is not claimed, and is put back", async () => {
    const { scheduleId, runId } = await givenUp(world);
    const second = await bear(world, scheduleId, 50_000);
    const held = world.faults.hold("replay:locked");
    const replayed = replay(world, runId);
    await held.arrived;
    const { counts } = await claimBy(other, second, crypto.randomUUID());
    expect(counts).toMatchObject({ claimed: 0, "put-back": 1 });
    held.release();
    expect(await replayed).toEqual({ kind: "replayed", state: "blocked" });
    await world.makeAvailable();
    await world.complete(await start(world, second));
    expect(await stateOf(world, runId)).toBe("queued");
  });

  it("claim / replay: what a claim holds is not decided about; the replay looks again and waits its turn", async () => {
    const { scheduleId, runId } = await givenUp(world);
    const second = await bear(world, scheduleId, 50_000);
    const held = world.faults.hold("claim:written");
    const claim = claimBy(world.authority, second, crypto.randomUUID());
    await held.arrived;
    const replayed = replay(world, runId, other);
    // Whose guard it is cannot be known until the claim has committed.
    await lookedAgain();
    held.release();
    expect((await claim).counts.claimed).toBe(1);
    expect(await replayed).toEqual({ kind: "replayed", state: "blocked" });
    expect(await states(world, scheduleId)).toEqual(["blocked", "running"]);
  });

  it("replay / claim of the run itself: it can be claimed once its replay has committed, and only once", async () => {
    const { runId, grant } = await givenUp(world);
    const held = world.faults.hold("replay:written");
    const replayed = replay(world, runId);
    await held.arrived;
    expect(await hintsOf(world, runId)).toEqual([]);
    held.release();
    await replayed;
    const hints = await hintsOf(world, runId);
    expect(hints).toHaveLength(1);
    const claims = await Promise.all([
      claimBy(world.authority, runId, crypto.randomUUID()),
      claimBy(other, runId, crypto.randomUUID()),
    ]);
    const grants = claims.flatMap((claim) => claim.grants);
    expect(grants).toHaveLength(1);
    expect(grants[0]).toMatchObject({ attempt: 2 });
    expect(grants[0]!.fence).toBeGreaterThan(grant.fence);
  });

  it("replay / replay: one of them does it, the other finds it done", async () => {
    const { runId } = await givenUp(world);
    const held = world.faults.hold("replay:written");
    const first = replay(world, runId);
    await held.arrived;
    const second = replay(world, runId, other);
    await world.lockWaits();
    held.release();
    expect(await first).toEqual({ kind: "replayed", state: "queued" });
    expect(await second).toEqual({ kind: "not-failed", state: "queued" });
    expect(await decisionsOf(world, runId)).toHaveLength(1);
    expect(await hintsOf(world, runId)).toHaveLength(1);
  });

  it("replay / replay of an ad hoc run, where no schedule's lock stands between them", async () => {
    const request = { tenantId: world.tenantId, actor: "test", work: definitionOf(), payload: {} };
    const { runId } = (await runAdHoc(world.authority, request)) as { runId: Uuid };
    await failForGood(world, await start(world, runId));
    const held = world.faults.hold("replay:written");
    const first = replay(world, runId);
    await held.arrived;
    const second = replay(world, runId, other);
    await lookedAgain();
    held.release();
    expect(await first).toEqual({ kind: "replayed", state: "queued" });
    expect(await second).toEqual({ kind: "not-failed", state: "queued" });
    expect(await hintsOf(world, runId)).toHaveLength(1);
  });

  it("replay / dismiss: the dismissal waits, and finds the letter resolved", async () => {
    const { runId } = await givenUp(world);
    const held = world.faults.hold("replay:written");
    const replayed = replay(world, runId);
    await held.arrived;
    const dismissed = dismiss(world, runId, other);
    await world.lockWaits();
    held.release();
    expect((await replayed).kind).toBe("replayed");
    expect(await dismissed).toEqual({ kind: "resolved", state: "replayed" });
    expect(await letterOf(world, runId)).toMatchObject({ resolution: "replayed", resolved_by: "anna" });
  });

  it("dismiss / replay: both happened, in this order", async () => {
    const { runId } = await givenUp(world);
    const held = world.faults.hold("dismiss:locked");
    const dismissed = dismiss(world, runId);
    await held.arrived;
    const replayed = replay(world, runId, other);
    await world.lockWaits();
    held.release();
    expect(await dismissed).toEqual({ kind: "dismissed" });
    expect((await replayed).kind).toBe("replayed");
    expect(await decisionsOf(world, runId)).toMatchObject([{ resolution: "dismissed" }, { resolution: "replayed" }]);
  });

  it("replay / forget: a letter that is forgotten meanwhile is not replayed", async () => {
    const { runId } = await givenUp(world);
    await dismiss(world, runId);
    await world.admin.query(
      "update dead_letter set resolved_at = clock_timestamp() - interval '60 days' where run_id = $1",
      [runId],
    );
    const held = world.faults.hold("replay:locked");
    const replayed = replay(world, runId);
    await held.arrived;
    expect(await forgetOldLetters(other, 10), "it does not wait for a replay").toBe(0);
    held.release();
    expect((await replayed).kind).toBe("replayed");
    expect(await forgetOldLetters(other, 10)).toBe(0);
    expect(await decisionsOf(world, runId)).toHaveLength(2);
  });

  it("replay / complete of the holder: who ends waits, and hands the guard to what was replayed", async () => {
    const { scheduleId, runId } = await givenUp(world);
    const grant = await start(world, await bear(world, scheduleId, 50_000));
    const held = world.faults.hold("replay:written");
    const replayed = replay(world, runId);
    await held.arrived;
    const end = completeRuns(other, done(grant));
    await world.lockWaits();
    held.release();
    expect(await replayed).toEqual({ kind: "replayed", state: "blocked" });
    expect(await end).toEqual([{ kind: "accepted" }]);
    expect(await stateOf(world, runId)).toBe("queued");
  });

  it("complete of the holder / replay: it does not guess about a guard that changes hands", async () => {
    const { scheduleId, runId } = await givenUp(world);
    const grant = await start(world, await bear(world, scheduleId, 50_000));
    const third = await bear(world, scheduleId, 40_000);
    const held = world.faults.hold("complete:written");
    const end = completeRuns(world.authority, done(grant));
    await held.arrived;
    const replayed = replay(world, runId, other);
    await lookedAgain();
    held.release();
    expect(await end).toEqual([{ kind: "accepted" }]);
    // The guard went on to the third before anybody had asked for the first again.
    expect(await replayed).toEqual({ kind: "replayed", state: "blocked" });
    expect([await stateOf(world, third), await stateOf(world, runId)]).toEqual(["queued", "blocked"]);
  });

  it("fail / replay: a run that is just being given up is replayed after that, or not at all", async () => {
    const { runId } = await givenUp(world, allow());
    await replay(world, runId);
    const { fence } = await start(world, runId);
    const held = world.faults.hold("fail:written");
    const failure = { transient: false, code: "again", message: "again" };
    const failed = failRuns(world.authority, [{ runId, fence, failure }]);
    await held.arrived;
    const replayed = replay(world, runId, other);
    await lookedAgain();
    held.release();
    expect(await failed).toMatchObject([{ kind: "failed" }]);
    expect((await replayed).kind).toBe("replayed");
    expect(await decisionsOf(world, runId)).toMatchObject([{ error_code: "broken" }, { error_code: "again" }]);
  });

  it("replay / delete: what was replayed first is canceled with the schedule", async () => {
    const { scheduleId, runId } = await givenUp(world);
    const held = world.faults.hold("replay:written");
    const replayed = replay(world, runId);
    await held.arrived;
    const deleted = deleteSchedule(other, { tenantId: world.tenantId, actor: "test", scheduleId });
    await world.lockWaits();
    held.release();
    expect((await replayed).kind).toBe("replayed");
    expect(await deleted).toEqual({ kind: "deleted", canceled: 1 });
    expect(await stateOf(world, runId)).toBe("canceled");
  });

  it("delete / replay: a schedule that was deleted first makes no more runs", async () => {
    const { scheduleId, runId } = await givenUp(world);
    const held = world.faults.hold("delete:locked");
    const deleted = deleteSchedule(world.authority, { tenantId: world.tenantId, actor: "test", scheduleId });
    await held.arrived;
    const replayed = replay(world, runId, other);
    await world.lockWaits();
    held.release();
    expect(await deleted).toMatchObject({ kind: "deleted" });
    expect(await replayed).toEqual({ kind: "schedule-deleted" });
    expect(await stateOf(world, runId)).toBe("failed");
  });

  it("replay / materialize: a run born meanwhile waits behind it", async () => {
    const { scheduleId, runId } = await givenUp(world);
    const second = await makeDue(world, scheduleId, 50_000);
    const held = world.faults.hold("replay:written");
    const replayed = replay(world, runId);
    await held.arrived;
    expect(await materialize(other, [scheduleId], leaveToRelay)).toMatchObject({ runs: 0 });
    held.release();
    await replayed;
    await materialize(other, [scheduleId], leaveToRelay);
    expect([await stateOf(world, runId), await stateOf(world, second)]).toEqual(["queued", "blocked"]);
  });

  it("replay / raised floor: the floor that is read is the one of after the locks", async () => {
    const { scheduleId, runId } = await givenUp(world);
    const stranger = await world.stranger();
    await stranger.query("select 1 from schedule_cursor where schedule_id = $1 for update", [scheduleId]);
    const before = (await world.admin.query("select floor_at::text as at from history_floor")).rows[0].at;
    const replayed = replay(world, runId);
    await world.lockWaits();
    // While it waits for the schedule, the keeper decides that its partition goes.
    await world.admin.query("update history_floor set floor_at = clock_timestamp()");
    await stranger.commit();
    expect(await replayed).toEqual({ kind: "history-removed" });
    await world.admin.query("update history_floor set floor_at = $1::timestamptz", [before]);
    expect((await replay(world, runId)).kind).toBe("replayed");
  });

  it("two replays that cross over the siblings of a schedule do not wait for each other for ever", async () => {
    const { scheduleId, runId } = await givenUp(world);
    const second = await giveUp(world, scheduleId, 50_000);
    const third = await giveUp(world, scheduleId, 40_000);
    const outcomes = await Promise.all([
      replay(world, third.runId),
      replay(world, runId, other),
      replay(world, second.runId),
    ]);
    expect(outcomes.map((one) => one.kind)).toEqual(["replayed", "replayed", "replayed"]);
    const now = await states(world, scheduleId);
    expect(now.filter((state) => state === "queued")).toHaveLength(1);
    expect(now.filter((state) => state === "blocked")).toHaveLength(2);
  });

  /** Resolves when the other process has begun a replay and found that it could not decide it yet, twice. */
  async function lookedAgain(): Promise<void> {
    const count = async () => {
      const { values } = await other.metrics.verbSeconds.get();
      return values.find((one) => one.metricName?.endsWith("_count") && one.labels.verb === "replay")?.value ?? 0;
    };
    const before = await count();
    while ((await count()) < before + 2) await setImmediate();
  }
});
