import { createHash } from "node:crypto";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { createBackfill } from "../../../src/authority/operations/backfill/create.ts";
import { estimateBackfill } from "../../../src/authority/operations/backfill/estimate.ts";
import { endMissedStarts } from "../../../src/authority/repair/missed-starts.ts";
import { cancelRuns } from "../../../src/authority/runs/cancel.ts";
import { runNow } from "../../../src/authority/runs/run-now.ts";
import { deleteSchedule } from "../../../src/authority/schedules/delete-schedule.ts";
import { pauseSchedule } from "../../../src/authority/schedules/pause-schedule.ts";
import { resumeSchedule } from "../../../src/authority/schedules/resume-schedule.ts";
import { reviseSchedule } from "../../../src/authority/schedules/revise-schedule.ts";
import { createWorld, definitionOf, type World } from "../../support/world.ts";
import { away, EVERY_MINUTE, hintsOf, history, liveOf, MINUTE, start, states } from "../scenes.ts";
import { begin, finish, missed, openedRangesOf, operationOf, runIdAt, step } from "./pasts.ts";

describe("a backfill", () => {
  let world: World;
  beforeAll(async () => {
    world = await createWorld();
  });
  afterEach(() => world.check());
  afterAll(() => world.close());

  const who = (scheduleId: string) => ({ tenantId: world.tenantId, actor: "test", scheduleId });
  const range = (scheduleId: string, fromAt: number, toAt: number) => ({
    tenantId: world.tenantId,
    scheduleId,
    fromAt,
    toAt,
    policy: "missing" as const,
  });
  const request = (scheduleId: string, fromAt: number, toAt: number) => ({
    ...range(scheduleId, fromAt, toAt),
    actor: "test",
    reason: "a test",
    pacePerSecond: 10,
    total: null,
  });

  it("opens skips again: the same run, of the revision in force, on the late lane", async () => {
    const { scheduleId, firstAt } = await missed(world, 2);
    expect(await states(world, scheduleId)).toEqual(["skipped", "skipped", "skipped"]);
    await reviseSchedule(world.authority, { ...who(scheduleId), expectedRevision: 1, change: { payload: { v: 2 } } });
    const id = await begin(world, scheduleId, firstAt, firstAt + 2 * MINUTE + 1);
    expect(await finish(world, id)).toBe("ended");
    expect(await history(world, scheduleId)).toMatchObject(
      [0, 1, 2].map((n) => ({
        id: runIdAt(scheduleId, firstAt + n * MINUTE),
        state: "queued",
        skip_reason: null,
        revision: 2,
        trigger: "backfill",
      })),
    );
    expect(await operationOf(world, id)).toMatchObject({ state: "done", done: 3, failed: 0, tally: { skipped: 3 } });
    const runId = runIdAt(scheduleId, firstAt);
    expect(await liveOf(world, runId)).toMatchObject({ lane: 2, held_by: "replay", revision: 2, start_deadline: null });
    const grant = await start(world, runId);
    expect(grant.payload).toEqual({ v: 2 });
    expect(await world.complete(grant, "late but whole")).toMatchObject({ kind: "accepted" });
    expect(await world.run(runId)).toMatchObject({ state: "succeeded", skip_reason: null, attempts: 1 });
  });

  it("makes runs of a range's instants; the range remembers how many, and stays the link of the chain", async () => {
    const { scheduleId, firstAt } = await missed(world, 9);
    const id = await begin(world, scheduleId, firstAt + 2 * MINUTE, firstAt + 5 * MINUTE);
    expect(await finish(world, id)).toBe("ended");
    const runs = await history(world, scheduleId);
    expect(runs.map((run) => run.scheduled_at.getTime())).toEqual([2, 3, 4].map((n) => firstAt + n * MINUTE));
    expect(runs).toMatchObject([2, 3, 4].map((n) => ({ id: runIdAt(scheduleId, firstAt + n * MINUTE) })));
    expect(await openedRangesOf(world, scheduleId)).toMatchObject([{ instants: 10n, backfilled: 3n }]);
    expect((await operationOf(world, id)).tally).toEqual({ "skipped-range": 3 });
    // Once more over all of it: three exist, seven are made, none twice.
    const again = await begin(world, scheduleId, firstAt, firstAt + 9 * MINUTE + 1);
    expect(await finish(world, again)).toBe("ended");
    expect(await operationOf(world, again)).toMatchObject({
      done: 7,
      tally: { "skipped-range": 7, "existing:queued": 3 },
    });
    expect(await openedRangesOf(world, scheduleId)).toMatchObject([{ instants: 10n, backfilled: 10n }]);
    expect(await history(world, scheduleId)).toHaveLength(10);
  });

  it("reaches back before the schedule was made, and tells every kind of past apart", async () => {
    const { scheduleId, firstAt } = await missed(world, 6);
    await runNow(world.authority, who(scheduleId));
    const [fromAt, toAt] = [firstAt - 4 * MINUTE, firstAt + 3 * MINUTE];
    const planned = await estimateBackfill(world.authority, range(scheduleId, fromAt, toAt));
    expect(planned).toMatchObject({
      kind: "estimated",
      estimate: {
        instants: 7,
        runs: 7,
        capped: false,
        tally: { unrecorded: 4, "skipped-range": 3 },
        firstAt: fromAt,
        lastAt: toAt - MINUTE,
      },
    });
    const id = await begin(world, scheduleId, fromAt, toAt);
    await finish(world, id);
    const runs = (await history(world, scheduleId)).filter((run) => run.trigger === "backfill");
    expect(runs.map((run) => run.scheduled_at.getTime())).toEqual(
      [0, 1, 2, 3, 4, 5, 6].map((n) => fromAt + n * MINUTE),
    );
    expect(await openedRangesOf(world, scheduleId)).toMatchObject([{ backfilled: 3n }]);
  });

  it("leaves runs alone, however they ended or stand, and reports them", async () => {
    const { scheduleId, firstAt } = await missed(world, 5);
    await begin(world, scheduleId, firstAt, firstAt + 3 * MINUTE).then((id) => finish(world, id));
    const [one, two, three] = [0, 1, 2].map((n) => runIdAt(scheduleId, firstAt + n * MINUTE));
    await world.complete(await start(world, one!));
    await cancelRuns(world.authority, [{ tenantId: world.tenantId, runId: two! }]);
    await start(world, three!);
    const id = await begin(world, scheduleId, firstAt, firstAt + 4 * MINUTE, { policy: "all-skipped" });
    await finish(world, id);
    expect(await operationOf(world, id)).toMatchObject({
      done: 1,
      tally: { "existing:succeeded": 1, "existing:canceled": 1, "existing:running": 1, "skipped-range": 1 },
    });
    expect(await states(world, scheduleId)).toEqual(["succeeded", "canceled", "running", "queued"]);
  });

  it("leaves alone what a policy skipped on purpose, unless it is asked for", async () => {
    const { scheduleId, firstAt } = await missed(world, 2);
    // As an overlap and a start deadline would have left them.
    await world.admin.query(
      `update run set skip_reason = case when scheduled_at = $2 then 'overlap' else 'start-deadline' end
        where schedule_id = $1 and scheduled_at <= $3`,
      [scheduleId, new Date(firstAt), new Date(firstAt + MINUTE)],
    );
    const id = await begin(world, scheduleId, firstAt, firstAt + 2 * MINUTE + 1);
    await finish(world, id);
    expect(await operationOf(world, id)).toMatchObject({
      done: 1,
      tally: { "excluded:overlap": 1, "excluded:start-deadline": 1, skipped: 1 },
    });
    expect(await states(world, scheduleId)).toEqual(["skipped", "skipped", "queued"]);
    const all = await begin(world, scheduleId, firstAt, firstAt + 2 * MINUTE + 1, { policy: "all-skipped" });
    await finish(world, all);
    expect(await operationOf(world, all)).toMatchObject({ done: 2, tally: { skipped: 2, "existing:queued": 1 } });
  });

  it("opens what did not start in time again, and takes it out of the hints that still name it", async () => {
    const { scheduleId, firstAt } = await away(world, 2, {
      misfire: { policy: "all", graceMs: 0, maxCatchUp: 10 },
      overlap: { policy: "allow" },
      startDeadlineMs: 3_600_000,
    });
    await world.materialize([scheduleId]);
    const ids = [0, 1, 2].map((n) => runIdAt(scheduleId, firstAt + n * MINUTE));
    // One hint for two runs, as those of one instant have it.
    await world.admin.query("delete from outbox where runs = array[$1::uuid]", [ids[1]]);
    await world.admin.query(
      "update outbox set runs = array[$1::uuid, $2] where runs = array[$1::uuid]",
      ids.slice(0, 2),
    );
    await world.admin.query("update live_run set start_deadline = now() where id = any($1)", [[ids[0], ids[2]]]);
    expect(await endMissedStarts(world.authority, 100)).toBe(2);
    expect(await states(world, scheduleId)).toEqual(["skipped", "queued", "skipped"]);
    const named = async () => Promise.all(ids.map(async (id) => (await hintsOf(world, id)).length));
    expect(await named()).toEqual([1, 1, 1]);
    const id = await begin(world, scheduleId, firstAt, firstAt + 2 * MINUTE + 1, { policy: "all-skipped" });
    const stranger = await world.stranger();
    await stranger.query("select from outbox for update");
    expect(await step(world, id), "a hint that somebody is at is left to them, for now").toBe("troubled");
    await stranger.commit();
    await world.admin.query("update operation set next_step_at = now() where id = $1", [id]);
    await finish(world, id);
    expect(await named()).toEqual([1, 1, 1]);
    for (const run of ids) expect(await world.complete(await start(world, run))).toMatchObject({ kind: "accepted" });
    expect(await named()).toEqual([0, 0, 0]);
  });

  it("of a range under an older rule, takes only the instants that rule named; others were never skipped", async () => {
    const hourly = { kind: "cron", expression: "*/5 * * * *", zone: "Etc/UTC" } as const;
    const { scheduleId, firstAt } = await missed(world, 60, { rule: hourly } as never);
    await reviseSchedule(world.authority, {
      ...who(scheduleId),
      expectedRevision: 1,
      change: { definition: definitionOf({ rule: EVERY_MINUTE, overlap: { policy: "allow" } }) },
    });
    const [ranged] = await openedRangesOf(world, scheduleId);
    const fromAt = ranged!.from_at.getTime();
    expect(fromAt).toBeGreaterThanOrEqual(firstAt);
    const id = await begin(world, scheduleId, fromAt, fromAt + 10 * MINUTE);
    await finish(world, id);
    const { done, tally } = await operationOf(world, id);
    expect(done).toBe(10);
    expect(tally).toMatchObject({ "skipped-range": expect.any(Number), unrecorded: expect.any(Number) });
    expect((await openedRangesOf(world, scheduleId))[0]!.backfilled).toBe(BigInt(tally["skipped-range"]!));
  });

  it("is bounded: the past, the history that is kept, and what a resume will decide", async () => {
    const { scheduleId, firstAt } = await missed(world, 9);
    const now = Date.now();
    const fault = async (fromAt: number, toAt: number) =>
      ((await estimateBackfill(world.authority, range(scheduleId, fromAt, toAt))) as { fault?: unknown }).fault;
    expect(await fault(firstAt, firstAt)).toMatchObject({ field: "to", message: "is not after from" });
    expect(await fault(firstAt, now + 3_600_000)).toMatchObject({ field: "to", message: "does not lie in the past" });
    expect(await fault(0, firstAt)).toMatchObject({
      field: "from",
      message: expect.stringContaining("history is kept"),
    });
    expect(await createBackfill(world.authority, request(scheduleId, 0, firstAt))).toMatchObject({ kind: "invalid" });
    await pauseSchedule(world.authority, who(scheduleId));
    // Five minutes pass.
    await world.admin.query(
      "update skip_range set from_at = from_at - interval '5 minutes', to_at = to_at - interval '5 minutes' where schedule_id = $1",
      [scheduleId],
    );
    await world.admin.query(
      `update schedule_cursor set next_run_at = next_run_at - interval '5 minutes',
              last_nominal_at = last_nominal_at - interval '5 minutes' where schedule_id = $1`,
      [scheduleId],
    );
    const pausedAt = firstAt + 5 * MINUTE;
    expect(await fault(pausedAt - MINUTE, pausedAt + 1)).toMatchObject({
      field: "to",
      message: expect.stringContaining("decided later"),
      allowed: expect.stringContaining(new Date(pausedAt).toISOString()),
    });
    // Up to the pause it works, and resuming goes on from there.
    await finish(world, await begin(world, scheduleId, pausedAt - 2 * MINUTE, pausedAt));
    expect(await history(world, scheduleId)).toHaveLength(2);
    expect(await resumeSchedule(world.authority, who(scheduleId))).toMatchObject({ plan: { runs: 0, skipped: 5 } });
    expect((await openedRangesOf(world, scheduleId)).map((one) => [one.reason, one.backfilled])).toEqual([
      ["misfire", 2n],
      ["paused", 0n],
    ]);
  });

  it("goes on under an edited rule from where it stands, and never into what is not decided", async () => {
    const { scheduleId, firstAt } = await missed(world, 20);
    const id = await begin(world, scheduleId, firstAt, firstAt + 20 * MINUTE, { pacePerSecond: 4 });
    expect(await step(world, id)).toBe("stepped");
    expect(await history(world, scheduleId)).toHaveLength(4);
    const rule = { kind: "cron", expression: "*/2 * * * *", zone: "Etc/UTC" } as const;
    await reviseSchedule(world.authority, {
      ...who(scheduleId),
      expectedRevision: 1,
      change: { definition: definitionOf({ rule, overlap: { policy: "allow" } }) },
    });
    await finish(world, id);
    const runs = await history(world, scheduleId);
    expect(runs.slice(0, 4).map((run) => run.revision)).toEqual([1, 1, 1, 1]);
    expect(runs.slice(4).every((run) => run.revision === 2 && run.scheduled_at.getTime() % (2 * MINUTE) === 0)).toBe(
      true,
    );
    expect(runs).toHaveLength(12);
  });

  it("of a schedule deleted meanwhile fails, and leaves the rest skipped; of a deleted one is refused", async () => {
    const { scheduleId, firstAt } = await missed(world, 9);
    const id = await begin(world, scheduleId, firstAt, firstAt + 9 * MINUTE, { pacePerSecond: 2 });
    await step(world, id);
    await deleteSchedule(world.authority, who(scheduleId));
    expect(await finish(world, id)).toBe("failed");
    expect(await operationOf(world, id)).toMatchObject({
      state: "failed",
      message: "the schedule was deleted",
      done: 2,
    });
    expect(await states(world, scheduleId)).toEqual(["canceled", "canceled"]);
    const refused = { kind: "deleted" };
    expect(await createBackfill(world.authority, request(scheduleId, firstAt, firstAt + MINUTE))).toEqual(refused);
    expect(await estimateBackfill(world.authority, range(scheduleId, firstAt, firstAt + MINUTE))).toEqual(refused);
  });

  it("asked for twice with one key is one operation; a dry run leaves nothing", async () => {
    const { scheduleId, firstAt } = await missed(world, 9);
    const key = (body: string) => ({ key: "backfill:a", bodySha256: createHash("sha256").update(body).digest() });
    const wanted = request(scheduleId, firstAt, firstAt + MINUTE);
    await estimateBackfill(world.authority, range(scheduleId, firstAt, firstAt + MINUTE));
    expect(await history(world, scheduleId)).toEqual([]);
    const both = await Promise.all(
      [world.authority, world.another()].map((one) => createBackfill(one, { ...wanted, requestKey: key("{}") })),
    );
    expect(both.map((one) => one.kind).sort()).toEqual(["created", "repeated"]);
    const ids = both.map((one) => (one as { operation: { id: string } }).operation.id);
    expect(new Set(ids).size).toBe(1);
    expect(await createBackfill(world.authority, { ...wanted, requestKey: key("other") })).toEqual({
      kind: "key-reused",
    });
    await finish(world, ids[0]!);
  });

  it("of a foreign schedule does not exist", async () => {
    const stranger = await world.newTenant("a stranger");
    const { scheduleId, firstAt } = await missed(world, 5);
    const foreign = { ...request(scheduleId, firstAt, firstAt + MINUTE), tenantId: stranger };
    expect(await createBackfill(world.authority, foreign)).toEqual({ kind: "not-found" });
    expect(await estimateBackfill(world.authority, foreign)).toEqual({ kind: "not-found" });
  });

  it("counts at most ten thousand instants in advance, and says so", async () => {
    const scheduleId = await world.newSchedule({ rule: { kind: "interval", everyMs: 1_000, anchorAt: 0 } });
    const toAt = Math.floor(Date.now() / 1_000) * 1_000 - 1_000;
    const planned = await estimateBackfill(world.authority, range(scheduleId, toAt - 11_000_000, toAt));
    expect(planned).toMatchObject({ estimate: { instants: 10_000, runs: 10_000, capped: true } });
    const less = await estimateBackfill(world.authority, range(scheduleId, toAt - 10_000_000, toAt));
    expect(less).toMatchObject({ estimate: { instants: 10_000, capped: false, lastAt: toAt - 1_000 } });
  });
});
