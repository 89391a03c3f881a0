import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { adoptRuns } from "../../../src/authority/attempts/adopt.ts";
import { completeRuns } from "../../../src/authority/attempts/complete.ts";
import { type DetachOutcome, detachRuns } from "../../../src/authority/attempts/detach.ts";
import { expireLeases } from "../../../src/authority/attempts/expire.ts";
import { failRuns } from "../../../src/authority/attempts/fail.ts";
import type { Grant } from "../../../src/authority/attempts/grant.ts";
import { heartbeat } from "../../../src/authority/attempts/heartbeat.ts";
import { releaseRuns } from "../../../src/authority/attempts/release.ts";
import { cancelRuns } from "../../../src/authority/runs/cancel.ts";
import { CRASH_LOOP_LIMIT } from "../../../src/domain/retry.ts";
import type { Uuid } from "../../../src/kernel/ids.ts";
import { createWorld, type World } from "../../support/world.ts";
import { bear, liveOf, running, start, stateOf } from "../scenes.ts";

/** Work that outlives its worker: an HTTP 202, a queue, a container. */
describe("a detached attempt", () => {
  let world: World;
  beforeAll(async () => {
    world = await createWorld();
  });
  afterEach(() => world.check());
  afterAll(() => world.close());

  const HOUR = 3_600_000;
  const detach = async (grant: Grant, callbackWithinMs?: number, authority = world.authority) =>
    (await detachRuns(authority, [{ ...grant, callbackWithinMs }]))[0]!;
  /** The database keeps more digits of an instant than a Date. */
  const dueAt = (answer: DetachOutcome) => new Date(answer.kind === "detached" ? answer.callbackDueAt : Number.NaN);
  const adopt = async (grant: Grant, worker: string, authority = world.authority) =>
    (await adoptRuns(authority, [{ ...grant, worker }]))[0]!;
  const complete = async ({ runId, fence }: Grant, authority = world.authority) =>
    (await completeRuns(authority, [{ runId, fence, output: null }]))[0]!;
  const fail = async ({ runId, fence }: Grant, failure = { transient: true, code: "x", message: "x" }) =>
    (await failRuns(world.authority, [{ runId, fence, failure }]))[0]!;
  const expire = (runId: Uuid, authority = world.authority) => expireLeases(authority, [runId], 0);
  const attempts = async (runId: Uuid) =>
    (
      await world.admin.query(
        "select n, outcome, error_code, detached_at is not null as detached, adopted_by from attempt where run_id = $1 order by n",
        [runId],
      )
    ).rows;

  async function detached(change: Parameters<World["newSchedule"]>[0] = {}, withinMs?: number) {
    const scene = await running(world, { class: "long", attemptTimeoutMs: HOUR, ...change });
    expect(await detach(scene.grant, withinMs)).toMatchObject({ kind: "detached" });
    return scene;
  }

  it("keeps attempt, fence and guard; its lease is the deadline of the callback, and it counts as running", async () => {
    const { scheduleId, grant } = await running(world, { class: "long", attemptTimeoutMs: HOUR });
    const before = await world.usage();
    const answer = await detach(grant, 600_000);
    const live = (await liveOf(world, grant.runId))!;
    expect(live).toMatchObject({
      state: "running",
      worker: null,
      attempt: 1,
      fence: grant.fence,
      guard: scheduleId,
      last_heartbeat_at: expect.any(Date),
    });
    expect(answer).toEqual({ kind: "detached", callbackDueAt: expect.any(Number), cancelRequested: false });
    expect(dueAt(answer)).toEqual(live.lease_until);
    expect((live.lease_until as Date).getTime() - (live.last_heartbeat_at as Date).getTime()).toBe(600_000);
    expect(await world.usage()).toBe(before);
    expect(await stateOf(world, await bear(world, scheduleId, 30_000))).toBe("blocked");
    expect(await attempts(grant.runId)).toMatchObject([{ n: 1, outcome: null, detached: true, adopted_by: null }]);
  });

  it("may be waited for until the attempt's deadline, and no longer, whatever was asked for", async () => {
    for (const withinMs of [undefined, 100 * HOUR]) {
      const { grant } = await running(world, { attemptTimeoutMs: 60_000 });
      expect(await detach(grant, withinMs)).toMatchObject({ kind: "detached", callbackDueAt: grant.deadlineAt });
    }
    const { grant } = await running(world);
    await world.admin.query("update live_run set deadline_at = clock_timestamp() where id = $1", [grant.runId]);
    expect(await detach(grant)).toEqual({ kind: "deadline" });
  });

  it("is not its worker's any more: no heartbeat, no release, and the answer says why", async () => {
    const { grant } = await detached({}, 60_000);
    const { lease_until } = (await liveOf(world, grant.runId))!;
    expect(await heartbeat(world.authority, [grant])).toEqual([{ kind: "not-holder" }]);
    expect(await releaseRuns(world.authority, [grant])).toEqual([{ kind: "not-holder" }]);
    expect(await liveOf(world, grant.runId)).toMatchObject({ state: "running", lease_until });
    // Said again, as after a lost reply: the same answer, and no new deadline.
    expect(dueAt(await detach(grant, 2 * HOUR))).toEqual(lease_until);
  });

  it("is completed by whoever knows run and fence, with an output if it has one", async () => {
    const { grant } = await detached();
    expect(await world.complete(grant, "made elsewhere")).toEqual({ kind: "accepted" });
    expect(await world.run(grant.runId)).toMatchObject({ state: "succeeded", accepted_fence: grant.fence });
    expect(await complete(grant)).toEqual({ kind: "result-conflict" });
    // The worker's own word, late: the callback was faster.
    expect(await detach(grant)).toEqual({ kind: "stale-fence" });
    expect(await adopt(grant, "worker-b")).toEqual({ kind: "stale-fence" });
  });

  it("fails by its callback, and is tried again by a worker, with a new fence", async () => {
    const { grant } = await detached();
    expect(await fail(grant)).toMatchObject({ kind: "retrying", attempt: 1 });
    expect(await fail(grant)).toEqual({ kind: "already-reported" });
    await world.makeAvailable();
    const next = await start(world, grant.runId, "worker-b");
    expect(next).toMatchObject({ attempt: 2, worker: "worker-b" });
    // The late callback of the first attempt finds another in its place.
    expect(await complete(grant)).toEqual({ kind: "stale-fence" });
    expect(await detach(grant)).toEqual({ kind: "stale-fence" });
    expect(await adopt(grant, "worker-c")).toEqual({ kind: "stale-fence" });
    expect(await heartbeat(world.authority, [next])).toMatchObject([{ kind: "renewed" }]);
  });

  it("expires when no callback comes: a try like any other, but nobody's crash", async () => {
    const { grant } = await detached({ retry: { maxAttempts: 100 } as never });
    await world.admin.query("update live_run set expiries = $2 where id = $1", [grant.runId, CRASH_LOOP_LIMIT - 1]);
    await world.expireLease(grant.runId);
    expect(await adopt(grant, "worker-b")).toEqual({ kind: "lease-lapsed" });
    expect(await complete(grant)).toEqual({ kind: "lease-lapsed" });
    expect(await expire(grant.runId)).toBe(1);
    expect(await liveOf(world, grant.runId)).toMatchObject({ state: "retrying", budget_attempt: 1, expiries: 0 });
    expect(await attempts(grant.runId)).toMatchObject([{ outcome: "expired", error_code: "callback-timeout" }]);
  });

  it("is canceled in two steps: asked for at once, accepted when the callback says that it failed, or when none comes", async () => {
    const ends = [
      async (grant: Grant) => void expect(await fail(grant)).toEqual({ kind: "canceled" }),
      async (grant: Grant) => {
        await world.expireLease(grant.runId);
        expect(await expire(grant.runId)).toBe(1);
      },
    ];
    for (const end of ends) {
      const { grant } = await detached();
      expect(await cancelRuns(world.authority, [{ tenantId: world.tenantId, runId: grant.runId }])).toEqual([
        { kind: "requested", callbackDueAt: expect.any(Number) },
      ]);
      expect(await stateOf(world, grant.runId)).toBe("running");
      await end(grant);
      expect(await world.run(grant.runId)).toMatchObject({
        state: "canceled",
        cancel_requested_at: expect.any(Date),
        cancel_accepted_at: expect.any(Date),
      });
    }
    const { grant } = await detached();
    await cancelRuns(world.authority, [{ tenantId: world.tenantId, runId: grant.runId }]);
    // Work that is done is done: the request came too late.
    expect(await complete(grant)).toEqual({ kind: "accepted" });
  });

  it("was asked to stop before it was detached: the worker hears so, and may tell whoever does the work", async () => {
    const { grant } = await running(world);
    await cancelRuns(world.authority, [{ tenantId: world.tenantId, runId: grant.runId }]);
    expect(await detach(grant)).toMatchObject({ kind: "detached", cancelRequested: true });
    expect(await adopt(grant, "worker-b")).toMatchObject({ kind: "adopted", cancelRequested: true });
  });

  it("is adopted by another worker: same attempt, same fence, a fresh lease and the work to do", async () => {
    const { grant } = await detached({ payload: { report: 7 } });
    const answer = await adopt(grant, "worker-b");
    expect(answer).toEqual({
      kind: "adopted",
      grant: { ...grant, worker: "worker-b" },
      remainingMs: expect.any(Number),
      cancelRequested: false,
    });
    expect((answer as { remainingMs: number }).remainingMs).toBeLessThanOrEqual(HOUR);
    const live = (await liveOf(world, grant.runId))!;
    const leaseMs = (live.lease_until as Date).getTime() - (live.last_heartbeat_at as Date).getTime();
    expect(leaseMs).toBe(world.authority.settings.lease.ttlMs);
    expect(await heartbeat(world.authority, [grant, { ...grant, worker: "worker-b" }])).toMatchObject([
      { kind: "not-holder" },
      { kind: "renewed" },
    ]);
    // Who has it already is answered the same; nobody else gets it, and the first worker has nothing to detach.
    expect(await adopt(grant, "worker-b")).toMatchObject({ kind: "adopted", grant: { worker: "worker-b" } });
    expect(await adopt(grant, "worker-c")).toEqual({ kind: "not-detached" });
    expect(await detach(grant)).toEqual({ kind: "not-holder" });
    expect(await attempts(grant.runId)).toMatchObject([{ n: 1, detached: true, adopted_by: "worker-b" }]);
    expect(await complete({ ...grant, worker: "worker-b" })).toEqual({ kind: "accepted" });
  });

  it("only a detached attempt can be adopted", async () => {
    const { grant } = await running(world);
    expect(await adopt(grant, "worker-b")).toEqual({ kind: "not-detached" });
    await world.expireLease(grant.runId);
    expect(await adopt(grant, "worker-b")).toEqual({ kind: "not-detached" });
    expect(await heartbeat(world.authority, [grant])).toMatchObject([{ kind: "renewed" }]);
  });

  it("can be detached once more by who has adopted it, and loses its worker as any other when that one is silent", async () => {
    const { grant } = await detached();
    const adopted = { ...grant, worker: "worker-b" };
    await adopt(grant, "worker-b");
    expect(await detach(adopted)).toMatchObject({ kind: "detached" });
    await adopt(grant, "worker-c");
    await world.expireLease(grant.runId);
    expect(await expire(grant.runId)).toBe(1);
    expect(await attempts(grant.runId)).toMatchObject([
      { outcome: "expired", error_code: "lease-expired", adopted_by: "worker-c" },
    ]);
  });

  it("a claim's repeat does not bring back what was detached meanwhile", async () => {
    const { grant } = await detached();
    const { claim_id } = (await liveOf(world, grant.runId))!;
    const repeat = await world.claim([], { claimId: claim_id as Uuid, repeated: true });
    expect(repeat.grants).toEqual([]);
  });

  it("one batch: two that adopt the same, one that detaches twice, and a stale one each get their own answer", async () => {
    const [one, two] = [await detached(), await running(world)];
    expect(
      await adoptRuns(world.authority, [
        { ...one.grant, worker: "worker-b" },
        { ...one.grant, worker: "worker-c" },
        { ...one.grant, worker: "worker-b" },
        { ...one.grant, fence: one.grant.fence - 1n, worker: "worker-b" },
        { ...two.grant, worker: "worker-b" },
      ]),
    ).toMatchObject([
      { kind: "adopted" },
      { kind: "not-detached" },
      { kind: "adopted" },
      { kind: "stale-fence" },
      { kind: "not-detached" },
    ]);
    expect(await detachRuns(world.authority, [two.grant, two.grant])).toMatchObject([
      { kind: "detached" },
      { kind: "detached" },
    ]);
  });

  describe("in races", () => {
    it("detach / expire: an attempt that is being detached is left alone by the sweeper", async () => {
      const { grant } = await running(world);
      await world.expireLease(grant.runId);
      const held = world.faults.hold("detach:written");
      const word = detach(grant);
      await held.arrived;
      expect(await expire(grant.runId, world.another())).toBe(0);
      held.release();
      expect(await word).toMatchObject({ kind: "detached" });
      expect(await expire(grant.runId)).toBe(0);
      expect(await stateOf(world, grant.runId)).toBe("running");
    });

    it("expire / detach: an attempt that is being expired cannot be detached any more", async () => {
      const { grant } = await running(world);
      await world.expireLease(grant.runId);
      const held = world.faults.hold("expire:locked");
      const expiry = expire(grant.runId);
      await held.arrived;
      const word = detach(grant, undefined, world.another());
      await world.lockWaits();
      held.release();
      expect(await expiry).toBe(1);
      expect(await word).toEqual({ kind: "stale-fence" });
      expect(await stateOf(world, grant.runId)).toBe("retrying");
    });

    it("adopt / adopt: one of two gets it", async () => {
      const { grant } = await detached();
      const held = world.faults.hold("adopt:written");
      const first = adopt(grant, "worker-b");
      await held.arrived;
      const second = adopt(grant, "worker-c", world.another());
      await world.lockWaits();
      held.release();
      expect(await first).toMatchObject({ kind: "adopted" });
      expect(await second).toEqual({ kind: "not-detached" });
      expect(await liveOf(world, grant.runId)).toMatchObject({ worker: "worker-b" });
    });

    it("adopt / complete: a callback that comes while the attempt is adopted counts, and its adopter hears it at the next beat", async () => {
      const { grant } = await detached();
      const held = world.faults.hold("adopt:written");
      const adoption = adopt(grant, "worker-b");
      await held.arrived;
      const callback = complete(grant, world.another());
      await world.lockWaits();
      held.release();
      expect(await adoption).toMatchObject({ kind: "adopted" });
      expect(await callback).toEqual({ kind: "accepted" });
      expect(await heartbeat(world.authority, [{ ...grant, worker: "worker-b" }])).toEqual([{ kind: "stale-fence" }]);
    });

    it("complete / adopt: what a callback has ended cannot be adopted", async () => {
      const { grant } = await detached();
      const held = world.faults.hold("complete:written");
      const callback = complete(grant);
      await held.arrived;
      const adoption = adopt(grant, "worker-b", world.another());
      await world.lockWaits();
      held.release();
      expect(await callback).toEqual({ kind: "accepted" });
      expect(await adoption).toEqual({ kind: "stale-fence" });
    });

    it("detach / heartbeat: a beat that meets the detachment neither waits nor brings the worker back", async () => {
      const { grant } = await running(world);
      const held = world.faults.hold("detach:written");
      const word = detach(grant, 60_000);
      await held.arrived;
      const other = world.another();
      expect(await heartbeat(other, [grant])).toEqual([{ kind: "busy" }]);
      held.release();
      const answer = await word;
      expect(await heartbeat(other, [grant])).toEqual([{ kind: "not-holder" }]);
      expect(dueAt(answer)).toEqual((await liveOf(world, grant.runId))!.lease_until);
    });

    it("the callback's time is looked at after the lock was waited for: what ended meanwhile is over", async () => {
      const { grant } = await detached();
      const stranger = await world.stranger();
      await stranger.query("select 1 from live_run where id = $1 for update", [grant.runId]);
      const adoption = adopt(grant, "worker-b");
      await world.lockWaits();
      await stranger.query("update live_run set lease_until = clock_timestamp() where id = $1", [grant.runId]);
      await stranger.commit();
      expect(await adoption).toEqual({ kind: "lease-lapsed" });
    });
  });
});
