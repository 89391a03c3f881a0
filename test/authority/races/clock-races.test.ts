import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { completeRuns } from "../../../src/authority/attempts/complete.ts";
import { detachRuns } from "../../../src/authority/attempts/detach.ts";
import { failRuns } from "../../../src/authority/attempts/fail.ts";
import type { Grant } from "../../../src/authority/attempts/grant.ts";
import { releaseRuns } from "../../../src/authority/attempts/release.ts";
import { grantUpload } from "../../../src/authority/objects/grant-upload.ts";
import { stageObject } from "../../../src/authority/objects/stage-object.ts";
import { createWorld, type World } from "../../support/world.ts";
import { liveOf, running } from "../scenes.ts";

/** What ends while a verb waits for a lock is over when it gets it: time is read after the last wait. */
describe("a verb that waits for a row", () => {
  let world: World;
  beforeAll(async () => {
    world = await createWorld();
  });
  afterEach(() => world.check());
  afterAll(() => world.close());

  /** Somebody holds the row until the verb waits for it, and changes it at that moment; answers when that was. */
  async function whileItWaits(
    table: "live_run" | "object",
    id: string,
    change: string,
    verb: () => Promise<unknown>,
  ): Promise<{ answer: Promise<unknown>; at: number }> {
    const stranger = await world.stranger();
    await stranger.query(`select 1 from ${table} where id = $1 for update`, [id]);
    const answer = verb();
    await world.lockWaits();
    const [row] = await stranger.query(
      `update ${table} set ${change} where id = $1 returning extract(epoch from clock_timestamp())::float8 * 1000 as at`,
      [id],
    );
    await stranger.commit();
    return { answer, at: row!.at as number };
  }
  const end = async ({ runId, fence }: Grant) => {
    await completeRuns(world.authority, [{ runId, fence, output: null }]);
  };
  const facts = { uri: "test:x", version: "1", size: 6 };

  it("detaches no attempt whose deadline passed meanwhile", async () => {
    const { grant } = await running(world);
    const { answer } = await whileItWaits("live_run", grant.runId, "deadline_at = clock_timestamp()", () =>
      detachRuns(world.authority, [grant]),
    );
    expect(await answer).toEqual([{ kind: "deadline" }]);
    expect(await liveOf(world, grant.runId)).toMatchObject({ worker: grant.worker });
    await end(grant);
  });

  it("permits no upload under a lease that ended meanwhile", async () => {
    const { grant } = await running(world);
    const order = { runId: grant.runId, fence: grant.fence, name: "r", uri: "test:r", mediaType: "text/plain" };
    const { answer } = await whileItWaits("live_run", grant.runId, "lease_until = clock_timestamp()", () =>
      grantUpload(world.authority, order),
    );
    expect(await answer).toEqual({ kind: "lease-lapsed" });
  });

  it("stages nothing under a permission that ended meanwhile", async () => {
    const { grant } = await running(world);
    const { objectId, sha256 } = await world.stage(grant, "report");
    const order = { ...facts, runId: grant.runId, fence: grant.fence, objectId, sha256 };
    const { answer } = await whileItWaits("object", objectId, "granted_until = clock_timestamp()", () =>
      stageObject(world.authority, order),
    );
    expect(await answer).toEqual({ kind: "no-grant", found: "an expired grant" });
    await end(grant);
  });

  it("publishes no object whose permission ended meanwhile", async () => {
    const { grant } = await running(world);
    const output = await world.stage(grant, "report");
    const { answer } = await whileItWaits("object", output.objectId, "granted_until = clock_timestamp()", () =>
      completeRuns(world.authority, [{ runId: grant.runId, fence: grant.fence, output }]),
    );
    expect(await answer).toEqual([{ kind: "object-unusable", found: "an expired grant" }]);
    await end(grant);
  });

  it.each([
    ["fails", { failed: true }],
    ["is given back", { failed: false }],
  ])("writes down that an attempt %s when it is so, not when it was asked", async (_, { failed }) => {
    const { grant } = await running(world);
    const failure = { transient: true, code: "x", message: "x" };
    const { answer, at } = await whileItWaits("live_run", grant.runId, "worker = worker", () =>
      failed ? failRuns(world.authority, [{ ...grant, failure }]) : releaseRuns(world.authority, [grant]),
    );
    await answer;
    const { rows } = await world.admin.query(
      "select extract(epoch from ended_at)::float8 * 1000 as at from attempt where run_id = $1",
      [grant.runId],
    );
    expect(rows[0].at).toBeGreaterThan(at);
  });
});
