import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { completeRuns } from "../../../src/authority/attempts/complete.ts";
import { failRuns } from "../../../src/authority/attempts/fail.ts";
import { cancelRuns } from "../../../src/authority/runs/cancel.ts";
import { runAdHoc } from "../../../src/authority/runs/run-ad-hoc.ts";
import { setWebhookStatus } from "../../../src/authority/webhooks/change-webhook.ts";
import { tellLateRuns } from "../../../src/authority/webhooks/due.ts";
import { workSchema } from "../../../src/domain/definition.ts";
import { messageOf } from "../../../src/domain/webhooks/message.ts";
import { showId, type Uuid } from "../../../src/kernel/ids.ts";
import { createWorld, type World } from "../../support/world.ts";
import { replay } from "../dead-letters/letters.ts";
import { bear, failForGood, running, start } from "../scenes.ts";
import { claim, deliveries, listening } from "./scenes.ts";

let world: World;
beforeEach(async () => {
  world = await createWorld();
});
afterEach(async () => {
  await world.check();
  await world.close();
});

const types = async (endpointId?: Uuid) => (await deliveries(world, endpointId)).map((one) => one.type);
async function bodies(): Promise<Record<string, never>[]> {
  const grants = await claim(
    world,
    (await deliveries(world)).map((one) => one.id),
  );
  return grants.map((grant) => JSON.parse(grant.body));
}

describe("an event", () => {
  it("is born with the end of its run, and says how it was", async () => {
    await listening(world, ["run.succeeded"]);
    const { scheduleId, grant } = await running(world);
    await world.complete(grant, "a report");
    const [one] = await deliveries(world);
    expect(one).toMatchObject({ type: "run.succeeded", run_id: grant.runId, n: 1, state: "pending" });
    const [body] = await bodies();
    expect(body).toEqual({
      type: "run.succeeded",
      timestamp: expect.stringMatching(/Z$/),
      data: {
        run: {
          id: showId("run", grant.runId),
          state: "succeeded",
          trigger: "schedule",
          class: "short",
          scheduledAt: expect.any(String),
          dueAt: expect.any(String),
          startedAt: expect.any(String),
          finishedAt: expect.any(String),
          attempts: 1,
        },
        schedule: { id: showId("sch", scheduleId), key: null, name: "a schedule" },
        job: "test.noop",
        result: { sha256: expect.stringMatching(/^[0-9a-f]{64}$/), size: 8, mediaType: "text/plain" },
      },
    });
  });

  it("is not there where the end did not commit", async () => {
    await listening(world, ["run.succeeded"]);
    const { grant } = await running(world);
    world.faults.once("complete:written", () => {
      throw new Error("killed");
    });
    await expect(world.complete(grant)).rejects.toThrow("killed");
    expect(await deliveries(world)).toEqual([]);
    await world.complete(grant);
    await world.complete(grant);
    expect(await types()).toEqual(["run.succeeded"]);
  });

  it("of a run that is given up is two: that it failed, and what its dead letter says", async () => {
    const endpointId = await listening(world, ["run.failed", "run.dead-lettered"]);
    const { grant } = await running(world);
    await failForGood(world, grant);
    expect((await types(endpointId)).toSorted()).toEqual(["run.dead-lettered", "run.failed"]);
    const found = await bodies();
    const letter = found.find((one) => String(one.type) === "run.dead-lettered");
    expect(letter).toMatchObject({
      data: {
        run: { state: "failed", attempts: 1 },
        error: { code: "broken", message: "no use" },
        deadLetter: { reason: "permanent", fingerprint: expect.any(String) },
      },
    });
  });

  it("of a run that fails again after a replay is another one", async () => {
    await listening(world, ["run.failed"]);
    const { grant } = await running(world);
    await failForGood(world, grant);
    await replay(world, grant.runId);
    await failForGood(world, await start(world, grant.runId));
    expect(await deliveries(world)).toMatchObject([{ n: 1 }, { n: 2 }]);
    const ids = (
      await claim(
        world,
        (await deliveries(world)).map((one) => one.id),
      )
    ).map((one) => one.eventId);
    expect(ids).toEqual([1, 2].map((n) => `run-failed-${showId("run", grant.runId)}-${n}`));
  });

  it("tells of a cancel, and of a run that was skipped as it was born", async () => {
    await listening(world, ["run.canceled", "run.skipped"]);
    const scheduleId = await world.newSchedule({ overlap: { policy: "skip" } });
    const first = await bear(world, scheduleId, 60_000);
    await bear(world, scheduleId, 30_000);
    await cancelRuns(world.authority, [{ tenantId: world.tenantId, actor: "ada", runId: first }]);
    expect(await types()).toEqual(["run.skipped", "run.canceled"]);
    expect((await bodies())[0]).toMatchObject({ data: { skipReason: "overlap", run: { startedAt: null } } });
  });

  it("goes to each endpoint that asked for it: of its tenant, enabled, of its schedules", async () => {
    const other = await world.newTenant("other");
    const { scheduleId, grant } = await running(world);
    const mine = await listening(world, ["run.succeeded"]);
    const ofSchedule = await listening(world, ["run.succeeded", "run.failed"], { scheduleIds: [scheduleId] });
    await listening(world, ["run.failed"]);
    await listening(world, ["run.succeeded"], { tenantId: other });
    await listening(world, ["run.succeeded"], { scheduleIds: [await world.newSchedule()] });
    const off = await listening(world, ["run.succeeded"]);
    const by = { tenantId: world.tenantId, actor: "ada" };
    await setWebhookStatus(world.authority, { ...by, id: off, status: "disabled", reason: "moved" });
    await world.complete(grant);
    expect((await deliveries(world)).map((one) => one.endpoint_id).toSorted()).toEqual([mine, ofSchedule].toSorted());
  });

  it("costs no statement, neither who listens nor who does not", async () => {
    const statements = async () => {
      const { grant } = await running(world);
      let count = 0;
      const authority: World["authority"] = {
        ...world.authority,
        transact: (verb, work) =>
          world.authority.transact(verb, (tx) =>
            work({
              ...tx,
              query: (...asked) => {
                count++;
                return tx.query(...asked);
              },
            }),
          ),
      };
      await completeRuns(authority, [{ runId: grant.runId, fence: grant.fence, output: null }]);
      return count;
    };
    const without = await statements();
    await listening(world, ["run.succeeded"]);
    expect([without, await statements(), (await deliveries(world)).length]).toEqual([without, without, 1]);
    expect(without).toBeLessThan(6);
  });

  it("of a run without a schedule is not for endpoints of schedules, and has the job that the run brought", async () => {
    const { body } = messageOf({
      id: 1n,
      type: "run.succeeded",
      runId: world.tenantId,
      n: 1,
      occurredAt: 0,
      facts: {
        id: world.tenantId,
        schedule_id: null,
        schedule: null,
        job: { kind: "http", name: null },
        class: "short",
        scheduled_at: "2026-11-30T09:00:00+00:00",
        due_at: "2026-11-30T09:00:00+00:00",
        started_at: null,
      },
    });
    expect(JSON.parse(body).data).toMatchObject({ schedule: null, job: "http" });
  });
});

