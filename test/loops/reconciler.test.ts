import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createReconciler } from "../../src/loops/reconciler.ts";
import { createWorld, type World } from "../support/world.ts";

describe("the reconciler", () => {
  let world: World;
  beforeEach(async () => {
    world = await createWorld();
  });
  afterEach(() => world.close());

  const reconcile = () => createReconciler({ authority: world.authority }).pass(new AbortController().signal);

  async function born(scheduleId: string, agoMs: number) {
    await world.makeDue(scheduleId, agoMs);
    await world.materialize([scheduleId]);
  }

  it("leaves a sound system alone", async () => {
    const scheduleId = await world.newSchedule();
    await born(scheduleId, 3000);
    await born(scheduleId, 2000);
    await world.claimAll();
    expect(await reconcile()).toMatchObject({ did: 0, more: false });
    await world.check();
  });

  it("gives a queued run that no outbox row names a new one, once", async () => {
    const scheduleId = await world.newSchedule();
    await born(scheduleId, 3000);
    await world.admin.query("delete from outbox");
    expect(await reconcile()).toMatchObject({ did: 1 });
    expect(await reconcile()).toMatchObject({ did: 0 });
    expect(await world.claimAll()).toHaveLength(1);
    await world.check();
  });

  it("frees a run that is blocked behind nobody", async () => {
    const scheduleId = await world.newSchedule();
    await born(scheduleId, 3000);
    await born(scheduleId, 2000);
    const [holder] = await world.live();
    await world.admin.query("delete from live_run where id = $1", [holder!.id]);
    await world.admin.query("delete from outbox");
    await world.admin.query("delete from run where id = $1", [holder!.id]);
    await world.admin.query("update run set prev_scheduled_at = null");
    await world.admin.query("update schedule_cursor set chain_started_at = now()");
    expect(await reconcile()).toMatchObject({ did: 1 });
    expect((await world.live()).map((run) => run.state)).toEqual(["queued"]);
    const [grant] = await world.claimAll();
    expect(await world.complete(grant!)).toEqual({ kind: "accepted" });
  });

  it("fills every free slot of a schedule that allows several runs", async () => {
    const scheduleId = await world.newSchedule({ overlap: { policy: "allow", limit: 2 } });
    for (const ago of [5000, 4000, 3000, 2000]) await born(scheduleId, ago);
    await world.admin.query(
      "update live_run set guard = null, state = 'blocked' where id = (select id from live_run where guard is not null order by scheduled_at desc limit 1)",
    );
    await world.admin.query(
      "delete from outbox where not exists (select 1 from live_run l where l.id = any(outbox.runs) and l.state = 'queued')",
    );
    expect(await reconcile()).toMatchObject({ did: 1 });
    expect((await world.live()).map((run) => run.state)).toEqual(["queued", "queued", "blocked", "blocked"]);
    await world.check();
  });

  it("fills a free slot beside a run that is surplus from an edit: that one takes no slot", async () => {
    const scheduleId = await world.newSchedule({ overlap: { policy: "allow", limit: 2 } });
    for (const ago of [5000, 4000, 3000]) await born(scheduleId, ago);
    await world.admin.query("update live_run set guard = id where guard is not null and guard <> schedule_id");
    expect(await reconcile()).toMatchObject({ did: 1 });
    expect((await world.live()).map((run) => run.state)).toEqual(["queued", "queued", "queued"]);
    await world.check();
  });

  it("puts a running count right that has drifted, in either direction", async () => {
    const scheduleId = await world.newSchedule();
    await born(scheduleId, 3000);
    const [grant] = await world.claimAll();
    await world.admin.query("update usage set running = 7");
    expect(await reconcile()).toMatchObject({ did: 1 });
    expect(await world.usage()).toBe(1);
    await world.admin.query("update usage set running = 0");
    expect(await reconcile()).toMatchObject({ did: 1 });
    expect(await world.complete(grant!)).toEqual({ kind: "accepted" });
    await world.check();
  });
});
