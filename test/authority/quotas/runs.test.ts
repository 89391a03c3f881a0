import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createBackfill } from "../../../src/authority/operations/backfill/create.ts";
import { createLettersOperation } from "../../../src/authority/operations/dead-letters/create.ts";
import { runAdHoc } from "../../../src/authority/runs/run-ad-hoc.ts";
import { runNow } from "../../../src/authority/runs/run-now.ts";
import { workSchema } from "../../../src/domain/definition.ts";
import type { Uuid } from "../../../src/kernel/ids.ts";
import { createWorld, type World } from "../../support/world.ts";
import { begin as beginLetters, givenUp, replay } from "../dead-letters/letters.ts";
import { begin, finish, hurry, missed, operationOf, step } from "../operations/pasts.ts";
import { allow, bear, MINUTE, states } from "../scenes.ts";
import { setQuotas } from "./quotas.ts";

const DAY = 86_400_000;

let world: World;
beforeEach(async () => {
  world = await createWorld();
  // These stories tell of one day: none begins in its last seconds.
  const left = DAY - (Date.now() % DAY);
  if (left < 30_000) await world.passes(Date.now() + left + 50);
});
afterEach(async () => {
  await world.check();
  await world.close();
});

const work = workSchema.parse({ job: { kind: "function", name: "test.noop" } });
const ask = (tenantId = world.tenantId, key?: string) =>
  runAdHoc(world.authority, {
    tenantId,
    actor: "test",
    work,
    payload: {},
    ...(key === undefined ? {} : { requestKey: { key, bodySha256: Buffer.alloc(32, 7) } }),
  });
const kinds = (outcomes: readonly { kind: string }[]) =>
  Object.fromEntries([...Map.groupBy(outcomes, (one) => one.kind)].map(([kind, all]) => [kind, all.length]));
const requested = async (tenantId = world.tenantId) =>
  (await world.admin.query("select requested_runs from tenant_day where tenant_id = $1", [tenantId])).rows[0]
    ?.requested_runs;
const now = (scheduleId: Uuid) => runNow(world.authority, { tenantId: world.tenantId, actor: "test", scheduleId });

describe("runs that wait", () => {
  it("may be so many when another is asked for, however many ask at once", async () => {
    await setQuotas(world, world.tenantId, { queuedRuns: 5 });
    const outcomes = await Promise.all(Array.from({ length: 40 }, () => ask()));
    expect(kinds(outcomes)).toEqual({ created: 5, quota: 35 });
    expect(outcomes.find((one) => one.kind === "quota")).toMatchObject({
      excess: { quota: "queuedRuns", limit: 5, used: 5, retryAfterMs: 5_000 },
    });
  });

  it("make room as they start", async () => {
    await setQuotas(world, world.tenantId, { queuedRuns: 1 });
    await ask();
    expect(await ask()).toMatchObject({ kind: "quota" });
    expect(await world.claimAll()).toHaveLength(1);
    expect(await ask()).toMatchObject({ kind: "created" });
  });

  it("count where they wait for their turn; of another tenant they do not", async () => {
    const other = await world.newTenant("other");
    await setQuotas(world, world.tenantId, { queuedRuns: 2 });
    const scheduleId = await world.newSchedule();
    expect(await now(scheduleId)).toMatchObject({ state: "queued" });
    expect(await now(scheduleId)).toMatchObject({ state: "blocked" });
    expect(await now(scheduleId)).toMatchObject({ kind: "quota" });
    expect(await ask(other)).toMatchObject({ kind: "created" });
  });

  it("that are due by schedule are made, however many wait: nothing due is forgotten", async () => {
    await setQuotas(world, world.tenantId, { queuedRuns: 0, requestedRunsPerDay: 0 });
    const scheduleId = await world.newSchedule(allow());
    for (const ago of [50_000, 40_000, 30_000]) await bear(world, scheduleId, ago);
    expect(await states(world, scheduleId)).toEqual(["queued", "queued", "queued"]);
    expect(await now(scheduleId)).toMatchObject({ kind: "quota", excess: { quota: "queuedRuns", limit: 0, used: 0 } });
    expect(await world.claimAll()).toHaveLength(3);
  });
});

