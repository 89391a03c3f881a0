import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import type { Authority } from "../../src/authority/authority.ts";
import { createBackfill } from "../../src/authority/operations/backfill/create.ts";
import { cancelOperation } from "../../src/authority/operations/cancel-operation.ts";
import { createLettersOperation } from "../../src/authority/operations/dead-letters/create.ts";
import type { TestFaultPoints } from "../../src/kernel/faults.ts";
import { createOperationsDriver } from "../../src/loops/operations.ts";
import { begin, finish, missed, operationOf, step } from "../authority/operations/pasts.ts";
import { history, MINUTE, states } from "../authority/scenes.ts";
import { createWorld, type World } from "../support/world.ts";

describe("long operations", () => {
  let world: World;
  beforeAll(async () => {
    world = await createWorld();
  });
  afterEach(async () => {
    await world.check();
    await world.admin.query(
      "update operation set state = 'canceled', finished_at = clock_timestamp() where state in ('pending', 'working')",
    );
  });
  afterAll(() => world.close());

  const pass = (authority: Authority = world.authority) =>
    createOperationsDriver({ authority }).pass(new AbortController().signal);
  const hurry = () => world.admin.query("update operation set next_step_at = clock_timestamp()");
  const cancel = (operationId: string) =>
    cancelOperation(world.authority, { tenantId: world.tenantId, actor: "test", operationId });
  const audits = async (subject: string) =>
    (await world.admin.query("select action from audit_event where subject = $1 order by id", [subject])).rows.map(
      (row) => row.action,
    );

  it("are found and gone on with, step by step, until they are done", async () => {
    const { scheduleId, firstAt } = await missed(world, 9);
    const id = await begin(world, scheduleId, firstAt, firstAt + 9 * MINUTE, { pacePerSecond: 4 });
    expect(await pass()).toMatchObject({ did: 1, more: false, nextAt: expect.any(Number) });
    expect(await operationOf(world, id)).toMatchObject({ state: "working", done: 4 });
    await hurry();
    await pass();
    await hurry();
    expect(await pass()).toMatchObject({ did: 1, more: false, nextAt: undefined });
    expect(await operationOf(world, id)).toMatchObject({ state: "done", done: 9, nextStepAt: null });
    expect(await audits(id)).toEqual(["operation.end"]);
    expect(await audits(scheduleId)).toContain("schedule.backfill");
  });

  it("keep their pace on the authority's clock: what was done must have had its time", async () => {
    const { scheduleId, firstAt } = await missed(world, 9);
    const id = await begin(world, scheduleId, firstAt, firstAt + 9 * MINUTE, { pacePerSecond: 2 });
    await step(world, id);
    const { nextStepAt, updatedAt, done } = await operationOf(world, id);
    expect(done).toBe(2);
    expect(nextStepAt! - updatedAt).toBeCloseTo(1_000, 0);
    expect(await step(world, id)).toBe("missed");
    expect(await operationOf(world, id)).toMatchObject({ done: 2 });
  });

  it("of many tenants take turns: one tenant's many steps never keep another's one waiting", async () => {
    const other = await world.newTenant("another");
    const { scheduleId, firstAt } = await missed(world, 9);
    const theirs = await missed(world, 9, { tenantId: other } as never);
    const mine: string[] = [];
    for (let n = 0; n < 20; n++) {
      mine.push(await begin(world, scheduleId, firstAt + (n % 9) * MINUTE, firstAt + ((n % 9) + 1) * MINUTE));
    }
    const one = await begin(world, theirs.scheduleId, theirs.firstAt, theirs.firstAt + MINUTE, { tenantId: other });
    expect(await pass()).toMatchObject({ did: 2, more: true });
    const { rows } = await world.admin.query("select id from operation where state = 'done' and id = any($1::uuid[])", [
      [...mine, one],
    ]);
    expect(rows.map((row) => row.id)).toContain(one);
    expect(rows).toHaveLength(2);
  });

  it("whose driver dies before the commit have done nothing; the next one does it, once", async () => {
    const { scheduleId, firstAt } = await missed(world, 9);
    const id = await begin(world, scheduleId, firstAt, firstAt + 9 * MINUTE, { pacePerSecond: 5 });
    const held = world.faults.hold("operation:step-written");
    const dying = step(world, id);
    await held.arrived;
    await world.admin.query(
      `select pg_terminate_backend(pid) from pg_stat_activity
        where datname = current_database() and application_name = 'test' and state = 'idle in transaction'`,
    );
    held.release();
    await dying.catch(() => undefined);
    expect(await states(world, scheduleId)).toEqual([]);
    expect(await operationOf(world, id)).toMatchObject({ done: 0 });
    expect(await finish(world, id, world.another())).toBe("ended");
    const { done, tally } = await operationOf(world, id);
    expect({ done, tally }).toEqual({ done: 9, tally: { "skipped-range": 9 } });
    expect(await states(world, scheduleId)).toHaveLength(9);
  });

  it("whose driver dies after the commit have done it; the next one goes on from there", async () => {
    const { scheduleId, firstAt } = await missed(world, 9);
    const id = await begin(world, scheduleId, firstAt, firstAt + 9 * MINUTE, { pacePerSecond: 5 });
    world.faults.once("operation:step-committed", () => new Promise(() => {}));
    void step(world, id);
    while ((await operationOf(world, id)).done < 5) await new Promise(setImmediate);
    expect(await finish(world, id, world.another())).toBe("ended");
    const { done, tally } = await operationOf(world, id);
    expect({ done, tally }).toEqual({ done: 9, tally: { "skipped-range": 9 } });
    expect(await states(world, scheduleId)).toHaveLength(9);
  });

  it("pass over an item that fails by itself, and say so; its neighbours are done", async () => {
    const { scheduleId, firstAt } = await missed(world, 39);
    const bad = new Date(firstAt + 17 * MINUTE);
    await world.admin.query(`alter table run add constraint refused check (schedule_id <> '${scheduleId}' or
      scheduled_at <> '${bad.toISOString()}') not valid`);
    try {
      const id = await begin(world, scheduleId, firstAt, firstAt + 39 * MINUTE);
      expect(await finish(world, id)).toBe("ended");
      expect(await operationOf(world, id)).toMatchObject({
        state: "done",
        done: 38,
        failed: 1,
        message: expect.stringContaining('check constraint "refused"'),
      });
      const at = (await history(world, scheduleId)).map((run) => run.scheduled_at.getTime());
      expect(at).toHaveLength(38);
      expect(at).not.toContain(bad.getTime());
    } finally {
      await world.admin.query("alter table run drop constraint refused");
    }
  });

  it("of which nothing works are given up, not gone on with for ever", async () => {
    const { scheduleId, firstAt } = await missed(world, 200);
    await world.admin.query(`alter table run add constraint refused check (schedule_id <> '${scheduleId}') not valid`);
    try {
      const id = await begin(world, scheduleId, firstAt, firstAt + 200 * MINUTE);
      expect(await finish(world, id)).toBe("failed");
      expect(await operationOf(world, id)).toMatchObject({
        state: "failed",
        done: 0,
        failed: 100,
        message: expect.stringMatching(/^100 items could not be done; .*refused/),
      });
    } finally {
      await world.admin.query("alter table run drop constraint refused");
    }
  });

  it("that fail again and again pause longer and longer, then are given up with the reason; others go on", async () => {
    const { scheduleId, firstAt } = await missed(world, 9);
    const id = await begin(world, scheduleId, firstAt, firstAt + 9 * MINUTE);
    const sound = await missed(world, 9);
    const pauses: number[] = [];
    for (let tries = 1; tries <= 8; tries++) {
      world.faults.once("backfill:locked", () => {
        throw new Error("out of luck");
      });
      expect(await step(world, id)).toBe(tries < 8 ? "troubled" : "failed");
      const { nextStepAt, updatedAt } = await operationOf(world, id);
      if (nextStepAt !== null) pauses.push(Math.round((nextStepAt - updatedAt) / 1_000));
      await hurry();
    }
    expect(pauses).toEqual([1, 2, 4, 8, 16, 32, 60]);
    expect(await operationOf(world, id)).toMatchObject({ state: "failed", message: "out of luck", done: 0 });
    const other = await begin(world, sound.scheduleId, sound.firstAt, sound.firstAt + MINUTE);
    await pass();
    expect(await operationOf(world, other)).toMatchObject({ state: "done" });
  });

  it("wait for a lock that a stranger keeps, however often that takes too long", async () => {
    const patient = world.another({ lockTimeoutMs: 20 });
    const { scheduleId, firstAt } = await missed(world, 9);
    const id = await begin(world, scheduleId, firstAt, firstAt + 2 * MINUTE);
    const stranger = await world.stranger();
    await stranger.query("select from schedule_cursor where schedule_id = $1 for update", [scheduleId]);
    for (let tries = 1; tries <= 10; tries++) {
      expect(await step(world, id, patient)).toBe("troubled");
      await hurry();
    }
    await stranger.commit();
    expect(await finish(world, id, patient)).toBe("ended");
    expect(await operationOf(world, id)).toMatchObject({ done: 2, message: null });
  });

  it("are canceled between two steps; what was done stays done", async () => {
    const { scheduleId, firstAt } = await missed(world, 9);
    const id = await begin(world, scheduleId, firstAt, firstAt + 9 * MINUTE, { pacePerSecond: 3 });
    const held = world.faults.hold("operation:step-written");
    const stepping = step(world, id);
    await held.arrived;
    const canceling = cancel(id);
    await world.lockWaits();
    held.release();
    expect(await stepping).toBe("stepped");
    expect(await canceling).toMatchObject({ kind: "canceled", operation: { state: "canceled", done: 3 } });
    await hurry();
    expect(await step(world, id)).toBe("missed");
    expect(await pass()).toMatchObject({ did: 0 });
    expect(await states(world, scheduleId)).toHaveLength(3);
    expect(await cancel(id)).toMatchObject({ kind: "repeated" });
    expect(await audits(id)).toEqual(["operation.cancel"]);
    const done = await begin(world, scheduleId, firstAt, firstAt + MINUTE);
    await finish(world, done);
    expect(await cancel(done)).toMatchObject({ kind: "ended", operation: { state: "done" } });
    const stranger = await world.newTenant("a stranger to operations");
    expect(await cancelOperation(world.authority, { tenantId: stranger, actor: "test", operationId: done })).toEqual({
      kind: "not-found",
    });
  });

  it("step / step: while one driver takes a step, another passes it by at once, and takes none of it", async () => {
    const { scheduleId, firstAt } = await missed(world, 9);
    const id = await begin(world, scheduleId, firstAt, firstAt + 9 * MINUTE, { pacePerSecond: 3 });
    const held = world.faults.hold("operation:locked");
    const first = step(world, id);
    await held.arrived;
    expect(await step(world, id, world.another())).toBe("missed");
    held.release();
    expect(await first).toBe("stepped");
    expect(await operationOf(world, id)).toMatchObject({ done: 3 });
    expect(await states(world, scheduleId)).toHaveLength(3);
  });

  it("step / cancel: who cancels waits for a step however long it takes, and looks again", async () => {
    const { scheduleId, firstAt } = await missed(world, 9);
    const id = await begin(world, scheduleId, firstAt, firstAt + 9 * MINUTE, { pacePerSecond: 3 });
    const held = world.faults.hold("operation:step-written");
    const stepping = step(world, id);
    await held.arrived;
    const impatient = world.another({ lockTimeoutMs: 20 });
    let isOver = false;
    const canceling = cancelOperation(impatient, {
      tenantId: world.tenantId,
      actor: "test",
      operationId: id,
    }).finally(() => {
      isOver = true;
    });
    const looks = async () =>
      (await impatient.metrics.verbSeconds.get()).values.find((one) => one.metricName?.endsWith("_count"))?.value ?? 0;
    while (!isOver && (await looks()) < 2) await new Promise(setImmediate);
    held.release();
    expect(await stepping).toBe("stepped");
    expect(await canceling).toMatchObject({ kind: "canceled", operation: { done: 3 } });
  });

  it("that another driver has gone on with meanwhile are not troubled by an older failure", async () => {
    const { scheduleId, firstAt } = await missed(world, 9);
    const id = await begin(world, scheduleId, firstAt, firstAt + 9 * MINUTE);
    const other = world.another();
    const unlucky = (authority: Authority) =>
      (authority.faults as TestFaultPoints).once("backfill:locked", () => {
        throw new Error("out of luck");
      });
    // Between its step's failure and its record of it, this one stands still while the other one fails, too.
    const slow: Authority = Object.create(other, {
      transact: {
        value: async (verb: string, work: Parameters<Authority["transact"]>[1]) => {
          if (verb === "operation-trouble") {
            unlucky(world.authority);
            expect(await step(world, id)).toBe("troubled");
            await hurry();
          }
          return other.transact(verb, work);
        },
      },
    });
    unlucky(other);
    expect(await step(world, id, slow)).toBe("missed");
    const { rows } = await world.admin.query("select tries from operation where id = $1", [id]);
    expect(rows).toEqual([{ tries: 1 }]);
  });

  it("are so many of one tenant at most, of whatever kind; one more is refused, and another tenant's is not", async () => {
    const { scheduleId, firstAt } = await missed(world, 9);
    const other = await world.newTenant("few operations");
    await world.admin.query(
      `insert into operation (id, tenant_id, kind, arguments, actor, created_at, updated_at, next_step_at)
       select gen_random_uuid(), $1, 'of-tomorrow', '{}', 'test', now(), now(), now() from generate_series(1, 100)`,
      [world.tenantId],
    );
    const past = { scheduleId, fromAt: firstAt, toAt: firstAt + MINUTE, policy: "missing", pacePerSecond: 1 } as const;
    const who = { tenantId: world.tenantId, actor: "test", reason: null, total: null };
    const letters = { kind: "replay", filter: {}, pacePerSecond: 1 } as const;
    expect(await createBackfill(world.authority, { ...who, ...past })).toEqual({ kind: "too-many" });
    expect(await createLettersOperation(world.authority, { ...who, ...letters })).toEqual({ kind: "too-many" });
    expect(await createLettersOperation(world.authority, { ...who, ...letters, tenantId: other })).toMatchObject({
      kind: "created",
    });
    await world.admin.query("update operation set state = 'done', finished_at = now() where id = any($1)", [
      (await world.admin.query("select id from operation where kind = 'of-tomorrow' limit 1")).rows.map(
        (row) => row.id,
      ),
    ]);
    expect(await createBackfill(world.authority, { ...who, ...past })).toMatchObject({ kind: "created" });
  });

  it("of a kind that this program does not know are left to one that does", async () => {
    const { scheduleId, firstAt } = await missed(world, 9);
    const id = await begin(world, scheduleId, firstAt, firstAt + MINUTE);
    await world.admin.query("update operation set kind = 'of-tomorrow' where id = $1", [id]);
    expect(await pass()).toMatchObject({ did: 0, more: false });
    expect(await operationOf(world, id)).toMatchObject({ state: "pending" });
  });
});
