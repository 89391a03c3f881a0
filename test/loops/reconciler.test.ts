import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { fromTheBeginning, restoreLostLiveRows } from "../../src/authority/repair/lost-live-rows.ts";
import { endMissedStarts } from "../../src/authority/repair/missed-starts.ts";
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

  describe("a run that has not started by its start deadline", () => {
    const within = { startDeadlineMs: 1000 };

    it("is skipped although nobody claims it, and lets the next one go", async () => {
      const scheduleId = await world.newSchedule(within);
      await born(scheduleId, 5000);
      await world.admin.query("update live_run set start_deadline = null");
      await born(scheduleId, 4000);
      await world.admin.query("update schedule_cursor set next_due_at = null, next_run_at = null");
      await world.admin.query("update schedule set status = 'finished'");
      await world.admin.query(
        "update live_run set start_deadline = clock_timestamp() - interval '1 s' where state = 'queued'",
      );
      await world.admin.query("update live_run set start_deadline = null where state = 'blocked'");
      expect(await reconcile()).toMatchObject({ did: 1 });
      expect((await world.live()).map((run) => run.state)).toEqual(["queued"]);
      const { rows } = await world.admin.query("select state, skip_reason from run order by scheduled_at limit 1");
      expect(rows).toEqual([{ state: "skipped", skip_reason: "start-deadline" }]);
      expect(await world.claimAll()).toHaveLength(1);
      await world.check();
    });

    it("is skipped while it is blocked, too", async () => {
      const scheduleId = await world.newSchedule(within);
      await born(scheduleId, 5000);
      await world.admin.query("update live_run set start_deadline = null");
      const [grant] = await world.claimAll();
      await born(scheduleId, 4000);
      expect(await reconcile()).toMatchObject({ did: 1 });
      expect((await world.live()).map((run) => run.id)).toEqual([grant!.runId]);
      expect(await world.complete(grant!)).toEqual({ kind: "accepted" });
      await world.check();
    });

    it("goes on when it started while its row was waited for", async () => {
      const scheduleId = await world.newSchedule(within);
      await born(scheduleId, 5000);
      const starter = await world.stranger();
      await starter.query(
        `update live_run set state = 'running', attempt = 1, fence = 1, claim_id = gen_random_uuid(),
                lease_until = clock_timestamp() + interval '1 h', deadline_at = clock_timestamp() + interval '1 h'`,
      );
      const ending = endMissedStarts(world.authority, 10);
      await world.lockWaits();
      await starter.commit();
      expect(await ending).toBe(0);
      expect((await world.live()).map((run) => run.state)).toEqual(["running"]);
    });
  });

  it("a run that lost its live row goes on where it was: its attempts are numbered on, and the old one is refused", async () => {
    const scheduleId = await world.newSchedule();
    await born(scheduleId, 5000);
    const [old] = await world.claimAll();
    await world.admin.query("delete from live_run");
    await world.admin.query("update usage set running = 0");
    expect(await reconcile()).toMatchObject({ did: 1 });
    expect(await world.complete(old!)).toEqual({ kind: "stale-fence" });
    const [next] = await world.claimAll();
    expect(next).toMatchObject({ runId: old!.runId, attempt: 2 });
    expect(next!.fence).toBeGreaterThan(old!.fence);
    expect(await world.complete(next!)).toEqual({ kind: "accepted" });
    await world.check();
  });

  it("a run that lost its live row waits behind the one that took its place", async () => {
    const scheduleId = await world.newSchedule();
    await born(scheduleId, 5000);
    await world.admin.query("delete from live_run");
    await world.admin.query("delete from outbox");
    await born(scheduleId, 4000);
    expect(await reconcile()).toMatchObject({ did: 1 });
    expect((await world.live()).map((run) => run.state)).toEqual(["blocked", "queued"]);
    const [first] = await world.claimAll();
    await world.complete(first!);
    expect(await world.claimAll()).toHaveLength(1);
    await world.check();
  });

  it("walks over all of history, a stretch a pass, and then from its beginning", async () => {
    const walk = fromTheBeginning();
    for (const ago of [9000, 8000, 7000]) {
      const scheduleId = await world.newSchedule();
      await born(scheduleId, ago);
    }
    await world.admin.query("delete from live_run");
    await world.admin.query("delete from outbox");
    const restored: number[] = [];
    for (let n = 0; n < 4; n++) restored.push(await restoreLostLiveRows(world.authority, walk, 1));
    expect(restored).toEqual([1, 1, 1, 0]);
    expect(walk).toEqual(fromTheBeginning());
    await world.check();
  });
});
