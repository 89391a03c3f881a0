import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { claimRuns } from "../../../src/authority/attempts/claim.ts";
import { completeRuns } from "../../../src/authority/attempts/complete.ts";
import { expireLeases } from "../../../src/authority/attempts/expire.ts";
import { failRuns } from "../../../src/authority/attempts/fail.ts";
import { heartbeat } from "../../../src/authority/attempts/heartbeat.ts";
import { releaseRuns } from "../../../src/authority/attempts/release.ts";
import type { Authority } from "../../../src/authority/authority.ts";
import { leaveToRelay } from "../../../src/authority/runs/bear.ts";
import { cancelRuns } from "../../../src/authority/runs/cancel.ts";
import { materialize } from "../../../src/authority/runs/materialize.ts";
import { runNow } from "../../../src/authority/runs/run-now.ts";
import { deleteSchedule } from "../../../src/authority/schedules/delete-schedule.ts";
import { pauseSchedule } from "../../../src/authority/schedules/pause-schedule.ts";
import { resumeSchedule } from "../../../src/authority/schedules/resume-schedule.ts";
import { reviseSchedule } from "../../../src/authority/schedules/revise-schedule.ts";
import type { Overlap } from "../../../src/domain/definition.ts";
import { PunctualError } from "../../../src/kernel/errors.ts";
import { randomFrom } from "../../support/random.ts";
import { createWorld, definitionOf, type World } from "../../support/world.ts";

const OVERLAPS: Overlap[] = [
  { policy: "forbid" },
  { policy: "bufferOne" },
  { policy: "skip" },
  { policy: "cancelRunning" },
  { policy: "allow", limit: 2 },
  { policy: "allow", limit: 3 },
  { policy: "allow" },
];

