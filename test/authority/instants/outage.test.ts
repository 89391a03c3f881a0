import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { reviseSchedule } from "../../../src/authority/schedules/revise-schedule.ts";
import type { Definition } from "../../../src/domain/definition.ts";
import type { Uuid } from "../../../src/kernel/ids.ts";
import { createWorld, definitionOf, type World } from "../../support/world.ts";
import { away, history, MINUTE, rangesOf } from "../scenes.ts";

describe("outages", () => {
  let world: World;
  beforeAll(async () => {
    world = await createWorld();
  });
  afterEach(() => world.check());
  afterAll(() => world.close());

  /**
   * A schedule whose last instant was materialised `missed` minutes before the newest minute, and a scanner that comes
   * back now. Answers that newest minute: it began less than a minute ago, the ordinary grace.
   */
  async function backAfter(missed: number, misfire: Partial<Definition["misfire"]>) {
    const policy = { policy: "latest", graceMs: MINUTE, maxCatchUp: 100, ...misfire } as const;
    const { scheduleId, firstAt } = await away(world, missed - 1, { misfire: policy });
    return { scheduleId, newest: firstAt + (missed - 1) * MINUTE };
  }

  const nextOf = async (scheduleId: Uuid) =>
    (await world.admin.query("select next_run_at from schedule_cursor where schedule_id = $1", [scheduleId])).rows[0]
      .next_run_at;

  /** Passes until nothing is due; how many it took. */
  async function settle(scheduleId: Uuid): Promise<number> {
    for (let passes = 1; ; passes++) {
      const { stillDue } = await world.materialize([scheduleId]);
      if (!stillDue) return passes;
    }
  }

  const at = (newest: number, minutesBefore: number) => new Date(newest - minutesBefore * MINUTE);

  it.each([
    ["the ordinary grace of a minute", MINUTE],
    ["no grace", 0],
  ])(
    "B21 latest, 500 missed instants, %s: one run for the newest, the other 499 are told, the next is in the future",
    async (_, graceMs) => {
      const { scheduleId, newest } = await backAfter(500, { graceMs });
      expect(await settle(scheduleId)).toBe(1);
      expect((await history(world, scheduleId)).map((run) => run.scheduled_at)).toEqual([at(newest, 0)]);
      expect(await rangesOf(world, scheduleId)).toEqual([
        { from_at: at(newest, 499), to_at: at(newest, 1), instants: 499n, reason: "misfire" },
      ]);
      expect(await nextOf(scheduleId)).toEqual(at(newest, -1));
    },
  );

  it("B21 skip, 500 missed instants: no run, all 500 are told", async () => {
    const { scheduleId, newest } = await backAfter(500, { policy: "skip", graceMs: 0 });
    await settle(scheduleId);
    expect(await history(world, scheduleId)).toEqual([]);
    expect(await rangesOf(world, scheduleId)).toEqual([
      { from_at: at(newest, 499), to_at: at(newest, 0), instants: 500n, reason: "misfire" },
    ]);
    expect(await nextOf(scheduleId)).toEqual(at(newest, -1));
  });

  it("B21 skip under the ordinary grace: what is less than a minute late is not missed and runs, 499 are told", async () => {
    const { scheduleId, newest } = await backAfter(500, { policy: "skip" });
    await settle(scheduleId);
    expect((await history(world, scheduleId)).map((run) => [run.scheduled_at, run.trigger])).toEqual([
      [at(newest, 0), "schedule"],
    ]);
    expect(await rangesOf(world, scheduleId)).toMatchObject([{ instants: 499n }]);
  });

  it("B21 all, 500 missed instants: the oldest 100 run, oldest first, the rest is told, the cap is the schedule's", async () => {
    const { scheduleId, newest } = await backAfter(500, { policy: "all", graceMs: 0 });
    await settle(scheduleId);
    const runs = await history(world, scheduleId);
    expect(runs.map((run) => run.scheduled_at)).toEqual(Array.from({ length: 100 }, (__, n) => at(newest, 499 - n)));
    expect(new Set(runs.map((run) => run.trigger))).toEqual(new Set(["catch-up"]));
    expect(await rangesOf(world, scheduleId)).toEqual([
      { from_at: at(newest, 399), to_at: at(newest, 0), instants: 400n, reason: "misfire" },
    ]);
    expect(await nextOf(scheduleId)).toEqual(at(newest, -1));
  });

  const TWO_YEARS = 2 * 365 * 1440;

  it.each(["latest", "skip", "all"] as const)(
    "B21 %s, two years of missed minutes: jumped over in few passes, never stuck",
    async (policy) => {
      const { scheduleId, newest } = await backAfter(TWO_YEARS, { policy, graceMs: 0 });
      expect(await settle(scheduleId)).toBeLessThanOrEqual(3);
      const runs = await history(world, scheduleId);
      expect(runs.length).toBe({ latest: 1, skip: 0, all: 100 }[policy]);
      expect(await nextOf(scheduleId)).toEqual(at(newest, -1));
      // Whatever is not a run lies in ranges that join without a gap.
      const spans = [
        ...(await rangesOf(world, scheduleId)).map((range) => [range.from_at.getTime(), range.to_at.getTime()]),
        ...runs.map((run) => [run.scheduled_at.getTime(), run.scheduled_at.getTime()]),
      ].sort((a, b) => a[0]! - b[0]!);
      expect(spans[0]![0]).toBe(newest - (TWO_YEARS - 1) * MINUTE);
      expect(spans.at(-1)![1]).toBe(newest);
      for (let n = 1; n < spans.length; n++) expect(spans[n]![0]! - spans[n - 1]![1]!).toBe(MINUTE);
    },
  );

  /** A schedule whose other instants are far away, seen `lateMs` after its instant. */
  async function late(lateMs: number, misfire: Partial<Definition["misfire"]>) {
    const scheduleId = await world.newSchedule({
      misfire: { policy: "skip", graceMs: MINUTE, maxCatchUp: 100, ...misfire },
    });
    const scheduledAt = await world.makeDue(scheduleId, lateMs);
    return { scheduleId, scheduledAt: new Date(scheduledAt) };
  }

  it.each(["latest", "skip", "all"] as const)(
    "B23 1.8 s late is no misfire under %s: it runs, at its own instant",
    async (policy) => {
      const { scheduleId, scheduledAt } = await late(1_800, { policy });
      await settle(scheduleId);
      expect(await history(world, scheduleId)).toMatchObject([
        { scheduled_at: scheduledAt, state: "queued", trigger: "schedule" },
      ]);
      // Its lateness is measured from the instant it was meant for.
      const grant = (await world.claimAll()).find((one) => one.scheduledAt === scheduledAt.getTime());
      const { rows } = await world.admin.query(
        `select extract(epoch from started_at - due_at)::float8 as lateness from live_run where id = $1`,
        [grant!.runId],
      );
      expect(rows[0].lateness).toBeGreaterThan(1.7);
      expect(rows[0].lateness).toBeLessThan(60);
      await world.complete(grant!);
    },
  );

  it.each([
    ["61 s", 62_000],
    ["10 min", 600_000],
  ])("B23 %s late, beyond a threshold of 60 s: the policy applies, and a row tells so", async (_, lateMs) => {
    const skip = await late(lateMs, { policy: "skip" });
    await settle(skip.scheduleId);
    expect(await history(world, skip.scheduleId)).toMatchObject([
      { scheduled_at: skip.scheduledAt, state: "skipped", skip_reason: "misfire" },
    ]);
    const latest = await late(lateMs, { policy: "latest" });
    await settle(latest.scheduleId);
    expect(await history(world, latest.scheduleId)).toMatchObject([
      { scheduled_at: latest.scheduledAt, state: "queued", trigger: "catch-up" },
    ]);
  });

  it("B23 a threshold raised on an existing schedule holds from then on", async () => {
    const { scheduleId } = await late(-MINUTE, { policy: "skip" });
    const raised = definitionOf({
      misfire: { policy: "skip", graceMs: 15 * MINUTE },
    });
    const revised = await reviseSchedule(world.authority, {
      tenantId: world.tenantId,
      actor: "test",
      scheduleId,
      expectedRevision: 1,
      change: { definition: raised },
    });
    expect(revised).toMatchObject({ kind: "revised", settled: 0 });
    const scheduledAt = new Date(await world.makeDue(scheduleId, 10 * MINUTE));
    await settle(scheduleId);
    expect(await history(world, scheduleId)).toMatchObject([
      { scheduled_at: scheduledAt, state: "queued", trigger: "schedule", revision: 2 },
    ]);
  });
});
