import { expect, it, onTestFinished } from "vitest";
import { completeRuns } from "../../src/authority/attempts/complete.ts";
import { lockEveryRunOf } from "../../src/store/rows/runs/live-runs.ts";
import { bear, running } from "../authority/scenes.ts";
import { createWorld } from "../support/world.ts";

it("who locks every open run of a schedule is told when one was handed its guard between the rounds, and finds it the next time", async () => {
  const world = await createWorld();
  onTestFinished(() => world.close());
  const { scheduleId, grant } = await running(world);
  const waiting = await bear(world, scheduleId, 50_000);
  const lockAll = () =>
    world.db.transact({ deadlineMs: 20_000, lockTimeoutMs: 10_000 }, (tx) => lockEveryRunOf(tx, scheduleId));
  const held = world.faults.hold("complete:written");
  const end = completeRuns(world.authority, [{ runId: grant.runId, fence: grant.fence, output: null }]);
  await held.arrived;
  // The first round waits for the holder; the second, over those without a guard, begins when the guard is handed on.
  const locking = lockAll();
  await world.lockWaits();
  held.release();
  expect(await end).toEqual([{ kind: "accepted" }]);
  expect(await locking).toBeUndefined();
  expect(await lockAll()).toMatchObject([{ id: waiting, guard: scheduleId }]);
});
