import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { leaveToRelay } from "../../src/authority/runs/bear.ts";
import { materialize } from "../../src/authority/runs/materialize.ts";
import { pauseSchedule } from "../../src/authority/schedules/pause-schedule.ts";
import { resumeSchedule } from "../../src/authority/schedules/resume-schedule.ts";
import { reviseSchedule } from "../../src/authority/schedules/revise-schedule.ts";
import type { Definition } from "../../src/domain/definition.ts";
import { windowOffset } from "../../src/domain/placement.ts";
import type { Uuid } from "../../src/kernel/ids.ts";
import { createWorld, definitionOf, type World } from "../support/world.ts";
import { history, liveOf } from "./scenes.ts";

const HOUR = 3_600_000;

describe("a schedule with a window", () => {
  let world: World;
  beforeAll(async () => {
    world = await createWorld();
  });
  afterEach(() => world.check());
  afterAll(() => world.close());

  const who = (scheduleId: Uuid) => ({ tenantId: world.tenantId, actor: "test", scheduleId });
  const shareOf = (scheduleId: Uuid, at: number, windowMs = HOUR) => windowOffset(scheduleId, windowMs, at, at + HOUR);
  async function cursor(scheduleId: Uuid): Promise<{ nextRunAt: number; nextDueAt: number | null }> {
    const { rows } = await world.admin.query(
      "select next_run_at, next_due_at from schedule_cursor where schedule_id = $1",
      [scheduleId],
    );
    return { nextRunAt: rows[0].next_run_at.getTime(), nextDueAt: rows[0].next_due_at?.getTime() ?? null };
  }
  /** Moves the cursor to a nominal instant so long ago, as if nobody had looked since. */
  async function setBack(scheduleId: Uuid, nominalAt: number) {
    await world.admin.query(
      `update schedule_cursor set next_run_at = to_timestamp($2 / 1000.0), next_due_at = to_timestamp(($2 + $3) / 1000.0)
        where schedule_id = $1`,
      [scheduleId, nominalAt, shareOf(scheduleId, nominalAt)],
    );
  }

  /** Of many schedules, one whose share of this hour is yet to come: its instant is pending in its window. */
  async function pending(): Promise<{ scheduleId: Uuid; nominalAt: number; change: { definition: Definition } }> {
    const nominalAt = Math.floor(Date.now() / 1000) * 1000 - 1000;
    const rule = { kind: "interval", everyMs: HOUR, anchorAt: nominalAt } as const;
    let scheduleId: Uuid;
    do scheduleId = await world.newSchedule({ windowMs: HOUR, rule });
    while (shareOf(scheduleId, nominalAt) < 60_000);
    await setBack(scheduleId, nominalAt);
    return { scheduleId, nominalAt, change: { definition: definitionOf() } };
  }

  it("is due at its own share of the window after the nominal instant, from the start and after an edit", async () => {
    const scheduleId = await world.newSchedule({ windowMs: HOUR });
    const first = await cursor(scheduleId);
    expect(first.nextRunAt % HOUR).toBe(0);
    expect(first.nextDueAt).toBe(first.nextRunAt + shareOf(scheduleId, first.nextRunAt));
    const change = { definition: definitionOf({ windowMs: 1000 }) };
    await reviseSchedule(world.authority, { ...who(scheduleId), expectedRevision: 1, change });
    const { nextRunAt, nextDueAt } = await cursor(scheduleId);
    expect(nextRunAt).toBe(first.nextRunAt);
    expect(nextDueAt).toBe(nextRunAt + shareOf(scheduleId, nextRunAt, 1000));
    await pauseSchedule(world.authority, who(scheduleId));
    await resumeSchedule(world.authority, who(scheduleId));
    expect(await cursor(scheduleId)).toEqual({ nextRunAt, nextDueAt });
  });

  it("a run keeps its nominal instant; due, availability and start deadline follow the window", async () => {
    const scheduleId = await world.newSchedule({ windowMs: HOUR, startDeadlineMs: 60_000 });
    const nominalAt = Math.floor(Date.now() / HOUR) * HOUR - HOUR;
    await setBack(scheduleId, nominalAt);
    await world.materialize([scheduleId]);
    const [run] = await history(world, scheduleId);
    expect(run!.scheduled_at.getTime()).toBe(nominalAt);
    const dueAt = new Date(nominalAt + shareOf(scheduleId, nominalAt));
    expect(await world.run(run!.id)).toMatchObject({ due_at: dueAt });
    expect(await liveOf(world, run!.id)).toMatchObject({
      due_at: dueAt,
      not_before: dueAt,
      start_deadline: new Date(dueAt.getTime() + 60_000),
    });
    const row = (await world.outbox()).find((one) => one.runs.includes(run!.id));
    expect(row!.available_at).toEqual(dueAt);
  });

  it("an instant whose window still lies ahead is settled by an edit: born with its later due instant", async () => {
    const { scheduleId, nominalAt } = await pending();
    const change = { definition: definitionOf({ rule: { kind: "cron", expression: "0 0 1 1 *", zone: "Etc/UTC" } }) };
    expect(await reviseSchedule(world.authority, { ...who(scheduleId), expectedRevision: 1, change })).toMatchObject({
      kind: "revised",
      settled: 1,
    });
    const [run] = await history(world, scheduleId);
    expect(run).toMatchObject({ state: "queued", revision: 1, scheduled_at: new Date(nominalAt) });
    const dueAt = new Date(nominalAt + shareOf(scheduleId, nominalAt));
    expect(await world.run(run!.id)).toMatchObject({ due_at: dueAt });
    expect((await world.claimAll()).map((grant) => grant.runId)).not.toContain(run!.id);
  });

  it("window-pending / revise: a scanner that comes while an edit settles a pending instant leaves it alone", async () => {
    const { scheduleId, nominalAt, change } = await pending();
    const held = world.faults.hold("materialize:written");
    const editing = reviseSchedule(world.authority, { ...who(scheduleId), expectedRevision: 1, change });
    await held.arrived;
    expect(await materialize(world.another(), [scheduleId], leaveToRelay)).toMatchObject({ runs: 0, skips: 0 });
    held.release();
    expect(await editing).toMatchObject({ kind: "revised", settled: 1 });
    expect(await materialize(world.another(), [scheduleId], leaveToRelay)).toMatchObject({ runs: 0, skips: 0 });
    expect(await history(world, scheduleId)).toMatchObject([{ scheduled_at: new Date(nominalAt), revision: 1 }]);
  });

  it("revise / window-pending: an edit waits for the scanner at a pending instant, and finds it settled, of the old revision", async () => {
    const { scheduleId, nominalAt, change } = await pending();
    const held = world.faults.hold("materialize:written");
    const scanning = world.materialize([scheduleId]);
    await held.arrived;
    const editing = reviseSchedule(world.another(), { ...who(scheduleId), expectedRevision: 1, change });
    await world.lockWaits();
    held.release();
    expect(await scanning).toMatchObject({ runs: 1 });
    expect(await editing).toMatchObject({ kind: "revised", settled: 0 });
    expect(await history(world, scheduleId)).toMatchObject([{ scheduled_at: new Date(nominalAt), revision: 1 }]);
  });

  it("lateness is judged from the due instant: what is late by nominal time alone is on time", async () => {
    const misfire = { policy: "skip", graceMs: 1000, maxCatchUp: 1 } as const;
    const nominalAt = Math.floor(Date.now() / 1000) * 1000 - 10 * 60_000;
    const rule = { kind: "interval", everyMs: HOUR, anchorAt: nominalAt } as const;
    let scheduleId: Uuid;
    do scheduleId = await world.newSchedule({ windowMs: HOUR, rule, misfire });
    while (shareOf(scheduleId, nominalAt) < 11 * 60_000);
    await setBack(scheduleId, nominalAt);
    // Somebody settles it now, before it is due and long after its nominal instant.
    expect(await world.materialize([scheduleId])).toMatchObject({ runs: 1, skips: 0 });
    expect(await history(world, scheduleId)).toMatchObject([{ trigger: "schedule" }]);
  });
});