describe("runs that were asked for on a UTC day", () => {
  it("may be so many, however many ask at once; those of schedules do not count", async () => {
    await setQuotas(world, world.tenantId, { requestedRunsPerDay: 5 });
    const scheduleId = await world.newSchedule(allow());
    await bear(world, scheduleId, 30_000);
    const outcomes = await Promise.all(Array.from({ length: 30 }, (_, k) => (k % 2 === 0 ? ask() : now(scheduleId))));
    expect(kinds(outcomes)).toEqual({ created: 5, quota: 25 });
    expect(await requested()).toBe(5);
  });

  it("are refused until the day is over, and then begin anew", async () => {
    await setQuotas(world, world.tenantId, { requestedRunsPerDay: 2 });
    await ask();
    await ask();
    const leftBefore = DAY - (Date.now() % DAY);
    const refused = await ask();
    const leftAfter = DAY - (Date.now() % DAY);
    if (refused.kind !== "quota") throw new Error(refused.kind);
    expect(refused.excess).toMatchObject({ quota: "requestedRunsPerDay", limit: 2, used: 2 });
    // The database is on this machine: its clock is ours.
    expect(refused.excess.retryAfterMs).toBeLessThanOrEqual(leftBefore + 1);
    expect(refused.excess.retryAfterMs).toBeGreaterThanOrEqual(leftAfter - 1);
    await world.admin.query("update tenant_day set day = day - 1");
    expect(await ask()).toMatchObject({ kind: "created" });
    expect(await requested()).toBe(1);
  });

  it("are not counted twice where a request is repeated, and not at all where it is refused", async () => {
    await setQuotas(world, world.tenantId, { requestedRunsPerDay: 1 });
    expect(await ask(world.tenantId, "run:a")).toMatchObject({ kind: "created" });
    expect(await ask(world.tenantId, "run:a")).toMatchObject({ kind: "repeated" });
    expect(await ask(world.tenantId, "run:b")).toMatchObject({ kind: "quota" });
    expect(await requested()).toBe(1);
    const scheduleId = await world.newSchedule({ overlap: { policy: "skip" } });
    await setQuotas(world, world.tenantId, { requestedRunsPerDay: 10 });
    await now(scheduleId);
    expect(await now(scheduleId)).toEqual({ kind: "overlap" });
    expect(await requested()).toBe(2);
  });

  it("are those of replays, too", async () => {
    const { runId } = await givenUp(world);
    const { runId: second } = await givenUp(world);
    await setQuotas(world, world.tenantId, { requestedRunsPerDay: 1 });
    expect(await replay(world, runId)).toMatchObject({ kind: "replayed" });
    expect(await replay(world, second)).toMatchObject({ kind: "quota", excess: { quota: "requestedRunsPerDay" } });
    // What stands against it for good is said first.
    expect(await replay(world, runId)).toMatchObject({ kind: "not-failed" });
    expect(await requested()).toBe(1);
  });
});

describe("an operation that makes runs", () => {
  it("a backfill does not begin without room, waits for it on the way, and makes no run more", async () => {
    const { scheduleId, firstAt } = await missed(world, 6, allow());
    const range = [firstAt, firstAt + 6 * MINUTE] as const;
    await setQuotas(world, world.tenantId, { requestedRunsPerDay: 0 });
    const wanted = {
      tenantId: world.tenantId,
      scheduleId,
      fromAt: range[0],
      toAt: range[1],
      policy: "missing",
    } as const;
    const who = { pacePerSecond: 10, actor: "test", reason: null, total: null };
    expect(await createBackfill(world.authority, { ...wanted, ...who })).toMatchObject({ kind: "quota" });

    await setQuotas(world, world.tenantId, { requestedRunsPerDay: 4 });
    const id = await begin(world, scheduleId, ...range);
    expect(await step(world, id)).toBe("stepped");
    expect(await operationOf(world, id)).toMatchObject({ done: 4, state: "working" });
    await hurry(world, id);
    expect(await step(world, id)).toBe("stepped");
    expect(await operationOf(world, id)).toMatchObject({
      done: 4,
      message: "it waits for the tenant's quota requestedRunsPerDay: 4 of 4 are used",
    });
    await world.admin.query("update tenant_day set day = day - 1");
    expect(await finish(world, id)).toBe("ended");
    expect(await operationOf(world, id)).toMatchObject({ done: 6, state: "done", message: null });
    expect(await requested()).toBe(2);
  });

  it("ends where its last run took up the quota, and where it has none to make", async () => {
    for (let n = 0; n < 2; n++) await givenUp(world);
    await setQuotas(world, world.tenantId, { requestedRunsPerDay: 2 });
    const replaying = await beginLetters(world, "replay");
    expect(await step(world, replaying)).toBe("stepped");
    await hurry(world, replaying);
    expect(await step(world, replaying)).toBe("ended");
    expect(await operationOf(world, replaying)).toMatchObject({ done: 2, state: "done", message: null });

    const { scheduleId, firstAt } = await missed(world, 3, allow());
    const range = [firstAt, firstAt + 3 * MINUTE] as const;
    await setQuotas(world, world.tenantId, {});
    await finish(world, await begin(world, scheduleId, ...range));
    const again = await begin(world, scheduleId, ...range);
    await setQuotas(world, world.tenantId, { requestedRunsPerDay: 0 });
    expect(await step(world, again)).toBe("ended");
    expect(await operationOf(world, again)).toMatchObject({ done: 0, state: "done", message: null });
  });

  it("a replay of many is held to the same", async () => {
    for (let n = 0; n < 3; n++) await givenUp(world);
    await setQuotas(world, world.tenantId, { queuedRuns: 0 });
    const request = { tenantId: world.tenantId, actor: "anna", reason: null, total: null, filter: {} };
    expect(
      await createLettersOperation(world.authority, { ...request, kind: "replay", pacePerSecond: 10 }),
    ).toMatchObject({ kind: "quota" });
    // Dismissing makes no run.
    await beginLetters(world, "dismiss", { fingerprint: "none" } as never);
    await setQuotas(world, world.tenantId, { queuedRuns: 2 });
    const id = await beginLetters(world, "replay");
    await step(world, id);
    await hurry(world, id);
    await step(world, id);
    expect(await operationOf(world, id)).toMatchObject({
      done: 2,
      message: "it waits for the tenant's quota queuedRuns: 2 of 2 are used",
    });
    expect(await world.claimAll()).toHaveLength(2);
    expect(await finish(world, id)).toBe("ended");
    expect(await operationOf(world, id)).toMatchObject({ done: 3 });
  });
});
