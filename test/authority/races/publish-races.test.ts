import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { claimRuns } from "../../../src/authority/attempts/claim.ts";
import { publishOutbox } from "../../../src/authority/dispatch/publish.ts";
import { unpublish } from "../../../src/authority/dispatch/unpublish.ts";
import { createWorld, type World } from "../../support/world.ts";
import { bear, hintsOf } from "../scenes.ts";

describe("hints that are being published", () => {
  let world: World;
  beforeAll(async () => {
    world = await createWorld();
  });
  afterEach(() => world.check());
  afterAll(() => world.close());

  const SLOTS = new Map([["short", 10]]);
  async function waiting() {
    const runId = await bear(world, await world.newSchedule(), 5000);
    const [rowId] = await hintsOf(world, runId);
    return { runId, rowId: rowId! };
  }
  const claim = (rowId: bigint, authority = world.authority) =>
    claimRuns(authority, {
      claimId: crypto.randomUUID(),
      worker: "worker-a",
      slots: { short: 10 },
      hints: [{ rowId, epoch: 1 }],
      repeated: false,
    });
  const lineOf = async (rowId: bigint) =>
    (
      await world.admin.query("select published_at is not null as published, publish_no from outbox where id = $1", [
        rowId,
      ])
    ).rows[0];

  it("publish / publish: what one relay is marking another leaves alone, and does not wait for", async () => {
    const { runId, rowId } = await waiting();
    const held = world.faults.hold("publish:marked");
    const first = publishOutbox(world.authority, SLOTS);
    await held.arrived;
    expect((await publishOutbox(world.another(), SLOTS)).rows).toEqual([]);
    held.release();
    expect((await first).rows).toMatchObject([{ id: rowId, runs: [runId], publish_no: 1 }]);
    expect((await claim(rowId)).grants).toHaveLength(1);
  });

  it("claim / publish: a row that is being claimed directly is not published, and is gone with the claim", async () => {
    const { rowId } = await waiting();
    const held = world.faults.hold("claim:outbox-locked");
    const claiming = claim(rowId);
    await held.arrived;
    const other = world.another();
    expect((await publishOutbox(other, SLOTS)).rows).toEqual([]);
    held.release();
    expect((await claiming).grants).toHaveLength(1);
    expect((await publishOutbox(other, SLOTS)).rows).toEqual([]);
  });

  it("claim / unpublish: a hint that is taken for lost while its row is being claimed is left to the claim", async () => {
    const { rowId } = await waiting();
    const [published] = (await publishOutbox(world.authority, SLOTS)).rows;
    const held = world.faults.hold("claim:outbox-locked");
    const claiming = claim(rowId);
    await held.arrived;
    expect(await unpublish(world.another(), [{ rowId, publishNo: published!.publish_no }])).toBe(0);
    held.release();
    expect((await claiming).grants).toHaveLength(1);
  });

  it("publish / unpublish: a look at an earlier publication does not take back a later one", async () => {
    const { rowId } = await waiting();
    const seen = (await publishOutbox(world.authority, SLOTS)).rows.map((row) => ({
      rowId,
      publishNo: row.publish_no,
    }));
    expect(await unpublish(world.authority, seen)).toBe(1);
    await publishOutbox(world.authority, SLOTS);
    expect(await unpublish(world.another(), seen)).toBe(0);
    expect(await lineOf(rowId)).toEqual({ published: true, publish_no: 2 });
    expect((await claim(rowId)).grants).toHaveLength(1);
  });
});
