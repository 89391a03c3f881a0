import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { completeRuns } from "../../src/authority/attempts/complete.ts";
import { releaseRuns } from "../../src/authority/attempts/release.ts";
import { runNow } from "../../src/authority/runs/run-now.ts";
import { deleteSchedule } from "../../src/authority/schedules/delete-schedule.ts";
import { reviseSchedule } from "../../src/authority/schedules/revise-schedule.ts";
import type { Overlap } from "../../src/domain/definition.ts";
import { createWorld, definitionOf, type World } from "../support/world.ts";
import { allow, bear, liveOf, makeDue, running, start, stateOf, states } from "./scenes.ts";

describe("overlap", () => {
  let world: World;
  beforeAll(async () => {
    world = await createWorld();
  });
  afterEach(() => world.check());
  afterAll(() => world.close());

  const who = (scheduleId: string) => ({ tenantId: world.tenantId, actor: "test", scheduleId });
  const finish = async (runId: string) =>
    completeRuns(world.authority, [{ ...(await start(world, runId)), output: null }]);
  async function revise(scheduleId: string, overlap: Overlap) {
    const { rows } = await world.admin.query("select revision from schedule where id = $1", [scheduleId]);
    const change = { definition: definitionOf({ overlap }) };
    return reviseSchedule(world.authority, { ...who(scheduleId), expectedRevision: rows[0].revision, change });
  }

  it("forbid: runs wait in order, one at a time, over retry waits too", async () => {
    const { scheduleId, grant } = await running(world);
    const [second, third] = [await bear(world, scheduleId, 50_000), await bear(world, scheduleId, 40_000)];
    await releaseRuns(world.authority, [grant]);
    expect(await states(world, scheduleId)).toEqual(["retrying", "blocked", "blocked"]);
    await finish(grant.runId);
    expect(await states(world, scheduleId)).toEqual(["succeeded", "queued", "blocked"]);
    await finish(second);
    await finish(third);
    expect(await states(world, scheduleId)).toEqual(["succeeded", "succeeded", "succeeded"]);
    const { rows } = await world.admin.query("select held_by from live_run where id = $1", [third]);
    expect(rows).toEqual([]);
  });

  it("a queued holder counts like a running one", async () => {
    const scheduleId = await world.newSchedule();
    await bear(world, scheduleId, 60_000);
    const second = await bear(world, scheduleId, 50_000);
    expect(await liveOf(world, second)).toMatchObject({ state: "blocked", guard: null, held_by: "overlap" });
  });

  it("bufferOne: only the newest waits, the older is skipped with that reason", async () => {
    const { scheduleId, grant } = await running(world, { overlap: { policy: "bufferOne" } });
    const second = await bear(world, scheduleId, 50_000);
    await bear(world, scheduleId, 40_000);
    expect(await states(world, scheduleId)).toEqual(["running", "skipped", "blocked"]);
    expect(await world.run(second)).toMatchObject({ skip_reason: "overlap" });
    await completeRuns(world.authority, [{ ...grant, output: null }]);
    expect(await states(world, scheduleId)).toEqual(["succeeded", "skipped", "queued"]);
  });

  it("bufferOne: several instants of one pass leave one waiter as well", async () => {
    const rule = { kind: "cron", expression: "* * * * * *", zone: "Etc/UTC", seconds: true };
    const scheduleId = await world.newSchedule({ rule, overlap: { policy: "bufferOne" } } as never);
    await bear(world, scheduleId, 4000);
    const seen = await states(world, scheduleId);
    expect(seen.length).toBeGreaterThanOrEqual(4);
    expect(seen).toEqual(["queued", ...seen.slice(2).map(() => "skipped"), "blocked"]);
  });

  it("skip: nothing waits", async () => {
    const { scheduleId, grant } = await running(world, { overlap: { policy: "skip" } });
    const second = await bear(world, scheduleId, 50_000);
    expect(await world.run(second)).toMatchObject({ state: "skipped", skip_reason: "overlap" });
    await completeRuns(world.authority, [{ ...grant, output: null }]);
    await bear(world, scheduleId, 40_000);
    expect(await states(world, scheduleId)).toEqual(["succeeded", "skipped", "queued"]);
  });

  it("cancelRunning: a running holder is asked to stop, the newest waits for it", async () => {
    const { scheduleId, grant } = await running(world, { overlap: { policy: "cancelRunning" } });
    await bear(world, scheduleId, 50_000);
    await bear(world, scheduleId, 40_000);
    expect(await states(world, scheduleId)).toEqual(["running", "skipped", "blocked"]);
    expect(await liveOf(world, grant.runId)).toMatchObject({ cancel_requested_at: expect.any(Date) });
    await releaseRuns(world.authority, [grant]);
    expect(await states(world, scheduleId)).toEqual(["canceled", "skipped", "queued"]);
  });

  it("cancelRunning: a holder that has not started is canceled at once, and so is one that waits for a retry", async () => {
    const scheduleId = await world.newSchedule({ overlap: { policy: "cancelRunning" } });
    const first = await bear(world, scheduleId, 60_000);
    const second = await bear(world, scheduleId, 50_000);
    expect(await states(world, scheduleId)).toEqual(["canceled", "queued"]);
    expect((await world.claimAll()).map((grant) => grant.runId)).not.toContain(first);
    await releaseRuns(world.authority, [
      (await world.admin.query('select id as "runId", fence, worker from live_run where id = $1', [second])).rows[0],
    ]);
    expect(await stateOf(world, second)).toBe("retrying");
    expect(await runNow(world.authority, who(scheduleId))).toMatchObject({ kind: "created", state: "queued" });
    expect(await stateOf(world, second)).toBe("canceled");
  });

  it("allow(n): n at once, the rest in order", async () => {
    const scheduleId = await world.newSchedule(allow(3));
    const ids: string[] = [];
    for (let ago = 60_000; ago > 55_000; ago -= 1000) ids.push(await bear(world, scheduleId, ago));
    expect(await states(world, scheduleId)).toEqual(["queued", "queued", "queued", "blocked", "blocked"]);
    await finish(ids[1]!);
    expect(await states(world, scheduleId)).toEqual(["queued", "succeeded", "queued", "queued", "blocked"]);
    const late = await bear(world, scheduleId, 50_000);
    expect(await stateOf(world, late)).toBe("blocked");
    for (const id of [ids[0]!, ids[2]!, ids[3]!, ids[4]!, late]) await finish(id);
  });

  it("allow without a limit: everybody starts under a guard of their own", async () => {
    const scheduleId = await world.newSchedule(allow());
    const ids: string[] = [];
    for (let ago = 60_000; ago > 55_000; ago -= 1000) ids.push(await bear(world, scheduleId, ago));
    for (const id of ids) expect(await liveOf(world, id)).toMatchObject({ state: "queued", guard: id });
  });

  it("an edit that lowers the slots lets surplus runs end, and they hand nothing on", async () => {
    const scheduleId = await world.newSchedule(allow(3));
    const ids: string[] = [];
    for (let ago = 60_000; ago > 56_000; ago -= 1000) ids.push(await bear(world, scheduleId, ago));
    await revise(scheduleId, { policy: "forbid" });
    await world.check();
    expect(await states(world, scheduleId)).toEqual(["queued", "queued", "queued", "blocked"]);
    expect(await liveOf(world, ids[0]!)).toMatchObject({ guard: scheduleId });
    await finish(ids[1]!);
    await finish(ids[2]!);
    expect(await states(world, scheduleId)).toEqual(["queued", "succeeded", "succeeded", "blocked"]);
    await finish(ids[0]!);
    expect(await states(world, scheduleId)).toEqual(["succeeded", "succeeded", "succeeded", "queued"]);
  });

  it("an edit that raises the slots starts the oldest that wait; without a limit all of them", async () => {
    const scheduleId = await world.newSchedule();
    const ids: string[] = [];
    for (let ago = 60_000; ago > 55_000; ago -= 1000) ids.push(await bear(world, scheduleId, ago));
    await revise(scheduleId, { policy: "allow", limit: 3 });
    expect(await states(world, scheduleId)).toEqual(["queued", "queued", "queued", "blocked", "blocked"]);
    await world.check();
    await revise(scheduleId, { policy: "allow" });
    expect(await states(world, scheduleId)).toEqual(["queued", "queued", "queued", "queued", "queued"]);
    await world.check();
    await revise(scheduleId, { policy: "forbid" });
    await world.check();
    const blocked = await bear(world, scheduleId, 50_000);
    for (const id of ids.slice(1)) await finish(id);
    expect(await stateOf(world, blocked)).toBe("blocked");
    await finish(ids[0]!);
    expect(await stateOf(world, blocked)).toBe("queued");
  });

  it("without a limit, waiting runs of one instant get their own ids as guards, not each other's", async () => {
    const scheduleId = await world.newSchedule();
    const now = Date.now();
    const { transact } = world.authority;
    const authority: typeof world.authority = {
      ...world.authority,
      transact: (verb, work) => transact(verb, (tx) => work({ ...tx, authorityNow: async () => now })),
    };
    for (let n = 0; n < 9; n++) await runNow(authority, who(scheduleId));
    await revise(scheduleId, { policy: "allow" });
    const live = (await world.live()).filter((run) => run.schedule_id === scheduleId);
    expect(live).toHaveLength(9);
    for (const run of live) expect(run.guard).toBe(run.id);
    expect(await revise(scheduleId, { policy: "allow", limit: 3 })).toMatchObject({ kind: "revised" });
    for (const run of live) await finish(run.id);
  });

  it("who only waits in line looks at nobody that waits: a stranger's lock on one holds up no new run", async () => {
    const scheduleId = await world.newSchedule();
    await bear(world, scheduleId, 60_000);
    const second = await bear(world, scheduleId, 50_000);
    const stranger = await world.stranger();
    await stranger.query("select 1 from live_run where id = $1 for update", [second]);
    const hasty = world.another({ lockTimeoutMs: 100 });
    expect(await runNow(hasty, who(scheduleId))).toMatchObject({ kind: "created", state: "blocked" });
    await makeDue(world, scheduleId, 40_000);
    expect(await world.materialize([scheduleId])).toMatchObject({ runs: 1, undecided: 0 });
    await stranger.rollback();
    await deleteSchedule(world.authority, who(scheduleId));
  });

  it("cancelRunning after slots were lowered: a canceled surplus run frees nothing", async () => {
    const scheduleId = await world.newSchedule(allow(2));
    const [first, second] = [await bear(world, scheduleId, 60_000), await bear(world, scheduleId, 50_000)];
    await start(world, first);
    await revise(scheduleId, { policy: "cancelRunning" });
    const third = await bear(world, scheduleId, 40_000);
    expect([await stateOf(world, first), await stateOf(world, second), await stateOf(world, third)]).toEqual([
      "running",
      "canceled",
      "blocked",
    ]);
  });

  it("delete cancels what waits; what runs goes on and publishes its result", async () => {
    const { scheduleId, grant } = await running(world);
    await bear(world, scheduleId, 50_000);
    expect(await deleteSchedule(world.authority, who(scheduleId))).toEqual({ kind: "deleted", canceled: 1 });
    expect(await states(world, scheduleId)).toEqual(["running", "canceled"]);
    expect(await world.complete(grant, "a result")).toEqual({ kind: "accepted" });
    expect(await world.run(grant.runId)).toMatchObject({ state: "succeeded", result_uri: expect.any(String) });
  });
});
