import { randomUUID } from "node:crypto";
import { setImmediate } from "node:timers/promises";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { claimRuns } from "../../../src/authority/attempts/claim.ts";
import { failRuns } from "../../../src/authority/attempts/fail.ts";
import { heartbeat } from "../../../src/authority/attempts/heartbeat.ts";
import { releaseRuns } from "../../../src/authority/attempts/release.ts";
import type { Authority } from "../../../src/authority/authority.ts";
import { pauseSchedule } from "../../../src/authority/schedules/pause-schedule.ts";
import type { Uuid } from "../../../src/kernel/ids.ts";
import { createWorld, type World } from "../../support/world.ts";
import { bear, hintsOf, liveOf, makeDue, stateOf } from "../scenes.ts";

describe("claims that meet each other", () => {
  let world: World;
  beforeAll(async () => {
    world = await createWorld();
  });
  afterEach(() => world.check());
  afterAll(() => world.close());

  const born = async () => bear(world, await world.newSchedule(), 5000);
  const request = (rows: readonly bigint[], claimId: Uuid = randomUUID(), repeated = false) => ({
    claimId,
    worker: "worker-b",
    slots: { short: 100 },
    hints: rows.map((rowId) => ({ rowId, epoch: 1 })),
    repeated,
  });
  const attempts = async (runId: Uuid) =>
    Number((await world.admin.query("select count(*) as n from attempt where run_id = $1", [runId])).rows[0].n);
  const nameAgain = async (runId: Uuid, times = 1) =>
    (
      await world.admin.query(
        `insert into outbox (kind, tenant_id, class, lane, available_at, runs)
         select 'run', tenant_id, class, lane, clock_timestamp(), array_fill(id, array[$2::int]) from live_run where id = $1 returning id`,
        [runId, times],
      )
    ).rows[0].id as bigint;

  it("the same hint twice in one batch starts its run once", async () => {
    const runId = await born();
    const [hint] = await hintsOf(world, runId);
    const { grants } = await world.claim([hint!, hint!]);
    expect(grants).toHaveLength(1);
    expect(await attempts(runId)).toBe(1);
  });

  it("two outbox rows, or one row, that name a run twice start it once", async () => {
    const runId = await born();
    const rows = [...(await hintsOf(world, runId)), await nameAgain(runId), await nameAgain(runId, 2)];
    const { grants } = await world.claim(rows);
    expect(grants).toHaveLength(1);
    expect(await attempts(runId)).toBe(1);
  });

  it("the same hint in two claims at once: the second does not wait, and answers that somebody is at it", async () => {
    const runId = await born();
    const rows = await hintsOf(world, runId);
    const held = world.faults.hold("claim:written");
    const first = claimRuns(world.authority, request(rows));
    await held.arrived;
    expect(await claimRuns(world.another(), request(rows))).toMatchObject({ grants: [], counts: { busy: 1, gone: 0 } });
    held.release();
    expect((await first).grants).toHaveLength(1);
    expect(await attempts(runId)).toBe(1);
  });

  it("two rows naming one run in two claims at once: the run that the other one holds is put back, then found running", async () => {
    const runId = await born();
    const rows = await hintsOf(world, runId);
    const again = await nameAgain(runId);
    const held = world.faults.hold("claim:live-locked");
    const first = claimRuns(world.authority, request(rows));
    await held.arrived;
    expect((await claimRuns(world.another(), request([again]))).counts).toMatchObject({ claimed: 0, "put-back": 1 });
    held.release();
    expect((await first).grants).toHaveLength(1);
    await world.makeAvailable();
    expect((await world.claim(await hintsOf(world, runId))).counts).toMatchObject({ claimed: 0, gone: 1 });
    expect(await attempts(runId)).toBe(1);
  });

  it("a run that a stranger holds goes back with a moment's patience, not away", async () => {
    const runId = await born();
    const stranger = await world.stranger();
    await stranger.query("select 1 from live_run where id = $1 for update", [runId]);
    const rows = await hintsOf(world, runId);
    expect((await world.claim(rows)).counts).toMatchObject({ claimed: 0, "put-back": 1, gone: 0 });
    await stranger.rollback();
    await world.check();
    await world.makeAvailable();
    expect((await world.claim(await hintsOf(world, runId))).counts).toMatchObject({ claimed: 1 });
  });

  it("a claim that is rolled back beside a duplicate hint leaves the outbox row for later", async () => {
    const runId = await born();
    const rows = await hintsOf(world, runId);
    const reached = Promise.withResolvers<void>();
    const gate = Promise.withResolvers<void>();
    world.faults.once("claim:written", async () => {
      reached.resolve();
      await gate.promise;
      throw new Error("the worker's machine died");
    });
    const first = claimRuns(world.authority, request(rows)).catch((error: Error) => error.message);
    await reached.promise;
    // The duplicate is acknowledged: nothing in Redis names the row any more.
    expect((await claimRuns(world.another(), request(rows))).counts).toMatchObject({ busy: 1 });
    gate.resolve();
    expect(await first).toBe("the worker's machine died");
    expect(await hintsOf(world, runId)).toEqual(rows);
    expect(await stateOf(world, runId)).toBe("queued");
    expect((await world.claim(rows)).grants).toHaveLength(1);
  });

  it("a repeat waits for the first sending's commit and gets the same grants", async () => {
    const runId = await born();
    const rows = await hintsOf(world, runId);
    const claimId = randomUUID();
    const held = world.faults.hold("claim:written");
    const first = claimRuns(world.authority, request(rows, claimId));
    await held.arrived;
    const repeat = claimRuns(world.another(), request(rows, claimId, true));
    await world.lockWaits();
    held.release();
    const { grants } = await first;
    expect(grants).toHaveLength(1);
    expect((await repeat).grants).toEqual(grants);
    expect(await attempts(runId)).toBe(1);
  });

  it("a repeat after a lost reply gets the same grants, also for a second attempt", async () => {
    const runId = await born();
    const one = await claimRuns(world.authority, request(await hintsOf(world, runId)));
    await failRuns(world.authority, [
      { runId, fence: one.grants[0]!.fence, failure: { transient: true, code: "x", message: "x" } },
    ]);
    await world.makeAvailable();
    const rows = await hintsOf(world, runId);
    const claimId = randomUUID();
    const first = await claimRuns(world.authority, request(rows, claimId));
    const repeat = await claimRuns(world.another(), request(rows, claimId, true));
    expect(first.grants).toMatchObject([{ attempt: 2 }]);
    expect(repeat.grants).toEqual(first.grants);
    expect(await attempts(runId)).toBe(2);
  });

  it("a repeat whose first sending never arrived is a claim like any other", async () => {
    const runId = await born();
    const { grants } = await claimRuns(world.authority, request(await hintsOf(world, runId), randomUUID(), true));
    expect(grants).toMatchObject([{ runId, attempt: 1 }]);
  });

  it("where a limit is waited for, the lease is counted from after that wait", async () => {
    const tenantId = await world.newTenant("limited");
    await world.admin.query("insert into usage (tenant_id, class, max_running) values ($1, 'short', 5)", [tenantId]);
    const runId = await bear(world, await world.newSchedule({ tenantId }), 5000);
    const stranger = await world.stranger();
    await stranger.query("select 1 from usage where tenant_id = $1 for update", [tenantId]);
    const claim = world.claim(await hintsOf(world, runId));
    await world.lockWaits();
    const [now] = await stranger.query("select extract(epoch from clock_timestamp()) * 1000 as at");
    await stranger.commit();
    expect((await claim).grants[0]!.startedAt).toBeGreaterThan(Number(now!.at));
  });

  it("claim / quota: a limit that is set while a claim is under way holds for that claim", async () => {
    const tenantId = await world.newTenant("soon limited");
    const first = await bear(world, await world.newSchedule({ tenantId }), 5000);
    expect((await world.claim(await hintsOf(world, first))).grants).toHaveLength(1);
    const second = await bear(world, await world.newSchedule({ tenantId }), 5000);
    const stranger = await world.stranger();
    await stranger.query("update usage set max_running = 1 where tenant_id = $1", [tenantId]);
    // It has found no limit, so that it comes to the usage row last of all.
    const claim = world.claim(await hintsOf(world, second));
    await world.lockWaits();
    await stranger.commit();
    expect((await claim).counts).toMatchObject({ claimed: 0, "put-back": 1 });
    expect(await stateOf(world, second)).toBe("queued");
  });

  it("claim / pause: a pause does not take a run that is being claimed for one that waits", async () => {
    const scheduleId = await world.newSchedule({ overlap: { policy: "cancelRunning" } });
    const runId = await bear(world, scheduleId, 60_000);
    const next = await makeDue(world, scheduleId, 30_000);
    const held = world.faults.hold("claim:written");
    const claim = world.claim(await hintsOf(world, runId));
    await held.arrived;
    const other = world.another();
    const pause = pauseSchedule(other, { tenantId: world.tenantId, actor: "ann", scheduleId });
    // It has looked at the run, and will look again.
    while ((await triesOf(other, "pause-schedule")) === 0) await setImmediate();
    held.release();
    const { grants } = await claim;
    expect(grants).toMatchObject([{ runId, attempt: 1 }]);
    expect(await pause).toMatchObject({ kind: "paused", settled: 1 });
    // The newer run replaces it as it replaces a running one: by asking.
    expect(await stateOf(world, next)).toBe("blocked");
    expect(await heartbeat(world.authority, grants)).toMatchObject([{ kind: "renewed", cancelRequested: true }]);
  });

  it("pause / claim: what a pause is deciding upon is put back by a claim, and starts after it", async () => {
    const scheduleId = await world.newSchedule();
    const runId = await bear(world, scheduleId, 60_000);
    const next = await makeDue(world, scheduleId, 30_000);
    const held = world.faults.hold("materialize:written");
    const pause = pauseSchedule(world.authority, { tenantId: world.tenantId, actor: "ann", scheduleId });
    await held.arrived;
    const other = world.another();
    const early = await claimRuns(other, request(await hintsOf(world, runId)));
    expect(early).toMatchObject({ grants: [], counts: { "put-back": 1, gone: 0 } });
    held.release();
    expect(await pause).toMatchObject({ kind: "paused", settled: 1 });
    await world.makeAvailable();
    // Paused, what was born before still runs.
    const { grants } = await claimRuns(other, request(await hintsOf(world, runId)));
    expect(grants).toMatchObject([{ runId, attempt: 1 }]);
    expect(await stateOf(world, next)).toBe("blocked");
  });

  it("release / claim: another hint of a run that is being given back starts nothing; its new hint does, once", async () => {
    const runId = await born();
    const { grants } = await claimRuns(world.authority, request(await hintsOf(world, runId)));
    const stray = await nameAgain(runId);
    const held = world.faults.hold("release:written");
    const release = releaseRuns(world.authority, grants);
    await held.arrived;
    const other = world.another();
    expect(await claimRuns(other, request([stray]))).toMatchObject({ grants: [], counts: { gone: 1, "put-back": 0 } });
    held.release();
    expect(await release).toEqual([{ kind: "released" }]);
    const again = await claimRuns(other, request(await hintsOf(world, runId)));
    expect(again.grants).toMatchObject([{ runId, attempt: 2 }]);
    expect(await attempts(runId)).toBe(2);
  });

  it("claim / release: a release that is said again, while the run is claimed anew, is answered and touches nothing", async () => {
    const runId = await born();
    const first = (await claimRuns(world.authority, request(await hintsOf(world, runId)))).grants[0]!;
    await releaseRuns(world.authority, [first]);
    const held = world.faults.hold("claim:written");
    const claim = claimRuns(world.authority, request(await hintsOf(world, runId)));
    await held.arrived;
    // The same worker's name: only the fence tells the attempts apart.
    const repeat = releaseRuns(world.another(), [first]);
    await world.lockWaits();
    held.release();
    const [second] = (await claim).grants;
    expect(await repeat).toEqual([{ kind: "released" }]);
    expect(await liveOf(world, runId)).toMatchObject({ state: "running", attempt: 2, fence: second!.fence });
    expect(await heartbeat(world.authority, [second!])).toMatchObject([{ kind: "renewed" }]);
  });

  async function triesOf(authority: Authority, verb: string): Promise<number> {
    const { values } = await authority.metrics.verbSeconds.get();
    return values.find((one) => one.metricName?.endsWith("_count") && one.labels.verb === verb)?.value ?? 0;
  }
});