describe("run.late", () => {
  const tell = async (most = 500, since: number | null = null) =>
    (await tellLateRuns(world.authority, { most, since })).told;
  const late = async (change: object = {}) => {
    const scheduleId = await world.newSchedule(change);
    // Admitted long ago, too: what counts is the later of both.
    const runId = await bear(world, scheduleId, 120_000);
    await world.admin.query("update live_run set admitted_at = due_at where id = $1", [runId]);
    return runId;
  };

  it("is told of a run that has not started, once, and of none that is on time or held back by a person", async () => {
    await listening(world, ["run.late"], { lateAfterMs: 90_000 });
    const runId = await late();
    await bear(world, await world.newSchedule(), 1_000);
    const held = await late();
    await world.admin.query("update live_run set held_by = 'pause' where id = $1", [held]);
    expect([await tell(), await tell()]).toEqual([1, 0]);
    await start(world, runId);
    expect(await deliveries(world)).toMatchObject([{ type: "run.late", run_id: runId, n: 0 }]);
    expect((await bodies())[0]).toMatchObject({
      data: { run: { id: showId("run", runId), startedAt: null }, job: "test.noop", heldBy: "none" },
    });
  });

  it("is told of a run that starts late before anybody saw it wait, by its first start alone", async () => {
    await listening(world, ["run.late"], { lateAfterMs: 90_000 });
    const runId = await late();
    const { fence } = await start(world, runId);
    expect(await types()).toEqual(["run.late"]);
    const failure = { transient: true, code: "busy", message: "again" };
    await failRuns(world.authority, [{ runId, fence, failure }]);
    await world.makeAvailable();
    await start(world, runId);
    expect(await types()).toEqual(["run.late"]);
    expect((await bodies())[0]).toMatchObject({ data: { run: { startedAt: expect.any(String) } } });
  });

  it("is told in one order by claims and by looks at what waits, so that neither waits for the other in a circle", async () => {
    for (let i = 0; i < 3; i++) await listening(world, ["run.late"], { lateAfterMs: 1_000 });
    const inOrder = async () => {
      const told = (await deliveries(world)).map((row) => `${row.run_id} ${row.endpoint_id}`);
      expect(told).toEqual(told.toSorted());
      expect(told).toHaveLength(12);
      await world.admin.query("delete from webhook_delivery");
    };
    const runs: string[] = [];
    for (let i = 0; i < 4; i++) runs.push(await late());
    for (const [i, id] of runs.toSorted().entries()) {
      const later = "update live_run set due_at = due_at - $2 * interval '1 s' where id = $1";
      await world.admin.query(later, [id, i * 10]);
    }
    await tell();
    await inOrder();
    await world.makeAvailable();
    expect(await world.claimAll()).toHaveLength(4);
    await inOrder();
  });

  it("has the job of a run without a schedule, too", async () => {
    await listening(world, ["run.late", "run.succeeded"], { lateAfterMs: 1_000 });
    const work = workSchema.parse({ job: { kind: "function", name: "test.noop" } });
    const made = await runAdHoc(world.authority, { tenantId: world.tenantId, actor: "ada", work, payload: {} });
    if (made.kind !== "created") throw new Error(made.kind);
    await world.admin.query(
      "update live_run set due_at = due_at - interval '1 hour', admitted_at = admitted_at - interval '1 hour'",
    );
    const grant = await start(world, made.runId);
    await world.complete(grant);
    expect(await bodies()).toMatchObject([
      { type: "run.late", data: { schedule: null, job: "test.noop" } },
      { type: "run.succeeded", data: { schedule: null, job: "test.noop" } },
    ]);
  });

  it("is as late as the endpoint says", async () => {
    await listening(world, ["run.late"], { lateAfterMs: 600_000 });
    const runId = await late();
    expect(await tell()).toBe(0);
    await start(world, runId);
    expect(await deliveries(world)).toEqual([]);
  });
});
