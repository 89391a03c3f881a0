import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { deleteSchedule } from "../../../src/authority/schedules/delete-schedule.ts";
import { resumeSchedule } from "../../../src/authority/schedules/resume-schedule.ts";
import { showId, type Uuid } from "../../../src/kernel/ids.ts";
import { createWorld, type World } from "../../support/world.ts";
import { finish, hurry, operationOf, step } from "../operations/pasts.ts";
import { failForGood, start, stateOf, states } from "../scenes.ts";
import { begin, decisionsOf, givenUp, giveUp } from "./letters.ts";

describe("many dead letters, of schedules that have no room", () => {
  let world: World;
  beforeAll(async () => {
    world = await createWorld();
  });
  afterEach(async () => {
    await world.check();
    await world.admin.query("delete from dead_letter");
    await world.admin.query(
      "update operation set state = 'canceled', finished_at = clock_timestamp() where state in ('pending', 'working')",
    );
  });
  afterAll(() => world.close());

  const who = (scheduleId: Uuid) => ({ tenantId: world.tenantId, actor: "test", scheduleId });

  /** A schedule that takes one run at a time, and n runs of it that were given up. */
  async function oneAtATime(n: number) {
    const scheduleId = await world.newSchedule({ overlap: { policy: "forbid" } });
    const runs: Uuid[] = [];
    for (let k = 0; k < n; k++) runs.push((await giveUp(world, scheduleId, 60_000 - 2_000 * k)).runId);
    return { scheduleId, runs };
  }

  async function steps(id: Uuid, count: number) {
    for (let k = 0; k < count; k++) {
      await hurry(world, id);
      expect(await step(world, id)).toBe("stepped");
    }
  }

  it("hold up no other schedule: theirs are passed by, and their turn comes again", async () => {
    const full = await oneAtATime(6);
    const other = await givenUp(world);
    const id = await begin(world, "replay", {}, 2);
    await steps(id, 4);
    expect(await states(world, full.scheduleId)).toEqual([
      "queued",
      "blocked",
      "blocked",
      "failed",
      "failed",
      "failed",
    ]);
    expect(await stateOf(world, other.runId)).toBe("queued");
    expect(await operationOf(world, id)).toMatchObject({
      done: 4,
      message: `it waits while many runs of ${showId("sch", full.scheduleId)} are open`,
    });
    for (const runId of full.runs.slice(0, 2)) await world.complete(await start(world, runId));
    await steps(id, 2);
    expect(await states(world, full.scheduleId)).toEqual([
      ...["succeeded", "succeeded", "queued", "blocked", "blocked", "failed"],
    ]);
    for (const runId of full.runs.slice(2, 4)) await world.complete(await start(world, runId));
    expect(await finish(world, id)).toBe("ended");
    expect(await operationOf(world, id)).toMatchObject({ done: 7, failed: 0, tally: { replayed: 7 }, message: null });
    for (const runId of full.runs) expect(await decisionsOf(world, runId)).toHaveLength(1);
  });

  it("take turns, and what cannot be replayed among theirs is counted once, however often they come back to", async () => {
    const [one, two] = [await oneAtATime(3), await oneAtATime(3)];
    const gone = await givenUp(world);
    await deleteSchedule(world.authority, who(gone.scheduleId));
    const poisoned = await givenUp(world);
    await world.admin.query(`alter table live_run add constraint refused check (id <> '${poisoned.runId}') not valid`);
    try {
      const id = await begin(world, "replay", {}, 1);
      while ((await operationOf(world, id)).message?.startsWith("it waits") !== true) {
        await hurry(world, id);
        await step(world, id);
        if ((await operationOf(world, id)).failed > 0) break;
      }
      await steps(id, 3);
      expect(await operationOf(world, id)).toMatchObject({
        failed: 1,
        tally: { replayed: 4, "schedule-deleted": 1 },
      });
      for (const { runs } of [one, two]) await world.complete(await start(world, runs[0]!));
      await steps(id, 2);
      expect(await states(world, one.scheduleId)).toEqual(["succeeded", "queued", "blocked"]);
      expect(await states(world, two.scheduleId)).toEqual(["succeeded", "queued", "blocked"]);
      expect(await finish(world, id)).toBe("ended");
      expect(await operationOf(world, id)).toMatchObject({
        done: 6,
        failed: 1,
        tally: { replayed: 6, "schedule-deleted": 1 },
      });
    } finally {
      await world.admin.query("alter table live_run drop constraint refused");
    }
  });

  it("are remembered a hundred at a time: where more are full, what comes after them waits for one of these", async () => {
    const full = await oneAtATime(3);
    const other = await givenUp(world);
    const id = await begin(world, "replay", {}, 1);
    await steps(id, 3);
    const passedBy = async () => (await world.admin.query("select cursor from operation where id = $1", [id])).rows[0];
    expect(await passedBy()).toMatchObject({ cursor: { passedBy: [{ scheduleId: full.scheduleId }] } });
    await world.admin.query(
      `update operation set cursor = jsonb_set(cursor, '{passedBy}', cursor -> 'passedBy' || (
         select jsonb_agg(jsonb_build_object('at', 0, 'id', gen_random_uuid(), 'scheduleId', gen_random_uuid()))
           from generate_series(1, 99))) where id = $1`,
      [id],
    );
    await steps(id, 1);
    expect(await stateOf(world, other.runId)).toBe("failed");
    expect((await operationOf(world, id)).message).toBe(
      `it waits while many runs of ${showId("sch", full.scheduleId)} are open`,
    );
    // Of the others no letter is left, so they were forgotten.
    await steps(id, 1);
    expect(await stateOf(world, other.runId)).toBe("queued");
  });

  it("are not those whose runs a failure holds: these keep nobody waiting; and who waits is told of the resume", async () => {
    const scheduleId = await world.newSchedule({ overlap: { policy: "forbid" }, pauseOnFailure: true });
    const resume = () => resumeSchedule(world.authority, { ...who(scheduleId), misfire: "skip" });
    const runs: Uuid[] = [];
    for (let k = 0; k < 5; k++) {
      runs.push((await giveUp(world, scheduleId, 60_000 - 2_000 * k)).runId);
      await world.materialize([scheduleId]);
      await resume();
    }
    const id = await begin(world, "replay", {}, 1);
    await steps(id, 2);
    await failForGood(world, await start(world, runs[0]!));
    await world.materialize([scheduleId]);
    expect(await states(world, scheduleId)).toEqual(["failed", "blocked", "failed", "failed", "failed"]);
    await steps(id, 4);
    expect(await states(world, scheduleId)).toEqual(["failed", "blocked", "queued", "blocked", "failed"]);
    const { message } = await operationOf(world, id);
    const schedule = showId("sch", scheduleId);
    expect(message).toBe(
      `it waits while many runs of ${schedule} (paused by a failure: 1 wait for its resume) are open`,
    );
    await resume();
    for (const runId of [runs[2]!, runs[1]!]) await world.complete(await start(world, runId));
    expect(await finish(world, id)).toBe("ended");
    expect(await operationOf(world, id)).toMatchObject({ done: 5, tally: { replayed: 5 } });
    expect(await states(world, scheduleId)).toEqual(["failed", "succeeded", "succeeded", "queued", "blocked"]);
  });
});
