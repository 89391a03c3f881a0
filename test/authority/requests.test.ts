import { createHash } from "node:crypto";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { runAdHoc } from "../../src/authority/runs/run-ad-hoc.ts";
import { runNow } from "../../src/authority/runs/run-now.ts";
import { createSchedule } from "../../src/authority/schedules/create-schedule.ts";
import { deleteSchedule } from "../../src/authority/schedules/delete-schedule.ts";
import { workSchema } from "../../src/domain/definition.ts";
import type { Queryable } from "../../src/store/database.ts";
import { takeRequestKey } from "../../src/store/rows/request-keys.ts";
import { createWorld, definitionOf, type World } from "../support/world.ts";
import { bear, history, liveOf, running, start, states } from "./scenes.ts";

describe("requests that are sent twice", () => {
  let world: World;
  beforeAll(async () => {
    world = await createWorld();
  });
  afterEach(() => world.check());
  afterAll(() => world.close());

  const key = (name: string, body = "{}") => ({ key: name, bodySha256: createHash("sha256").update(body).digest() });
  const who = (scheduleId: string) => ({ tenantId: world.tenantId, actor: "test", scheduleId });
  const schedule = (more: object = {}) => ({
    tenantId: world.tenantId,
    actor: "test",
    name: "nightly",
    labels: {},
    definition: definitionOf(),
    payload: {},
    ...more,
  });
  const keys = async () => Number((await world.admin.query("select count(*) as n from request_key")).rows[0].n);

  it("run-now with the same key and body is the same run; with another body it is refused", async () => {
    const scheduleId = await world.newSchedule();
    const first = await runNow(world.authority, { ...who(scheduleId), requestKey: key("a") });
    expect(first).toMatchObject({ kind: "created", state: "queued" });
    const again = await runNow(world.authority, { ...who(scheduleId), requestKey: key("a") });
    expect(again).toMatchObject({ kind: "repeated", runId: (first as { runId: string }).runId, state: "queued" });
    expect(await runNow(world.authority, { ...who(scheduleId), requestKey: key("a", '{"x":1}') })).toEqual({
      kind: "key-reused",
    });
    expect(await history(world, scheduleId)).toMatchObject([{ trigger: "manual" }]);
  });

  it("run-now twice at once with one key makes one run", async () => {
    const scheduleId = await world.newSchedule();
    const both = await Promise.all(
      [world.authority, world.another(), world.another()].map((one) =>
        runNow(one, { ...who(scheduleId), requestKey: key("b") }),
      ),
    );
    expect(both.map((one) => one.kind).sort()).toEqual(["created", "repeated", "repeated"]);
    expect(new Set(both.map((one) => (one as { runId: string }).runId)).size).toBe(1);
    expect(await history(world, scheduleId)).toHaveLength(1);
  });

  it("a key is the schedule's own: another schedule may be asked with the same one", async () => {
    const [one, two] = [await world.newSchedule(), await world.newSchedule()];
    expect(await runNow(world.authority, { ...who(one), requestKey: key("c") })).toMatchObject({ kind: "created" });
    expect(await runNow(world.authority, { ...who(two), requestKey: key("c") })).toMatchObject({ kind: "created" });
  });

  it("without a key every call is a run; under forbid they wait in order behind what is open", async () => {
    const { scheduleId } = await running(world);
    expect(await runNow(world.authority, who(scheduleId))).toMatchObject({ kind: "created", state: "blocked" });
    expect(await runNow(world.authority, who(scheduleId))).toMatchObject({ kind: "created", state: "blocked" });
    expect(await states(world, scheduleId)).toEqual(["running", "blocked", "blocked"]);
  });

  it("under policy skip run-now is refused while a run is open, and a refused request leaves no key", async () => {
    const { scheduleId, grant } = await running(world, { overlap: { policy: "skip" } });
    const before = await keys();
    expect(await runNow(world.authority, { ...who(scheduleId), requestKey: key("d") })).toEqual({ kind: "overlap" });
    expect(await keys()).toBe(before);
    await world.complete(grant);
    expect(await runNow(world.authority, { ...who(scheduleId), requestKey: key("d") })).toMatchObject({
      kind: "created",
    });
  });

  it("a deleted schedule is told apart from one that never was, and from one of somebody else", async () => {
    const scheduleId = await world.newSchedule();
    await deleteSchedule(world.authority, who(scheduleId));
    const before = await keys();
    expect(await runNow(world.authority, { ...who(scheduleId), requestKey: key("e") })).toEqual({ kind: "deleted" });
    const mine = await world.newSchedule();
    const stranger = await world.newTenant("a stranger");
    expect(await runNow(world.authority, { ...who(mine), tenantId: stranger, requestKey: key("e") })).toEqual({
      kind: "not-found",
    });
    expect(await runNow(world.authority, who("01920000-0000-8000-8000-000000000000"))).toEqual({ kind: "not-found" });
    expect(await keys()).toBe(before);
  });

  it("run-now brings its own payload, and keeps the schedule's work", async () => {
    const scheduleId = await world.newSchedule({ payload: { from: "schedule" } });
    const made = (await runNow(world.authority, { ...who(scheduleId), payload: { from: "me" } })) as { runId: string };
    expect(await start(world, made.runId)).toMatchObject({
      payload: { from: "me" },
      job: { name: "test.noop" },
      scheduleId,
    });
  });

  it("run-now while the holder is ending waits for that end instead of guessing", async () => {
    const { scheduleId, grant } = await running(world);
    const held = world.faults.hold("complete:written");
    const end = world.complete(grant);
    await held.arrived;
    const other = world.another();
    const asked = runNow(other, who(scheduleId));
    held.release();
    await end;
    expect(await asked).toMatchObject({ kind: "created", state: "queued" });
  });

  it("a key that retention forgets while it is looked up is a new key", async () => {
    const [first, second] = [await world.newSchedule(), await world.newSchedule()];
    const request = key("forgotten");
    expect(await takeRequestKey(world.db, first, request, first)).toEqual({ kind: "taken" });
    let reads = 0;
    const beside = {
      query: async (statement: Parameters<typeof world.db.query>[0], values: readonly unknown[]) => {
        if (/^select/.test(statement.text) && reads++ === 0) await world.admin.query("delete from request_key");
        return world.db.query(statement, values);
      },
    } as Queryable;
    expect(await takeRequestKey(beside, first, request, second)).toEqual({ kind: "taken" });
    expect(await takeRequestKey(world.db, first, request, first)).toEqual({ kind: "repeated", subject: second });
    expect(reads).toBe(1);
  });

  it("a run of its own, asked for twice, is one run and competes with nobody", async () => {
    const work = workSchema.parse({ job: { kind: "function", name: "test.noop" } });
    const request = { tenantId: world.tenantId, actor: "test", work, payload: { n: 1 }, requestKey: key("f") };
    const both = await Promise.all([runAdHoc(world.authority, request), runAdHoc(world.another(), request)]);
    expect(both.map((one) => one.kind).sort()).toEqual(["created", "repeated"]);
    const { runId } = both[0] as { runId: string };
    expect(await liveOf(world, runId)).toMatchObject({ guard: runId, schedule_id: null, state: "queued" });
    expect(await runAdHoc(world.authority, { ...request, requestKey: key("f", "other") })).toEqual({
      kind: "key-reused",
    });
    expect(await start(world, runId)).toMatchObject({ scheduleId: null, payload: { n: 1 } });
  });

  it("create with the same key and body is the same schedule; another body is refused", async () => {
    const made = await createSchedule(world.authority, { ...schedule(), requestKey: key("g") });
    const again = await createSchedule(world.authority, { ...schedule(), requestKey: key("g") });
    expect(made.kind).toBe("created");
    expect(again).toMatchObject({
      kind: "repeated",
      schedule: { id: (made as { schedule: { id: string } }).schedule.id },
    });
    expect(await createSchedule(world.authority, { ...schedule(), requestKey: key("g", "other") })).toEqual({
      kind: "key-reused",
    });
  });

  it("create twice at once with one key makes one schedule", async () => {
    const both = await Promise.all(
      [world.authority, world.another()].map((one) => createSchedule(one, { ...schedule(), requestKey: key("h") })),
    );
    expect(both.map((one) => one.kind).sort()).toEqual(["created", "repeated"]);
  });

  it("a schedule's own key is taken until it is deleted, also when two ask at once", async () => {
    const both = await Promise.all(
      [world.authority, world.another()].map((one) => createSchedule(one, schedule({ key: "billing/nightly" }))),
    );
    expect(both.map((one) => one.kind).sort()).toEqual(["created", "key-taken"]);
    const made = both.find((one) => one.kind === "created") as { schedule: { id: string } };
    expect(both.find((one) => one.kind === "key-taken")).toMatchObject({ scheduleId: made.schedule.id });
    const before = await keys();
    expect(
      await createSchedule(world.authority, { ...schedule({ key: "billing/nightly" }), requestKey: key("i") }),
    ).toMatchObject({ kind: "key-taken" });
    expect(await keys()).toBe(before);
    await deleteSchedule(world.authority, who(made.schedule.id));
    expect(await createSchedule(world.authority, schedule({ key: "billing/nightly" }))).toMatchObject({
      kind: "created",
    });
  });

  it("a date in the past is refused, unless it is to run all the same", async () => {
    const rule = { kind: "once", at: new Date(Date.now() - 3_600_000).toISOString().replace(/\.\d+Z/, "Z") };
    const refused = await createSchedule(world.authority, schedule({ definition: definitionOf({ rule }) }));
    expect(refused).toMatchObject({ kind: "invalid", fault: { field: "at", found: rule.at } });
    const made = await createSchedule(
      world.authority,
      schedule({ definition: definitionOf({ rule, runIfPast: true }) }),
    );
    expect(made).toMatchObject({ kind: "created", schedule: { status: "active", nextRunAt: Date.parse(rule.at) } });
    const { id } = (made as { schedule: { id: string } }).schedule;
    await world.materialize([id]);
    expect(await states(world, id)).toEqual(["queued"]);
    expect(await world.materialize([id])).toMatchObject({ runs: 0 });
    expect((await world.admin.query("select status from schedule where id = $1", [id])).rows[0].status).toBe(
      "finished",
    );
  });

  it("a schedule with a number of runs ends with the last of them", async () => {
    const scheduleId = await world.newSchedule({ maxRuns: 2, overlap: { policy: "skip" } });
    const first = await bear(world, scheduleId, 60_000);
    const skipped = await bear(world, scheduleId, 50_000);
    expect(await world.run(skipped)).toMatchObject({ state: "skipped", skip_reason: "overlap" });
    await world.complete(await start(world, first));
    await bear(world, scheduleId, 40_000);
    const cursor = await world.admin.query(
      "select next_run_at, runs_made from schedule_cursor where schedule_id = $1",
      [scheduleId],
    );
    expect(cursor.rows[0]).toEqual({ next_run_at: null, runs_made: 2n });
    expect((await world.admin.query("select status from schedule where id = $1", [scheduleId])).rows[0].status).toBe(
      "finished",
    );
    expect(await states(world, scheduleId)).toEqual(["succeeded", "skipped", "queued"]);
  });
});
