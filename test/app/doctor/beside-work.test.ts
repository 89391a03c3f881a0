import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, expect, it } from "vitest";
import { claimRuns } from "../../../src/authority/attempts/claim.ts";
import { completeRuns } from "../../../src/authority/attempts/complete.ts";
import { expireLeases } from "../../../src/authority/attempts/expire.ts";
import { failRuns } from "../../../src/authority/attempts/fail.ts";
import { releaseRuns } from "../../../src/authority/attempts/release.ts";
import type { Authority } from "../../../src/authority/authority.ts";
import { leaveToRelay } from "../../../src/authority/runs/bear.ts";
import { cancelRuns } from "../../../src/authority/runs/cancel.ts";
import { materialize } from "../../../src/authority/runs/materialize.ts";
import { runNow } from "../../../src/authority/runs/run-now.ts";
import { pauseSchedule } from "../../../src/authority/schedules/pause-schedule.ts";
import { resumeSchedule } from "../../../src/authority/schedules/resume-schedule.ts";
import { PunctualError } from "../../../src/kernel/errors.ts";
import type { Uuid } from "../../../src/kernel/ids.ts";
import { createReconciler } from "../../../src/loops/reconciler.ts";
import { randomFrom } from "../../support/random.ts";
import { createWorld, type World } from "../../support/world.ts";
import { callDoctor, type Doctor } from "./examined.ts";

const EXAMINATIONS = 6;

let world: World;
let doctor: Doctor;
beforeAll(async () => {
  world = await createWorld();
  doctor = await callDoctor(world);
});
afterAll(async () => {
  await doctor.close();
  await world.close();
});

/** Verbs in any order, on whatever there is, until told to stop. */
async function work(authority: Authority, chance: () => number, schedules: readonly Uuid[], isOver: () => boolean) {
  const pick = <T>(items: readonly T[]): T => items[Math.floor(chance() * items.length)]!;
  const of = (scheduleId: Uuid) => ({ tenantId: world.tenantId, scheduleId, actor: "test" });
  const running = async () =>
    (await world.admin.query("select id, fence from live_run where state = 'running'")).rows
      .map((row) => ({ runId: row.id as Uuid, fence: row.fence as bigint }))
      .slice(0, 5);
  const failure = () => ({ transient: chance() < 0.6, code: "x", message: "x" });
  const acts: (() => Promise<unknown>)[] = [
    () => materialize(authority, schedules, leaveToRelay),
    async () => {
      const hints = (await world.outbox()).slice(0, 10).map((row) => ({ rowId: row.id, epoch: 1 }));
      await claimRuns(authority, { claimId: randomUUID(), worker: "w", slots: { short: 8 }, hints, repeated: false });
    },
    async () =>
      completeRuns(
        authority,
        (await running()).map((one) => ({ ...one, output: null })),
      ),
    async () =>
      failRuns(
        authority,
        (await running()).map((one) => ({ ...one, failure: failure() })),
      ),
    async () =>
      releaseRuns(
        authority,
        (await running()).map((one) => ({ ...one, worker: "w" })),
      ),
    async () => {
      const ids = (await running()).map((one) => one.runId);
      await world.admin.query(
        `update live_run set lease_until = clock_timestamp() - interval '1 s'
          where id in (select id from live_run where id = any($1) and state = 'running' for update skip locked)`,
        [ids],
      );
      await expireLeases(authority, ids, 0);
    },
    async () => {
      const { rows } = await world.admin.query("select id from live_run limit 3");
      await cancelRuns(
        authority,
        rows.map((row) => ({ tenantId: world.tenantId, runId: row.id })),
      );
    },
    () => runNow(authority, of(pick(schedules))),
    () => pauseSchedule(authority, of(pick(schedules))),
    () => resumeSchedule(authority, of(pick(schedules))),
    () => world.makeAvailable(),
  ];
  let done = 0;
  while (!isOver()) {
    await pick(acts)().catch((error: unknown) => {
      if (!(error instanceof PunctualError && error.code === "busy")) throw error;
    });
    done++;
  }
  return done;
}

it("examined while everything works, nothing is found and nothing is repaired", async () => {
  const schedules = await Promise.all(
    (["forbid", "bufferOne", "cancelRunning", "allow", "skip"] as const).flatMap((policy) =>
      [false, true].map((pauseOnFailure) =>
        world.newSchedule({
          rule: { kind: "cron", expression: "* * * * * *", zone: "Etc/UTC", seconds: true },
          overlap: { policy },
          pauseOnFailure,
          misfire: { policy: "all", graceMs: 0, maxCatchUp: 3 },
        } as never),
      ),
    ),
  );
  schedules.push(await world.newSchedule({ rule: { kind: "afterCompletion", delayMs: 10 } } as never));
  let isOver = false;
  const workers = Promise.all(
    [1, 2, 3].map((seed) => work(world.another(), randomFrom(seed), schedules, () => isOver)),
  ).finally(() => {
    isOver = true;
  });
  try {
    const reconciler = createReconciler({ authority: world.authority });
    for (let n = 0; n < EXAMINATIONS && !isOver; n++) {
      expect(await doctor.broken()).toEqual([]);
      await reconciler.pass(new AbortController().signal);
    }
  } finally {
    isOver = true;
  }
  const done = await workers;
  expect(Math.min(...done)).toBeGreaterThan(0);
  const repairs = (await world.authority.metrics.repairs.get()).values.filter((one) => one.value > 0);
  expect(repairs).toEqual([]);
  await world.check();
});
