import { randomUUID } from "node:crypto";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { claimRuns } from "../../src/authority/attempts/claim.ts";
import { cancelRuns } from "../../src/authority/runs/cancel.ts";
import { materialize } from "../../src/authority/runs/materialize.ts";
import { runAdHoc } from "../../src/authority/runs/run-ad-hoc.ts";
import { workSchema } from "../../src/domain/definition.ts";
import { createWorld, type World } from "../support/world.ts";
import { bear, hintsOf, liveOf, stateOf } from "./scenes.ts";

describe("what a claim answers", () => {
  let world: World;
  beforeAll(async () => {
    world = await createWorld();
  });
  afterEach(() => world.check());
  afterAll(() => world.close());

  const born = async (change: Parameters<World["newSchedule"]>[0] = {}) =>
    bear(world, await world.newSchedule(change), 5000);
  const adHoc = async (count: number, tenantId = world.tenantId, class_: "short" | "long" = "short") => {
    const work = workSchema.parse({ job: { kind: "function", name: "test.noop" }, class: class_ });
    const made = await Promise.all(
      Array.from({ length: count }, () =>
        runAdHoc(world.authority, { tenantId, actor: "test", work, payload: { n: count } }),
      ),
    );
    return made.map((one) => (one as { runId: string }).runId);
  };

  it("a due run: fence, lease, attempt, usage, and what to do", async () => {
    const runId = await born({ payload: { to: "ops" }, attemptTimeoutMs: 600_000 });
    const before = await world.usage();
    const { grants, counts } = await world.claim(await hintsOf(world, runId));
    expect(counts).toMatchObject({ claimed: 1, "put-back": 0, gone: 0 });
    const [grant] = grants;
    expect(grant).toMatchObject({
      runId,
      attempt: 1,
      class: "short",
      payload: { to: "ops" },
      job: { name: "test.noop" },
    });
    expect(grant!.deadlineAt - grant!.startedAt).toBe(600_000);
    const live = (await liveOf(world, runId))!;
    expect(live).toMatchObject({ state: "running", fence: grant!.fence, worker: "worker-a", attempt: 1 });
    expect((live.lease_until as Date).getTime() - (live.started_at as Date).getTime()).toBe(60_000);
    expect(await world.usage()).toBe(before + 1);
    expect(await hintsOf(world, runId)).toEqual([]);
  });

  it("a lease never reaches beyond the attempt's deadline", async () => {
    const runId = await born({ attemptTimeoutMs: 2000 });
    const { grants } = await world.claim(await hintsOf(world, runId));
    const live = (await liveOf(world, runId))!;
    expect(live.lease_until).toEqual(live.deadline_at);
    expect(grants[0]!.deadlineAt - grants[0]!.startedAt).toBe(2000);
  });

  it("not due yet: put back with its time, and not lost", async () => {
    const runId = await born();
    await world.admin.query("update live_run set not_before = clock_timestamp() + interval '1 hour' where id = $1", [
      runId,
    ]);
    const before = await hintsOf(world, runId);
    const { grants, counts } = await world.claim(before);
    expect(grants).toEqual([]);
    expect(counts).toMatchObject({ "put-back": 1 });
    const [row] = (await world.outbox()).filter((one) => one.runs.includes(runId));
    expect(before).not.toContain(row!.id);
    expect(row!.published_at).toBeNull();
    expect(row!.available_at).toEqual((await liveOf(world, runId))!.not_before);
  });

  it("a canceled run ends there and hands its guard on", async () => {
    const scheduleId = await world.newSchedule();
    const first = await bear(world, scheduleId, 5000);
    const second = await bear(world, scheduleId, 4000);
    // A request that came while the run was still running, before it was released.
    await world.admin.query("update live_run set cancel_requested_at = clock_timestamp() where id = $1", [first]);
    const { counts } = await world.claim(await hintsOf(world, first));
    expect(counts).toMatchObject({ claimed: 0, canceled: 1 });
    expect([await stateOf(world, first), await stateOf(world, second)]).toEqual(["canceled", "queued"]);
  });

  it("past its start deadline it is skipped with that reason, and hands its guard on", async () => {
    const scheduleId = await world.newSchedule({ startDeadlineMs: 3000 });
    const first = await bear(world, scheduleId, 9000);
    const second = await bear(world, scheduleId, 1000);
    const { counts } = await world.claim(await hintsOf(world, first));
    expect(counts).toMatchObject({ claimed: 0, "missed-deadline": 1 });
    expect(await world.run(first)).toMatchObject({ state: "skipped", skip_reason: "start-deadline" });
    expect(await stateOf(world, second)).toBe("queued");
  });

  it("a start deadline that passes while the claim waits for the usage row loses nothing", async () => {
    const tenantId = await world.newTenant("limited and late");
    await world.admin.query("insert into usage (tenant_id, class, max_running) values ($1, 'short', 5)", [tenantId]);
    const scheduleId = await world.newSchedule({ tenantId, startDeadlineMs: 1_000_000 });
    const runId = await bear(world, scheduleId, 2000);
    const [{ deadline }] = (
      await world.admin.query(
        `update live_run set start_deadline = clock_timestamp() + interval '300 ms' where id = $1
         returning extract(epoch from start_deadline) * 1000 as deadline`,
        [runId],
      )
    ).rows;
    const stranger = await world.stranger();
    await stranger.query("select 1 from usage where tenant_id = $1 for update", [tenantId]);
    const claim = world.claim(await hintsOf(world, runId));
    await world.lockWaits();
    await world.passes(Number(deadline));
    await stranger.commit();
    expect((await claim).counts).toMatchObject({ claimed: 0, "put-back": 1 });
    await world.check();
    expect((await world.claim(await hintsOf(world, runId))).counts).toMatchObject({ "missed-deadline": 1 });
  });

  it("a start deadline is for the first start only", async () => {
    const runId = await born({ startDeadlineMs: 10_000 });
    const { grants } = await world.claim(await hintsOf(world, runId));
    await world.expireLease(runId);
    const { expireLeases } = await import("../../src/authority/attempts/expire.ts");
    await expireLeases(world.authority, [runId], 0);
    await world.admin.query("update live_run set start_deadline = clock_timestamp() - interval '1 s' where id = $1", [
      runId,
    ]);
    await world.makeAvailable();
    const again = await world.claim(await hintsOf(world, runId));
    expect(again.grants).toMatchObject([{ runId, attempt: 2 }]);
    expect(again.grants[0]!.fence).toBeGreaterThan(grants[0]!.fence);
  });

  it("more runs than slots: what fits starts, the rest goes back unpublished and whole", async () => {
    const ids = await Promise.all(Array.from({ length: 10 }, () => world.newSchedule()));
    for (const id of ids) await world.makeDue(id, 5000);
    await materialize(world.authority, ids, { sizeOf: () => 32, publishNow: () => true });
    const rows = (await world.outbox()).filter((row) => row.runs.length === 10);
    expect(rows).toHaveLength(1);
    expect(rows[0]!.published_at).not.toBeNull();
    const { counts } = await world.claim([rows[0]!.id], { slots: 3 });
    expect(counts).toMatchObject({ claimed: 3, "put-back": 7 });
    const rest = (await world.outbox()).filter((row) => rows[0]!.runs.some((id) => row.runs.includes(id)));
    expect(rest.flatMap((row) => row.runs)).toHaveLength(7);
    expect(rest.every((row) => row.published_at === null)).toBe(true);
    expect((await world.claim(rest.map((row) => row.id))).counts).toMatchObject({ claimed: 7 });
  });

  it("a tenant at its limit: what does not fit goes back in rows that do, and is marked as held", async () => {
    const tenantId = await world.newTenant("limited");
    await world.admin.query("insert into quota (tenant_id, class, max_running) values ($1, 'short', 2)", [tenantId]);
    const ids = await Promise.all(Array.from({ length: 7 }, () => world.newSchedule({ tenantId })));
    for (const id of ids) await world.makeDue(id, 5000);
    await materialize(world.authority, ids, { sizeOf: () => 32, publishNow: () => false });
    const mine = async () => (await world.outbox()).filter((row) => row.tenant_id === tenantId);
    const { counts, grants } = await world.claim((await mine()).map((row) => row.id));
    expect(counts).toMatchObject({ claimed: 2, "put-back": 5 });
    expect((await mine()).map((row) => row.runs.length).sort()).toEqual([1, 2, 2]);
    const held = await world.admin.query("select held_by from live_run where tenant_id = $1 and state = 'queued'", [
      tenantId,
    ]);
    expect(new Set(held.rows.map((row) => row.held_by))).toEqual(new Set(["tenant-limit"]));
    expect((await world.claim((await mine()).map((row) => row.id))).counts).toMatchObject({
      claimed: 0,
      "put-back": 5,
    });
    await world.complete(grants[0]!);
    expect((await world.claim((await mine()).map((row) => row.id))).counts).toMatchObject({
      claimed: 1,
      "put-back": 4,
    });
  });

  it("with a start rate what goes back is one run a row", async () => {
    const tenantId = await world.newTenant("rated");
    await world.admin.query(
      "insert into quota (tenant_id, class, max_running, start_rate_per_second) values ($1, 'short', 0, 5)",
      [tenantId],
    );
    const ids = await Promise.all(Array.from({ length: 3 }, () => world.newSchedule({ tenantId })));
    for (const id of ids) await world.makeDue(id, 5000);
    await materialize(world.authority, ids, { sizeOf: () => 32, publishNow: () => false });
    const mine = async () => (await world.outbox()).filter((row) => row.tenant_id === tenantId);
    expect((await world.claim((await mine()).map((row) => row.id))).counts).toMatchObject({
      claimed: 0,
      "put-back": 3,
    });
    expect((await mine()).map((row) => row.runs.length)).toEqual([1, 1, 1]);
  });

  it("many claimers at once never go over a limit of 10", async () => {
    const tenantId = await world.newTenant("ten at most");
    await world.admin.query("insert into quota (tenant_id, class, max_running) values ($1, 'short', 10)", [tenantId]);
    const runs = await adHoc(40, tenantId);
    const running = async () =>
      Number(
        (
          await world.admin.query("select count(*) as n from live_run where tenant_id = $1 and state = 'running'", [
            tenantId,
          ])
        ).rows[0].n,
      );
    const claimers = [world.authority, world.another(), world.another(), world.another()];
    let started = 0;
    const wave = async () => {
      const rows = (await world.outbox()).filter((row) => row.tenant_id === tenantId).map((row) => row.id);
      const share = (i: number) => rows.filter((_, at) => at % claimers.length === i);
      const done = await Promise.all(
        claimers.map((one, i) =>
          claimRuns(one, {
            claimId: randomUUID(),
            worker: `w${i}`,
            slots: { short: 100 },
            hints: share(i).map((rowId) => ({ rowId, epoch: 1 })),
            repeated: false,
          }),
        ),
      );
      const grants = done.flatMap((one) => one.grants);
      started += grants.length;
      expect(await running()).toBeLessThanOrEqual(10);
      return grants;
    };
    for (let grants = await wave(); grants.length > 0; grants = await wave()) {
      expect(grants.length).toBeLessThanOrEqual(10);
      await Promise.all(grants.map((grant) => world.complete(grant)));
      await world.check();
    }
    expect(started).toBe(runs.length);
  });

  it("already running, ended, unknown, of another epoch: nothing, and nothing is lost", async () => {
    const [running, ended, other] = [await born(), await born(), await born()];
    const [runningHint] = await hintsOf(world, running);
    const [endedHint] = await hintsOf(world, ended);
    await cancelRuns(world.authority, [{ tenantId: world.tenantId, runId: ended }]);
    await world.claim([runningHint!]);
    expect((await world.claim([runningHint!])).counts).toMatchObject({ claimed: 0, gone: 1 });
    expect((await world.claim([endedHint!])).counts).toMatchObject({ claimed: 0, gone: 1 });
    expect(await hintsOf(world, ended)).toEqual([]);
    expect((await world.claim([999_999_999n])).counts).toMatchObject({ claimed: 0, gone: 1 });
    const otherHints = await hintsOf(world, other);
    const elsewhere = await claimRuns(world.authority, {
      claimId: randomUUID(),
      worker: "w",
      slots: { short: 10 },
      hints: otherHints.map((rowId) => ({ rowId, epoch: 2 })),
      repeated: false,
    });
    expect(elsewhere.grants).toEqual([]);
    expect(await hintsOf(world, other)).toEqual(otherHints);
  });

  it("classes have slots of their own", async () => {
    const [long] = await adHoc(1, world.tenantId, "long");
    const hints = (await hintsOf(world, long!)).map((rowId) => ({ rowId, epoch: 1 }));
    const claim = { claimId: randomUUID(), worker: "w", slots: { short: 5 }, hints, repeated: false };
    expect((await claimRuns(world.authority, claim)).counts).toMatchObject({ claimed: 0, "put-back": 1 });
  });

  it.each([
    ["another system", "system_identifier = system_identifier + 1", "system_identifier = system_identifier - 1"],
    ["another timeline", "timeline = timeline + 1", "timeline = timeline - 1"],
  ])("on a restored or promoted copy (%s) nothing starts until an operator has looked", async (_, change, back) => {
    const runId = await born();
    await world.admin.query(`update authority_epoch set ${change}`);
    await expect(world.claim(await hintsOf(world, runId))).rejects.toMatchObject({
      code: "recovery-needed",
      actor: "operator",
    });
    expect(await stateOf(world, runId)).toBe("queued");
    await world.admin.query(`update authority_epoch set ${back}`);
    expect((await world.claim(await hintsOf(world, runId))).counts).toMatchObject({ claimed: 1 });
  });

  // The last story here: an epoch is never lowered.
  it("a raised epoch gives higher fences", async () => {
    const [first, second] = [await born(), await born()];
    const before = (await world.claim(await hintsOf(world, first))).grants[0]!.fence;
    await world.admin.query("update authority_epoch set epoch = 2");
    const hints = (await hintsOf(world, second)).map((rowId) => ({ rowId, epoch: 2 }));
    const { grants } = await claimRuns(world.authority, {
      claimId: randomUUID(),
      worker: "w",
      slots: { short: 1 },
      hints,
      repeated: false,
    });
    expect(grants[0]!.fence >> 40n).toBe(2n);
    expect(grants[0]!.fence).toBeGreaterThan(before);
  });
});
