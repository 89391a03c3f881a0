import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { expireLeases } from "../../src/authority/attempts/expire.ts";
import { heartbeat } from "../../src/authority/attempts/heartbeat.ts";
import { createWorld, type World } from "../support/world.ts";

describe("a worker that was paused past its lease", () => {
  let world: World;
  beforeAll(async () => {
    world = await createWorld();
  });
  afterAll(() => world.close());

  async function freshRun() {
    const scheduleId = await world.newSchedule();
    await world.makeDue(scheduleId);
    await world.materialize([scheduleId]);
    const [grant] = await world.claimAll("worker-a");
    return grant!;
  }

  async function takeOver(runId: string) {
    await world.expireLease(runId);
    await expireLeases(world.authority, [runId], 0);
    await world.makeAvailable();
    const [grant] = await world.claimAll("worker-b");
    return grant!;
  }

  it("cannot overwrite its replacement's result", async () => {
    const a = await freshRun();
    const b = await takeOver(a.runId);
    expect(b.runId).toBe(a.runId);
    expect(b.attempt).toBe(2);
    expect(b.fence).toBeGreaterThan(a.fence);

    expect(await world.complete(b, "report of B")).toMatchObject({ kind: "accepted" });
    await expect(world.complete(a, "report of A")).rejects.toThrow("stale-fence");
    expect(await world.complete(a)).toMatchObject({ kind: "stale-fence" });

    const run = await world.run(a.runId);
    expect(run).toMatchObject({ state: "succeeded", accepted_fence: b.fence, attempts: 2 });
    await world.check();
  });

  it("is refused also while its replacement is still at work", async () => {
    const a = await freshRun();
    const output = await world.stage(a, "early upload of A");
    const b = await takeOver(a.runId);
    const { completeRuns } = await import("../../src/authority/attempts/complete.ts");
    const [late] = await completeRuns(world.authority, [{ runId: a.runId, fence: a.fence, output }]);
    expect(late).toEqual({ kind: "stale-fence" });
    expect((await heartbeat(world.authority, [a]))[0]).toEqual({
      kind: "stale-fence",
    });
    expect(await world.complete(b)).toEqual({ kind: "accepted" });
    await world.check();
  });

  it("may still finish when nobody took over: a heartbeat revives its lease first", async () => {
    const a = await freshRun();
    await world.expireLease(a.runId);
    expect(await world.complete(a)).toEqual({ kind: "lease-lapsed" });
    expect((await heartbeat(world.authority, [a]))[0]).toMatchObject({
      kind: "renewed",
    });
    expect(await world.complete(a)).toEqual({ kind: "accepted" });
    await world.check();
  });

  it("gets its saved answer when the reply was lost, and a conflict for another checksum", async () => {
    const a = await freshRun();
    const output = await world.stage(a, "the report");
    const other = await world.stage(a, "another report", "second");
    const { completeRuns } = await import("../../src/authority/attempts/complete.ts");
    const say = (what: typeof output) =>
      completeRuns(world.authority, [{ runId: a.runId, fence: a.fence, output: what }]);
    expect(await say(output)).toEqual([{ kind: "accepted" }]);
    expect(await say(output)).toEqual([{ kind: "already-accepted" }]);
    expect(await say(other)).toEqual([{ kind: "result-conflict" }]);
    await world.check();
  });
});
