import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { expireLeases } from "../../src/authority/attempts/expire.ts";
import { failRuns } from "../../src/authority/attempts/fail.ts";
import type { Grant } from "../../src/authority/attempts/grant.ts";
import { heartbeat } from "../../src/authority/attempts/heartbeat.ts";
import { releaseRuns } from "../../src/authority/attempts/release.ts";
import { cancelRuns } from "../../src/authority/runs/cancel.ts";
import { CRASH_LOOP_LIMIT, INTERRUPTION_LIMIT } from "../../src/domain/retry.ts";
import type { Uuid } from "../../src/kernel/ids.ts";
import { createWorld, type World } from "../support/world.ts";
import { bear, liveOf, running, start, stateOf } from "./scenes.ts";

describe("attempts that do not succeed", () => {
  let world: World;
  beforeAll(async () => {
    world = await createWorld();
  });
  afterEach(() => world.check());
  afterAll(() => world.close());

  const retry = (change: object) => ({
    retry: { maxAttempts: 3, maxElapsedMs: 86_400_000, baseMs: 1000, capMs: 300_000, ...change },
  });
  const fail = async (grant: { runId: Uuid; fence: bigint }, failure: object = {}) =>
    (
      await failRuns(world.authority, [
        {
          runId: grant.runId,
          fence: grant.fence,
          failure: { transient: true, code: "smtp-451", message: "try later", ...failure },
        },
      ])
    )[0]!;
  const letter = async (runId: Uuid) =>
    (await world.admin.query("select * from dead_letter where run_id = $1", [runId])).rows[0];
  const attempts = async (runId: Uuid) =>
    (await world.admin.query("select n, outcome, error_code from attempt where run_id = $1 order by n", [runId])).rows;
  async function again(runId: Uuid) {
    await world.makeAvailable();
    return start(world, runId);
  }
  async function expire(runId: Uuid, forgivenUntil = 0) {
    await world.expireLease(runId);
    return expireLeases(world.authority, [runId], forgivenUntil);
  }

  it("a transient failure waits its back-off, doubled each time, and keeps the guard", async () => {
    const { scheduleId, grant } = await running(world, retry({}));
    const first = await fail(grant);
    expect(first).toMatchObject({ kind: "retrying", attempt: 1 });
    const waiting = (await liveOf(world, grant.runId))!;
    expect(waiting).toMatchObject({ state: "retrying", guard: scheduleId, fence: null, lease_until: null });
    // Chance is 0.5 in this world: half of base · 2^(n-1).
    const waitMs = async (runId: Uuid) =>
      Number(
        (
          await world.admin.query(
            `select extract(epoch from l.not_before - a.ended_at) * 1000 as ms
               from live_run l join attempt a on a.run_id = l.id and a.n = l.attempt where l.id = $1`,
            [runId],
          )
        ).rows[0].ms,
      );
    expect(await waitMs(grant.runId)).toBe(500);
    const second = await again(grant.runId);
    expect(second.attempt).toBe(2);
    await fail(second);
    expect(await waitMs(grant.runId)).toBe(1000);
    // A sibling born meanwhile waits behind it.
    const sibling = await bear(world, scheduleId, 30_000);
    expect(await stateOf(world, sibling)).toBe("blocked");
    const third = await again(grant.runId);
    expect(await fail(third)).toEqual({ kind: "failed", reason: "attempts-exhausted" });
    expect(await letter(grant.runId)).toMatchObject({
      reason: "attempts-exhausted",
      attempts: 3,
      schedule_id: scheduleId,
    });
    expect(await attempts(grant.runId)).toMatchObject([
      { n: 1, outcome: "failed", error_code: "smtp-451" },
      { n: 2, outcome: "failed" },
      { n: 3, outcome: "failed" },
    ]);
    expect(await world.run(grant.runId)).toMatchObject({ state: "failed", attempts: 3, error_code: "smtp-451" });
    expect(await stateOf(world, sibling)).toBe("queued");
  });

  it("the other side's patience is kept where it asks for more", async () => {
    const { grant } = await running(world, retry({}));
    await fail(grant, { retryAfterMs: 90_000 });
    const { rows } = await world.admin.query(
      "select not_before > clock_timestamp() + interval '80 s' as later from live_run where id = $1",
      [grant.runId],
    );
    expect(rows[0].later).toBe(true);
  });

  it("a permanent failure ends at once, with a dead letter", async () => {
    const { grant } = await running(world, retry({ maxAttempts: 10 }));
    expect(await fail(grant, { transient: false, code: "no-such-account" })).toEqual({
      kind: "failed",
      reason: "permanent",
    });
    expect(await letter(grant.runId)).toMatchObject({ reason: "permanent", attempts: 1 });
  });

  it("a code that the schedule declares hopeless ends the run at its first failure, also where it is the clock's word", async () => {
    const { grant } = await running(world, retry({ nonRetryable: ["smtp-550", "lease-expired"] }));
    expect(await fail(grant)).toMatchObject({ kind: "retrying" });
    expect(await fail(await again(grant.runId), { code: "smtp-550" })).toEqual({
      kind: "failed",
      reason: "non-retryable",
    });
    expect(await letter(grant.runId)).toMatchObject({ reason: "non-retryable", attempts: 2 });
    const silent = await running(world, retry({ nonRetryable: ["lease-expired"] }));
    await expire(silent.grant.runId);
    expect(await letter(silent.grant.runId)).toMatchObject({ reason: "non-retryable", attempts: 1 });
  });

  it("retries end with the time they were given", async () => {
    const { grant } = await running(world, retry({ maxAttempts: 100, maxElapsedMs: 60_000 }));
    expect(await fail(grant, { retryAfterMs: 30_000 })).toMatchObject({ kind: "retrying" });
    await world.admin.query("update live_run set budget_from = budget_from - interval '1 minute' where id = $1", [
      grant.runId,
    ]);
    expect(await fail(await again(grant.runId))).toEqual({ kind: "failed", reason: "elapsed-exhausted" });
  });

  it("failures of one kind share a fingerprint, whatever varies in them", async () => {
    const [one, two, three] = [await running(world), await running(world), await running(world)];
    await fail(one.grant, { transient: false, message: 'order 4711 of "ann" is gone' });
    await fail(two.grant, { transient: false, message: 'order 12 of "bob" is gone' });
    await fail(three.grant, { transient: false, message: "something else" });
    const prints = await Promise.all(
      [one, two, three].map(async ({ grant }) => (await letter(grant.runId)).fingerprint),
    );
    expect(prints[0]).toBe(prints[1]);
    expect(prints[2]).not.toBe(prints[0]);
  });

  it("a release starts again at once and spends no retry", async () => {
    const { grant } = await running(world, retry({ maxAttempts: 1 }));
    expect(await releaseRuns(world.authority, [grant])).toEqual([{ kind: "released" }]);
    expect(await releaseRuns(world.authority, [grant])).toEqual([{ kind: "released" }]);
    expect(await liveOf(world, grant.runId)).toMatchObject({ state: "retrying", budget_attempt: 0, interruptions: 1 });
    const second = await start(world, grant.runId);
    expect(second).toMatchObject({ attempt: 2 });
    expect(second.fence).toBeGreaterThan(grant.fence);
    expect(await attempts(grant.runId)).toMatchObject([{ outcome: "released" }, { outcome: null }]);
    expect(await fail(second)).toEqual({ kind: "failed", reason: "attempts-exhausted" });
  });

  it("releases are bounded too", async () => {
    const { grant } = await running(world);
    await world.admin.query("update live_run set interruptions = $2 where id = $1", [grant.runId, INTERRUPTION_LIMIT]);
    expect(await releaseRuns(world.authority, [grant])).toEqual([{ kind: "failed" }]);
    expect(await letter(grant.runId)).toMatchObject({ reason: "interrupted-too-often" });
  });

  it("an expired lease counts as a try, and the silence is told", async () => {
    const { grant } = await running(world, retry({ maxAttempts: 2 }));
    expect(await expireLeases(world.authority, [grant.runId], 0)).toBe(0);
    expect(await expire(grant.runId)).toBe(1);
    expect(await liveOf(world, grant.runId)).toMatchObject({ state: "retrying", budget_attempt: 1, expiries: 1 });
    expect(await attempts(grant.runId)).toMatchObject([{ outcome: "expired", error_code: "lease-expired" }]);
    await again(grant.runId);
    expect(await expire(grant.runId)).toBe(1);
    expect(await stateOf(world, grant.runId)).toBe("failed");
    expect(await letter(grant.runId)).toMatchObject({ reason: "attempts-exhausted", attempts: 2 });
    expect(await expireLeases(world.authority, [grant.runId], 0)).toBe(0);
  });

  it("a run that kills its workers again and again is stopped before its many tries are spent", async () => {
    const { grant } = await running(world, retry({ maxAttempts: 100 }));
    for (let n = 1; n < CRASH_LOOP_LIMIT; n++) {
      await expire(grant.runId);
      expect(await stateOf(world, grant.runId)).toBe("retrying");
      await again(grant.runId);
    }
    await expire(grant.runId);
    expect(await letter(grant.runId)).toMatchObject({ reason: "crash-loop", attempts: CRASH_LOOP_LIMIT });
  });

  it("leases that ran out while the authority was away cost nothing and end no crash loop", async () => {
    const { grant } = await running(world, retry({ maxAttempts: 2 }));
    await expire(grant.runId);
    await again(grant.runId);
    const later = Date.now() + 3_600_000;
    for (let n = 0; n < 3; n++) {
      expect(await expire(grant.runId, later)).toBe(1);
      expect(await liveOf(world, grant.runId)).toMatchObject({ state: "retrying", budget_attempt: 1, expiries: 1 });
      await again(grant.runId);
    }
    expect(
      await fail(
        (await world.admin.query('select id as "runId", fence from live_run where id = $1', [grant.runId])).rows[0],
      ),
    ).toEqual({
      kind: "failed",
      reason: "attempts-exhausted",
    });
  });

  it("an attempt past its deadline is not forgiven, and is called a timeout", async () => {
    const { grant } = await running(world, retry({}));
    await world.admin.query("update live_run set deadline_at = clock_timestamp() - interval '1 s' where id = $1", [
      grant.runId,
    ]);
    expect(await heartbeat(world.authority, [grant])).toEqual([{ kind: "deadline" }]);
    await expire(grant.runId, Date.now() + 3_600_000);
    expect(await attempts(grant.runId)).toMatchObject([{ outcome: "expired", error_code: "attempt-timeout" }]);
    expect(await liveOf(world, grant.runId)).toMatchObject({ budget_attempt: 1 });
  });

  it.each([
    ["fails", async (grant: Grant) => void (await fail(grant))],
    ["is released", async (grant: Grant) => void (await releaseRuns(world.authority, [grant]))],
    ["loses its lease", async (grant: { runId: Uuid }) => void (await expire(grant.runId))],
  ])("a run that was asked to stop and %s ends as canceled, with no retry", async (_, how) => {
    const { scheduleId, grant } = await running(world);
    const sibling = await bear(world, scheduleId, 30_000);
    expect(await cancelRuns(world.authority, [{ tenantId: world.tenantId, runId: grant.runId }])).toEqual([
      { kind: "requested" },
    ]);
    expect(await heartbeat(world.authority, [grant])).toMatchObject([{ kind: "renewed", cancelRequested: true }]);
    await how(grant);
    expect(await world.run(grant.runId)).toMatchObject({
      state: "canceled",
      cancel_requested_at: expect.any(Date),
      cancel_accepted_at: expect.any(Date),
    });
    expect(await attempts(grant.runId)).toMatchObject([{ outcome: "canceled" }]);
    expect(await stateOf(world, sibling)).toBe("queued");
    expect(await letter(grant.runId)).toBeUndefined();
  });

  it("canceling a run in each of its states", async () => {
    const cancel = async (runId: Uuid, tenantId = world.tenantId) =>
      (await cancelRuns(world.authority, [{ tenantId, runId }]))[0];
    const scheduleId = await world.newSchedule();
    const queued = await bear(world, scheduleId, 60_000);
    const blocked = await bear(world, scheduleId, 50_000);
    const next = await bear(world, scheduleId, 40_000);
    const stranger = await world.newTenant("a stranger");
    expect(await cancel(queued, stranger)).toEqual({ kind: "not-found" });
    expect(await cancel(blocked)).toEqual({ kind: "accepted" });
    expect(await cancel(queued)).toEqual({ kind: "accepted" });
    expect(await cancel(queued)).toEqual({ kind: "too-late", state: "canceled" });
    expect(await cancel(queued, stranger)).toEqual({ kind: "not-found" });
    expect(await stateOf(world, next)).toBe("queued");

    const grant = await start(world, next);
    expect(await cancel(next)).toEqual({ kind: "requested" });
    expect(await cancel(next)).toEqual({ kind: "requested" });
    await world.complete(grant);
    expect(await cancel(next)).toEqual({ kind: "too-late", state: "succeeded" });

    const other = await running(world);
    await fail(other.grant);
    expect(await cancel(other.grant.runId)).toEqual({ kind: "accepted" });
    expect(await world.run(other.grant.runId)).toMatchObject({ state: "canceled", attempts: 1 });
    expect(await cancel("01920000-0000-8000-8000-000000000000")).toEqual({ kind: "not-found" });
  });

  it("one batch cancels a whole schedule, also the same run twice", async () => {
    const scheduleId = await world.newSchedule();
    const ids = [
      await bear(world, scheduleId, 60_000),
      await bear(world, scheduleId, 50_000),
      await bear(world, scheduleId, 40_000),
    ];
    const outcomes = await cancelRuns(
      world.authority,
      [...ids, ids[0]!].map((runId) => ({ tenantId: world.tenantId, runId })),
    );
    expect(outcomes.map((one) => one.kind)).toEqual(["accepted", "accepted", "accepted", "too-late"]);
  });
});
