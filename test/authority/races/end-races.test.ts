import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { completeRuns } from "../../../src/authority/attempts/complete.ts";
import { expireLeases } from "../../../src/authority/attempts/expire.ts";
import { failRuns } from "../../../src/authority/attempts/fail.ts";
import { heartbeat } from "../../../src/authority/attempts/heartbeat.ts";
import { cancelRuns } from "../../../src/authority/runs/cancel.ts";
import { createBatcher } from "../../../src/kernel/batcher.ts";
import { isPoison } from "../../../src/store/sql-errors.ts";
import { createWorld, type World } from "../../support/world.ts";
import { allow, hintsOf, liveOf, running, stateOf } from "../scenes.ts";

describe("ends that meet each other", () => {
  let world: World;
  beforeAll(async () => {
    world = await createWorld();
  });
  afterEach(() => world.check());
  afterAll(() => world.close());

  const done = (grant: { runId: string; fence: bigint }) => [{ runId: grant.runId, fence: grant.fence, output: null }];

  it("complete / expire: a lease that is being expired cannot be completed", async () => {
    const { grant } = await running(world);
    await world.expireLease(grant.runId);
    const held = world.faults.hold("expire:locked");
    const expiry = expireLeases(world.authority, [grant.runId], 0);
    await held.arrived;
    const end = completeRuns(world.another(), done(grant));
    await world.lockWaits();
    held.release();
    expect(await expiry).toBe(1);
    expect(await end).toEqual([{ kind: "stale-fence" }]);
    expect(await stateOf(world, grant.runId)).toBe("retrying");
  });

  it("complete / expire: a completion under way is left alone by the sweeper", async () => {
    const { grant } = await running(world);
    const held = world.faults.hold("complete:written");
    const end = completeRuns(world.authority, done(grant));
    await held.arrived;
    const other = world.another();
    expect(await expireLeases(other, [grant.runId], 0)).toBe(0);
    held.release();
    expect(await end).toEqual([{ kind: "accepted" }]);
    expect(await expireLeases(other, [grant.runId], 0)).toBe(0);
    expect(await stateOf(world, grant.runId)).toBe("succeeded");
  });

  it("expire: a heartbeat that renewed the lease after the sweeper's look is seen", async () => {
    const { grant } = await running(world);
    await world.expireLease(grant.runId);
    // The sweeper has named the run; before it comes for it, its worker wakes up.
    await heartbeat(world.authority, [grant]);
    expect(await expireLeases(world.authority, [grant.runId], 0)).toBe(0);
    expect(await stateOf(world, grant.runId)).toBe("running");
    await completeRuns(world.authority, done(grant));
  });

  it("complete / cancel: the result that came first stands, and the cancel says so", async () => {
    const { grant } = await running(world);
    const held = world.faults.hold("complete:written");
    const end = completeRuns(world.authority, done(grant));
    await held.arrived;
    const cancel = cancelRuns(world.another(), [{ tenantId: world.tenantId, runId: grant.runId }]);
    await world.lockWaits();
    held.release();
    expect(await end).toEqual([{ kind: "accepted" }]);
    expect(await cancel).toEqual([{ kind: "too-late", state: "succeeded" }]);
  });

  it("cancel / complete: a request does not undo a finished result, it is only remembered", async () => {
    const { grant } = await running(world);
    const held = world.faults.hold("cancel:written");
    const cancel = cancelRuns(world.authority, [{ tenantId: world.tenantId, runId: grant.runId }]);
    await held.arrived;
    const end = completeRuns(world.another(), done(grant));
    await world.lockWaits();
    held.release();
    expect(await cancel).toEqual([{ kind: "requested" }]);
    expect(await end).toEqual([{ kind: "accepted" }]);
    expect(await world.run(grant.runId)).toMatchObject({ state: "succeeded", cancel_requested_at: expect.any(Date) });
  });

  it("fail / fail: a report that is repeated changes nothing", async () => {
    const { grant } = await running(world);
    const report = [{ runId: grant.runId, fence: grant.fence, failure: { transient: true, code: "x", message: "x" } }];
    expect(await failRuns(world.authority, [...report, ...report])).toMatchObject([
      { kind: "retrying" },
      { kind: "already-reported" },
    ]);
    expect(await failRuns(world.authority, report)).toEqual([{ kind: "already-reported" }]);
    expect(await liveOf(world, grant.runId)).toMatchObject({ budget_attempt: 1, attempt: 1 });
  });

  it("the lease is looked at after the lock was waited for: one that ended meanwhile is over", async () => {
    const { grant } = await running(world);
    const stranger = await world.stranger();
    await stranger.query("select 1 from live_run where id = $1 for update", [grant.runId]);
    const end = completeRuns(world.authority, done(grant));
    await world.lockWaits();
    // The lease ends now: after the completion came, before it got the row.
    await stranger.query("update live_run set lease_until = clock_timestamp() where id = $1", [grant.runId]);
    await stranger.commit();
    expect(await end).toEqual([{ kind: "lease-lapsed" }]);
    await heartbeat(world.authority, [grant]);
    expect(await completeRuns(world.authority, done(grant))).toEqual([{ kind: "accepted" }]);
  });

  it("heartbeats go on while a stranger holds one of their rows", async () => {
    const grants = await Promise.all(Array.from({ length: 5 }, async () => (await running(world)).grant));
    const stranger = await world.stranger();
    await stranger.query("select 1 from live_run where id = $1 for update", [grants[2]!.runId]);
    const outcomes = await heartbeat(world.authority, grants);
    expect(outcomes.map((one) => one.kind)).toEqual(["renewed", "renewed", "busy", "renewed", "renewed"]);
    await stranger.rollback();
    await heartbeat(world.authority, [grants[2]!]);
    expect(await completeRuns(world.authority, grants.flatMap(done))).toHaveLength(5);
  });

  it("a heartbeat never reaches past the attempt's deadline", async () => {
    const { grant } = await running(world);
    await world.admin.query("update live_run set deadline_at = clock_timestamp() + interval '5 s' where id = $1", [
      grant.runId,
    ]);
    const [beat] = await heartbeat(world.authority, [grant]);
    expect(beat).toMatchObject({ kind: "renewed" });
    expect((beat as { remainingMs: number }).remainingMs).toBeLessThanOrEqual(5000);
    await world.admin.query("update live_run set deadline_at = clock_timestamp() - interval '1 s' where id = $1", [
      grant.runId,
    ]);
    expect(await heartbeat(world.authority, [grant])).toEqual([{ kind: "deadline" }]);
    await expireLeases(world.authority, [grant.runId], 0);
  });

  it("one poisoned item among 300 completions fails alone", async () => {
    const scheduleIds = await Promise.all(Array.from({ length: 30 }, () => world.newSchedule(allow())));
    for (let ago = 60_000; ago > 50_000; ago -= 1000) {
      for (const id of scheduleIds) await world.makeDue(id, ago);
      await world.materialize(scheduleIds);
    }
    const grants = (await world.claimAll()).filter((grant) => scheduleIds.includes(grant.scheduleId!));
    expect(grants).toHaveLength(300);
    let transactions = 0;
    const batcher = createBatcher({
      run: (items: Parameters<typeof completeRuns>[1]) => {
        transactions++;
        return completeRuns(world.authority, items);
      },
      maxItems: 300,
      lanes: 1,
      isPoison,
    });
    const poisoned = grants[137]!;
    const settled = await Promise.allSettled(
      grants.map(({ runId, fence }) =>
        batcher.submit({
          runId,
          fence,
          output: runId === poisoned.runId ? { objectId: "no uuid at all", sha256: "" } : null,
        }),
      ),
    );
    const rejected = settled.flatMap((one, i) => (one.status === "rejected" ? [i] : []));
    expect(rejected).toEqual([137]);
    expect(settled.filter((one) => one.status === "fulfilled" && one.value.kind === "accepted")).toHaveLength(299);
    expect(transactions).toBeLessThanOrEqual(2 * Math.ceil(Math.log2(300)) + 1);
    expect(await stateOf(world, poisoned.runId)).toBe("running");
    expect(await completeRuns(world.authority, done(poisoned))).toEqual([{ kind: "accepted" }]);
    expect(await hintsOf(world, poisoned.runId)).toEqual([]);
  });

  it("a failure text that PostgreSQL cannot store does not poison its batch", async () => {
    const [one, two] = [await running(world), await running(world)];
    const bad = {
      transient: false,
      code: "c".repeat(500),
      message: `NUL \0, half a pair \ud800, ${"x".repeat(10_000)}`,
    };
    const outcomes = await failRuns(world.authority, [
      { runId: one.grant.runId, fence: one.grant.fence, failure: bad },
      { runId: two.grant.runId, fence: two.grant.fence, failure: { transient: true, code: "x", message: "x" } },
    ]);
    expect(outcomes.map((outcome) => outcome.kind)).toEqual(["failed", "retrying"]);
    expect(String((await world.run(one.grant.runId)).error_message).length).toBeLessThanOrEqual(4000);
  });
});
