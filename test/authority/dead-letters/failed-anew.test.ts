import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { runAdHoc } from "../../../src/authority/runs/run-ad-hoc.ts";
import { workSchema } from "../../../src/domain/definition.ts";
import type { Uuid } from "../../../src/kernel/ids.ts";
import { createWorld, type World } from "../../support/world.ts";
import { operationOf, step } from "../operations/pasts.ts";
import { failForGood, start, stateOf } from "../scenes.ts";
import { begin, decisionsOf, givenUp, letterOf, replay } from "./letters.ts";

describe("what fails anew while a decision about many waits for its locks", () => {
  let world: World;
  beforeAll(async () => {
    world = await createWorld();
  });
  afterEach(async () => {
    await world.check();
    await world.admin.query("delete from dead_letter");
  });
  afterAll(() => world.close());

  async function failAnew(runId: Uuid) {
    expect(await replay(world, runId)).toMatchObject({ kind: "replayed" });
    await failForGood(world, await start(world, runId));
  }

  async function givenUpAlone(): Promise<Uuid> {
    const work = workSchema.parse({ job: { kind: "function", name: "test.noop" } });
    const made = await runAdHoc(world.authority, { tenantId: world.tenantId, actor: "anna", work, payload: {} });
    const { runId } = made as { runId: Uuid };
    await failForGood(world, await start(world, runId));
    return runId;
  }

  it("is not dismissed: nobody had seen that failure", async () => {
    const runs = [(await givenUp(world)).runId, (await givenUp(world)).runId].sort();
    const [held, anew] = runs as [Uuid, Uuid];
    const id = await begin(world, "dismiss");
    const stranger = await world.stranger();
    await stranger.query("select 1 from dead_letter where run_id = $1 for update", [held]);
    const stepping = step(world, id);
    await world.lockWaits();
    await failAnew(anew);
    await stranger.commit();
    expect(await stepping).toBe("ended");
    expect(await operationOf(world, id)).toMatchObject({ done: 1, tally: { dismissed: 1, resolved: 1 } });
    expect(await letterOf(world, anew)).toMatchObject({ resolution: null });
    expect(await decisionsOf(world, anew)).toMatchObject([{ resolution: "replayed", operation_id: null }]);
  });

  it("is not replayed: it was replayed once already", async () => {
    const { scheduleId, runId } = await givenUp(world);
    const alone = await givenUpAlone();
    const id = await begin(world, "replay");
    const stranger = await world.stranger();
    await stranger.query("select 1 from schedule_cursor where schedule_id = $1 for update", [scheduleId]);
    const stepping = step(world, id);
    await world.lockWaits();
    await failAnew(alone);
    await stranger.commit();
    expect(await stepping).toBe("ended");
    expect(await operationOf(world, id)).toMatchObject({ done: 1, tally: { replayed: 1, "not-failed": 1 } });
    expect([await stateOf(world, runId), await stateOf(world, alone)]).toEqual(["queued", "failed"]);
    expect(await decisionsOf(world, alone)).toMatchObject([{ resolution: "replayed", operation_id: null }]);
    expect(await letterOf(world, alone)).toMatchObject({ resolution: null });
  });
});