/** The same seed is the same storm, but for the order in which PostgreSQL serves it. */
describe("everything at once", () => {
  let world: World;
  beforeAll(async () => {
    world = await createWorld();
  });
  afterAll(() => world.close());

  it.each([
    [1, "per second", false],
    [2, "per second", false],
    [3, "paused by failures, and after completion", true],
    [4, "paused by failures, and after completion", true],
  ])(
    "a storm of verbs over a few schedules meets no deadlock and breaks nothing (seed %i: %s)",
    async (seed, _, hearing) => {
      const tenants = [world.tenantId, await world.newTenant(`b${seed}`), await world.newTenant(`c${seed}`)];
      for (const id of tenants) {
        await world.admin.query(
          "insert into quota (tenant_id, class, max_running) values ($1, 'short', 6) on conflict do nothing",
          [id],
        );
      }
      const schedules = await Promise.all(
        OVERLAPS.map(async (overlap, i) => {
          const tenantId = tenants[i % 3]!;
          const rule =
            hearing && i % 2 === 1
              ? { kind: "afterCompletion" as const, delayMs: i }
              : { kind: "cron" as const, expression: "* * * * * *", zone: "Etc/UTC", seconds: true };
          const id = await world.newSchedule({
            tenantId,
            overlap,
            rule,
            misfire: { policy: "latest", graceMs: 3000, maxCatchUp: 5 },
            pauseOnFailure: hearing,
          } as never);
          return { id, tenantId };
        }),
      );
      for (const one of schedules) await world.makeDue(one.id, 2500);
      const sessions = [world.another(), world.another(), world.another(), world.another()];
      await Promise.all(sessions.map((authority, i) => storm(authority, randomFrom(seed * 100 + i), schedules, 160)));
      await world.check();
      const codes = await Promise.all(
        sessions.map(async (authority) =>
          (await authority.metrics.verbFaults.get()).values.map((value) => String(value.labels.code)),
        ),
      );
      expect(codes.flat()).not.toContain("40P01");
      expect(await deadlocks()).toBe(0);

      // What a failure holds waits for somebody: here, for the deletion.
      if (hearing) for (const one of schedules) await deleteSchedule(world.authority, { ...of(one), actor: "storm" });
      // Nothing is stuck: whatever is left starts and ends.
      for (let wave = 0; wave < 300; wave++) {
        await world.admin.query("update usage set max_running = null");
        await world.makeAvailable();
        const live = await world.admin.query("select id, fence, worker from live_run where state = 'running'");
        await completeAll(world.authority, live.rows);
        if ((await world.claimAll()).length === 0 && live.rows.length === 0) break;
      }
      expect(await world.live()).toEqual([]);
      expect(await world.usage()).toBe(0);
      await world.check();
    },
  );

  async function completeAll(authority: Authority, rows: { id: string; fence: bigint; worker: string }[]) {
    await heartbeat(
      authority,
      rows.map((row) => ({ runId: row.id, fence: row.fence, worker: row.worker })),
    );
    await completeRuns(
      authority,
      rows.map((row) => ({ runId: row.id, fence: row.fence, output: null })),
    );
  }

  async function deadlocks(): Promise<number> {
    await world.admin.query("select pg_stat_force_next_flush()");
    return Number(
      (await world.admin.query("select deadlocks from pg_stat_database where datname = current_database()")).rows[0]
        .deadlocks,
    );
  }

  async function storm(
    authority: Authority,
    chance: () => number,
    schedules: readonly { id: string; tenantId: string }[],
    verbs: number,
  ) {
    const pick = <T>(items: readonly T[]): T => items[Math.floor(chance() * items.length)]!;
    const some = <T>(items: readonly T[], most: number): T[] =>
      Array.from({ length: Math.min(items.length, 1 + Math.floor(chance() * most)) }, () => pick(items));
    const look = async (where: string) =>
      (await world.admin.query(`select id, fence, worker, tenant_id from live_run where ${where}`)).rows;
    const attempts = async () =>
      (await look("state = 'running'")).map((row) => ({
        runId: row.id as string,
        fence: row.fence as bigint,
        worker: row.worker as string,
      }));

    const acts: [number, () => Promise<unknown>][] = [
      [
        12,
        () =>
          materialize(
            authority,
            some(schedules, 7).map((one) => one.id),
            leaveToRelay,
          ),
      ],
      [
        12,
        async () => {
          const rows = (await world.outbox()).map((row) => ({ rowId: row.id, epoch: 1 }));
          if (rows.length === 0) return;
          await claimRuns(authority, {
            claimId: randomUUID(),
            worker: "w",
            slots: { short: 8 },
            hints: some(rows, 12),
            repeated: false,
          });
        },
      ],
      [
        12,
        async () =>
          completeRuns(
            authority,
            some(await attempts(), 8).map((one) => ({ ...one, output: null })),
          ),
      ],
      [
        5,
        async () =>
          failRuns(
            authority,
            some(await attempts(), 5).map((one) => ({
              ...one,
              failure: { transient: chance() < 0.7, code: "x", message: "x" },
            })),
          ),
      ],
      [3, async () => releaseRuns(authority, some(await attempts(), 4))],
      [5, async () => heartbeat(authority, some(await attempts(), 8))],
      [
        4,
        async () => {
          const ids = some(await attempts(), 4).map((one) => one.runId);
          await world.admin.query(
            "update live_run set lease_until = clock_timestamp() - interval '1 s' where id in (select id from live_run where id = any($1) and state = 'running' for update skip locked)",
            [ids],
          );
          await expireLeases(authority, ids, 0);
        },
      ],
      [
        5,
        async () => {
          const rows = await look("true");
          if (rows.length > 0)
            await cancelRuns(
              authority,
              some(rows, 4).map((row) => ({ tenantId: row.tenant_id, runId: row.id })),
            );
        },
      ],
      [24, () => runNow(authority, { ...of(pick(schedules)), actor: "storm" })],
      [3, () => pauseSchedule(authority, { ...of(pick(schedules)), actor: "storm" })],
      [5, () => resumeSchedule(authority, { ...of(pick(schedules)), actor: "storm" })],
      [
        4,
        async () => {
          const one = pick(schedules);
          const { rows } = await world.admin.query(
            "select s.revision, v.definition from schedule s join schedule_revision v on v.schedule_id = s.id and v.revision = s.revision where s.id = $1",
            [one.id],
          );
          const definition = definitionOf({ ...rows[0].definition, overlap: pick(OVERLAPS) });
          await reviseSchedule(authority, {
            ...of(one),
            actor: "storm",
            expectedRevision: rows[0].revision,
            change: { definition },
          });
        },
      ],
      [4, () => world.makeAvailable()],
    ];
    const weights = acts.flatMap(([weight, act]) => Array.from({ length: weight }, () => act));
    for (let n = 0; n < verbs; n++) {
      try {
        await pick(weights)();
      } catch (error) {
        // A schedule that never holds still is an honest answer; a lock that is not given in time would be none.
        if (!(error instanceof PunctualError && error.code === "busy")) throw error;
      }
    }
  }

  const of = (one: { id: string; tenantId: string }) => ({ tenantId: one.tenantId, scheduleId: one.id });
});
