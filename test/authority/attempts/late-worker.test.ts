import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { completeRuns } from "../../../src/authority/attempts/complete.ts";
import { detachRuns } from "../../../src/authority/attempts/detach.ts";
import { expireLeases } from "../../../src/authority/attempts/expire.ts";
import { failRuns } from "../../../src/authority/attempts/fail.ts";
import type { Grant } from "../../../src/authority/attempts/grant.ts";
import { heartbeat } from "../../../src/authority/attempts/heartbeat.ts";
import { releaseRuns } from "../../../src/authority/attempts/release.ts";
import { grantUpload } from "../../../src/authority/objects/grant-upload.ts";
import { createWorld, type World } from "../../support/world.ts";
import { liveOf, running, start, stateOf } from "../scenes.ts";

/** A holds a run and falls silent; its lease ends; B takes the run over. Then A speaks. */
describe("B29 a worker that lost its run", () => {
  let world: World;
  beforeAll(async () => {
    world = await createWorld();
  });
  afterEach(() => world.check());
  afterAll(() => world.close());

  type Output = { objectId: string; sha256: string };
  const complete = async ({ runId, fence }: Grant, output: Output | null) =>
    (await completeRuns(world.authority, [{ runId, fence, output }]))[0]!;
  const boom = async ({ runId, fence }: Grant) =>
    (
      await failRuns(world.authority, [{ runId, fence, failure: { transient: true, code: "boom", message: "boom" } }])
    )[0]!;

  async function frozen() {
    const { scheduleId, grant: a } = await running(world, { retry: { maxAttempts: 5 } as never });
    const o1 = await world.stage(a, "O1");
    await world.expireLease(a.runId);
    return { scheduleId, a, o1 };
  }
  async function takenOver() {
    const scene = await frozen();
    expect(await expireLeases(world.authority, [scene.a.runId], 0)).toBe(1);
    await world.makeAvailable();
    const b = await start(world, scene.a.runId, "worker-b");
    expect(b.fence).toBeGreaterThan(scene.a.fence);
    return { ...scene, b };
  }
  /** Whatever A may still say; each is answered `stale-fence`, and by nothing else. */
  async function sayAll(a: Grant, o1: Output) {
    return [
      (await heartbeat(world.authority, [a]))[0],
      await complete(a, o1),
      await complete(a, null),
      await boom(a),
      (await heartbeat(world.authority, [{ ...a, progress: '{"done":0.9}' }]))[0],
      (await releaseRuns(world.authority, [a]))[0],
      (await detachRuns(world.authority, [a]))[0],
      await grantUpload(world.authority, {
        ...a,
        name: "late",
        uri: `test:${a.runId}/late/x`,
        mediaType: "text/plain",
      }),
    ];
  }
  const attempts = async (runId: string) =>
    (
      await world.admin.query(
        "select n, outcome, error_code, error_message, progress from attempt where run_id = $1 order by n",
        [runId],
      )
    ).rows;

  it("hears so whatever it says after its replacement has published, and none of it is written", async () => {
    const { a, b, o1 } = await takenOver();
    const o2 = await world.stage(b, "O2");
    expect(await complete(b, o2)).toEqual({ kind: "accepted" });
    const before = [await world.run(a.runId), await attempts(a.runId)];
    expect(await sayAll(a, o1)).toEqual(Array(8).fill({ kind: "stale-fence" }));
    expect([await world.run(a.runId), await attempts(a.runId)]).toEqual(before);
    expect(await world.run(a.runId)).toMatchObject({
      state: "succeeded",
      result_sha256: o2.sha256,
      accepted_fence: b.fence,
      attempts: 2,
      error_code: null,
      error_message: null,
    });
    expect(await attempts(a.runId)).toMatchObject([
      { n: 1, outcome: "expired", error_code: "lease-expired", progress: null },
      { n: 2, outcome: null },
    ]);
  });

  it("hears so while its replacement is at work, whose lease, count of tries and next try it does not touch", async () => {
    const { a, b, o1 } = await takenOver();
    const before = [await liveOf(world, a.runId), await attempts(a.runId)];
    expect(await sayAll(a, o1)).toEqual(Array(8).fill({ kind: "stale-fence" }));
    expect([await liveOf(world, a.runId), await attempts(a.runId)]).toEqual(before);
    expect(await boom(b)).toMatchObject({ kind: "retrying" });
    const waiting = await liveOf(world, a.runId);
    expect(await sayAll(a, o1)).toEqual(Array(8).fill({ kind: "stale-fence" }));
    expect(await liveOf(world, a.runId)).toEqual(waiting);
  });

  it("cannot publish after its lease has ended either, though nobody has taken over: it has to revive it first", async () => {
    const { a, o1 } = await frozen();
    expect(await complete(a, o1)).toEqual({ kind: "lease-lapsed" });
    expect(await stateOf(world, a.runId)).toBe("running");
    expect(await heartbeat(world.authority, [a])).toMatchObject([{ kind: "renewed" }]);
    expect(await complete(a, o1)).toEqual({ kind: "accepted" });
  });

  it("is not confused with its replacement, whose lost reply is answered again, and whose other result is a conflict", async () => {
    const { a, b, o1 } = await takenOver();
    const o2 = await world.stage(b, "O2");
    const o3 = { ...o2, sha256: "0".repeat(64) };
    expect(await complete(b, o2)).toEqual({ kind: "accepted" });
    expect(await complete(b, o2)).toEqual({ kind: "already-accepted" });
    expect(await complete(b, o3)).toEqual({ kind: "result-conflict" });
    expect(await complete(b, null)).toEqual({ kind: "result-conflict" });
    expect(await complete(a, o1)).toEqual({ kind: "stale-fence" });
    // Even with the very bytes that were accepted: they are another attempt's.
    expect(await complete(a, o2)).toEqual({ kind: "stale-fence" });
  });
});
