import { setImmediate } from "node:timers/promises";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { completeRuns } from "../../../src/authority/attempts/complete.ts";
import { failRuns } from "../../../src/authority/attempts/fail.ts";
import type { Grant } from "../../../src/authority/attempts/grant.ts";
import { heartbeat } from "../../../src/authority/attempts/heartbeat.ts";
import type { Authority } from "../../../src/authority/authority.ts";
import { type CancelOutcome, cancelRuns } from "../../../src/authority/runs/cancel.ts";
import type { Uuid } from "../../../src/kernel/ids.ts";
import { randomFrom } from "../../support/random.ts";
import { createWorld, type World } from "../../support/world.ts";
import { allow, hintsOf, start, stateOf } from "../scenes.ts";

const INTERLEAVINGS = 100;
const SIDE_BY_SIDE = 10;

/**
 * Two sessions say two things of one run at the same time, a hundred times each, in whatever order the database happens
 * to take them. Each pair of answers must be one that a history in one order would give, and so must the run.
 */
describe("B34 a cancellation that meets", () => {
  let world: World;
  let other: Authority;
  const chance = randomFrom(34);
  beforeAll(async () => {
    world = await createWorld();
    other = world.another();
  });
  afterEach(() => world.check());
  afterAll(() => world.close());

  async function born(runs: number): Promise<Uuid[]> {
    const id = await world.newSchedule({
      ...allow(),
      rule: { kind: "interval", everyMs: 1_000, anchorAt: 0 },
      maxRuns: runs,
    } as never);
    await world.makeDue(id, runs * 1_000);
    await world.materialize([id]);
    return (await world.live()).filter((run) => run.schedule_id === id).map((run) => run.id);
  }
  async function started(runs: number): Promise<Grant[]> {
    const ids = new Set(await born(runs));
    return (await world.claimAll()).filter((grant) => ids.has(grant.runId));
  }
  /** Both at once, one of them a moment later. */
  async function meet<A, B>(one: () => Promise<A>, two: () => Promise<B>): Promise<[A, B]> {
    const [first, second] = [Math.floor(chance() * 4), Math.floor(chance() * 4)];
    const later = async <T>(ticks: number, act: () => Promise<T>) => {
      for (let n = 0; n < ticks; n++) await setImmediate();
      return act();
    };
    return Promise.all([later(first, one), later(second, two)]);
  }
  async function eachOf<T>(items: readonly T[], act: (item: T) => Promise<void>): Promise<void> {
    expect(items).toHaveLength(INTERLEAVINGS);
    for (let at = 0; at < items.length; at += SIDE_BY_SIDE) {
      await Promise.all(items.slice(at, at + SIDE_BY_SIDE).map(act));
    }
  }
  const cancel = async (runId: Uuid, authority = world.authority): Promise<CancelOutcome> =>
    (await cancelRuns(authority, [{ tenantId: world.tenantId, runId }]))[0]!;
  const complete = async ({ runId, fence }: Grant, authority = world.authority) =>
    (await completeRuns(authority, [{ runId, fence, output: null }]))[0]!;
  const fail = async ({ runId, fence }: Grant, authority = world.authority) =>
    (await failRuns(authority, [{ runId, fence, failure: { transient: true, code: "x", message: "x" } }]))[0]!;
  const beat = async (grant: Grant) => (await heartbeat(other, [grant]))[0]!;
  async function expectCanceled(runId: Uuid) {
    expect(await world.run(runId)).toMatchObject({ state: "canceled", cancel_accepted_at: expect.any(Date) });
    expect(await hintsOf(world, runId)).toEqual([]);
  }

  it("(1) the claim of a queued run: canceled at once and never started, or started and asked to stop", async () => {
    await eachOf(await born(INTERLEAVINGS), async (runId) => {
      const hints = await hintsOf(world, runId);
      const [answer, { grants }] = await meet(
        () => cancel(runId, other),
        () => world.claim(hints),
      );
      const grant = grants.find((one) => one.runId === runId);
      if (grant === undefined) {
        expect(answer).toEqual({ kind: "accepted" });
        // The message may come again.
        expect((await world.claim(await hintsOf(world, runId))).grants).toEqual([]);
        expect(await world.run(runId)).toMatchObject({ state: "canceled", attempts: 0 });
      } else {
        expect(answer).toEqual({ kind: "requested" });
        expect(await beat(grant)).toMatchObject({ kind: "renewed", cancelRequested: true });
        expect(await fail(grant)).toEqual({ kind: "canceled" });
        await expectCanceled(runId);
      }
    });
  });

  it("(2) the first heartbeat: the run is never called canceled before its worker was told", async () => {
    await eachOf(await started(INTERLEAVINGS), async (grant) => {
      const [answer, first] = await meet(
        () => cancel(grant.runId),
        () => beat(grant),
      );
      expect(answer).toEqual({ kind: "requested" });
      expect(["renewed", "busy"]).toContain(first.kind);
      expect(await stateOf(world, grant.runId)).toBe("running");
      expect(await beat(grant)).toMatchObject({ kind: "renewed", cancelRequested: true });
      expect(await fail(grant)).toEqual({ kind: "canceled" });
      await expectCanceled(grant.runId);
    });
  });

  it("(3) a failure: the run ends as canceled either way, and is not tried again", async () => {
    await eachOf(await started(INTERLEAVINGS), async (grant) => {
      const [answer, failed] = await meet(
        () => cancel(grant.runId),
        () => fail(grant, other),
      );
      // Asked for, then failed: canceled. Failed, then canceled while it waited for its next try.
      expect([`requested canceled`, `accepted retrying`]).toContain(`${answer.kind} ${failed.kind}`);
      for (const hint of await hintsOf(world, grant.runId)) expect((await world.claim([hint])).grants).toEqual([]);
      expect(await world.run(grant.runId)).toMatchObject({ state: "canceled", attempts: 1 });
    });
  });

  it("(4) a success, after it was asked for: the success stands until the worker has yielded, and not after", async () => {
    const grants = await started(INTERLEAVINGS);
    for (const grant of grants) expect(await cancel(grant.runId)).toEqual({ kind: "requested" });
    await eachOf(grants, async (grant) => {
      const [completed, yielded] = await meet(
        () => complete(grant),
        () => fail(grant, other),
      );
      expect(["accepted stale-fence", "stale-fence canceled"]).toContain(`${completed.kind} ${yielded.kind}`);
      const state = completed.kind === "accepted" ? "succeeded" : "canceled";
      expect(await world.run(grant.runId)).toMatchObject({ state, cancel_requested_at: expect.any(Date) });
      expect(await cancel(grant.runId)).toEqual({ kind: "too-late", state });
    });
  });

  it("(5) a success at the same moment: it stays one, and the cancellation says whether it came too late", async () => {
    await eachOf(await started(INTERLEAVINGS), async (grant) => {
      const [answer, completed] = await meet(
        () => cancel(grant.runId),
        () => complete(grant, other),
      );
      expect(completed).toEqual({ kind: "accepted" });
      const asked = answer.kind === "requested";
      if (!asked) expect(answer).toEqual({ kind: "too-late", state: "succeeded" });
      expect(await world.run(grant.runId)).toMatchObject({
        state: "succeeded",
        cancel_requested_at: asked ? expect.any(Date) : null,
        cancel_accepted_at: null,
      });
    });
  });

  it("(3) a failure under a lock, in both orders", async () => {
    const [first, second] = await started(2);
    const held = world.faults.hold("cancel:written");
    const asking = cancel(first!.runId);
    await held.arrived;
    const failing = fail(first!, other);
    await world.lockWaits();
    held.release();
    expect([await asking, await failing]).toEqual([{ kind: "requested" }, { kind: "canceled" }]);
    await expectCanceled(first!.runId);

    const holding = world.faults.hold("fail:written");
    const failed = fail(second!);
    await holding.arrived;
    const late = cancel(second!.runId, other);
    await world.lockWaits();
    holding.release();
    expect([await failed, await late]).toMatchObject([{ kind: "retrying" }, { kind: "accepted" }]);
    expect(await stateOf(world, second!.runId)).toBe("canceled");
  });

  it("(1) a run that waits for its next try: its hint, delivered later, starts nothing", async () => {
    const [grant] = await started(1);
    await fail(grant!);
    const hints = await hintsOf(world, grant!.runId);
    expect(await cancel(grant!.runId)).toEqual({ kind: "accepted" });
    await world.makeAvailable();
    expect(await world.claim(hints)).toMatchObject({ grants: [], counts: { gone: 1 } });
    await expect(start(world, grant!.runId)).rejects.toThrow("did not start");
  });
});
