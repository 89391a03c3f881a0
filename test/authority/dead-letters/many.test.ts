import { createHash } from "node:crypto";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { cancelOperation } from "../../../src/authority/operations/cancel-operation.ts";
import { createLettersOperation } from "../../../src/authority/operations/dead-letters/create.ts";
import { estimateLetters } from "../../../src/authority/operations/dead-letters/estimate.ts";
import { deleteSchedule } from "../../../src/authority/schedules/delete-schedule.ts";
import type { Uuid } from "../../../src/kernel/ids.ts";
import { groupLetters, listLetters } from "../../../src/store/reads/dead-letters.ts";
import { createWorld, type World } from "../../support/world.ts";
import { finish, hurry, operationOf, step } from "../operations/pasts.ts";
import { allow, failForGood, start, stateOf, states } from "../scenes.ts";
import { begin, deadlocks, decisionsOf, dismiss, givenUp, giveUp, letterOf, replay } from "./letters.ts";

describe("many dead letters", () => {
  let world: World;
  beforeAll(async () => {
    world = await createWorld();
  });
  afterEach(async () => {
    await world.check();
    expect(await deadlocks(world.authority)).toBe(0);
    // Each story counts its own letters.
    await world.admin.query("delete from dead_letter");
    await world.admin.query(
      "update operation set state = 'canceled', finished_at = clock_timestamp() where state in ('pending', 'working')",
    );
  });
  afterAll(() => world.close());

  /** A schedule without an overlap limit and n runs that were given up, oldest failure first. */
  async function several(n: number, change: Parameters<World["newSchedule"]>[0] = {}) {
    const scheduleId = await world.newSchedule({ ...allow(), ...change });
    const runs: Uuid[] = [];
    for (let k = 0; k < n; k++) runs.push((await giveUp(world, scheduleId, 60_000 - 2_000 * k)).runId);
    return { scheduleId, runs };
  }

  it("are replayed oldest failure first, at a pace, and each is recorded with the operation that did it", async () => {
    const { scheduleId, runs } = await several(5);
    const id = await begin(world, "replay", {}, 2);
    expect(await step(world, id)).toBe("stepped");
    expect(await states(world, scheduleId)).toEqual(["queued", "queued", "failed", "failed", "failed"]);
    expect(await step(world, id)).toBe("missed");
    expect(await finish(world, id)).toBe("ended");
    expect(await operationOf(world, id)).toMatchObject({ state: "done", done: 5, failed: 0, tally: { replayed: 5 } });
    for (const runId of runs) {
      expect(await decisionsOf(world, runId)).toMatchObject([
        { resolution: "replayed", resolved_by: "anna", reason: "mended", operation_id: id },
      ]);
    }
  });

  it("of a schedule that takes one at a time wait behind one another, never more than the pace", async () => {
    const { scheduleId, runs } = await several(5, { overlap: { policy: "forbid" } });
    const id = await begin(world, "replay", { scheduleId }, 2);
    await step(world, id);
    await hurry(world, id);
    await step(world, id);
    expect(await states(world, scheduleId)).toEqual(["queued", "blocked", "blocked", "failed", "failed"]);
    await hurry(world, id);
    expect(await step(world, id)).toBe("stepped");
    expect(await operationOf(world, id)).toMatchObject({ done: 3, message: expect.stringMatching(/^it waits while/) });
    for (const runId of runs.slice(0, 2)) await world.complete(await start(world, runId));
    expect(await finish(world, id)).toBe("ended");
    expect(await states(world, scheduleId)).toEqual(["succeeded", "succeeded", "queued", "blocked", "blocked"]);
  });

  it("that do not fit the filter are left alone", async () => {
    const wanted = await several(2);
    const others = await several(2, { class: "long" } as never);
    const { fingerprint } = await letterOf(world, wanted.runs[0]!);
    const firstAt = (await letterOf(world, wanted.runs[1]!)).created_at.getTime();
    expect(await finish(world, await begin(world, "replay", { class: "short", toAt: firstAt }))).toBe("ended");
    expect(await states(world, wanted.scheduleId)).toEqual(["queued", "failed"]);
    await finish(
      world,
      await begin(world, "replay", { scheduleId: wanted.scheduleId, fingerprint, reason: "permanent" }),
    );
    expect(await states(world, wanted.scheduleId)).toEqual(["queued", "queued"]);
    await finish(world, await begin(world, "replay", { reason: "crash-loop" }));
    await finish(world, await begin(world, "replay", { fromAt: Date.now() + 60_000 }));
    expect(await states(world, others.scheduleId)).toEqual(["failed", "failed"]);
  });

  it("of a stretch of failures are those from its first instant on, and before its last", async () => {
    const { scheduleId } = await several(1);
    const moved =
      "update dead_letter set created_at = date_trunc('ms', created_at - interval '1 minute') returning created_at";
    const at = ((await world.admin.query(moved)).rows[0].created_at as Date).getTime();
    const replayed = async (fromAt: number, toAt: number) => {
      await finish(world, await begin(world, "replay", { fromAt, toAt }));
      return states(world, scheduleId);
    };
    expect(await replayed(at - 60_000, at)).toEqual(["failed"]);
    expect(await replayed(at + 1, at + 60_000)).toEqual(["failed"]);
    expect(await replayed(at, at + 1)).toEqual(["queued"]);
  });

  it("dismiss / replay of many: what somebody dismisses while the step waits for its letter stays as it is", async () => {
    const { scheduleId, runs } = await several(2);
    const id = await begin(world, "replay");
    const held = world.faults.hold("dismiss:locked");
    const dismissed = dismiss(world, runs[0]!);
    await held.arrived;
    const stepped = step(world, id, world.another());
    await world.lockWaits();
    held.release();
    expect(await dismissed).toEqual({ kind: "dismissed" });
    expect(await stepped).toBe("ended");
    expect(await operationOf(world, id)).toMatchObject({ done: 1, tally: { replayed: 1, "not-failed": 1 } });
    expect(await states(world, scheduleId)).toEqual(["failed", "queued"]);
    expect(await decisionsOf(world, runs[0]!)).toMatchObject([{ resolution: "dismissed" }]);
  });

  it("that come later, or come back, are not part of it", async () => {
    const { scheduleId, runs } = await several(2);
    const id = await begin(world, "replay", {}, 1);
    await step(world, id);
    await failForGood(world, await start(world, runs[0]!));
    const late = await giveUp(world, scheduleId, 20_000);
    expect(await finish(world, id)).toBe("ended");
    expect(await operationOf(world, id)).toMatchObject({ done: 2, tally: { replayed: 2 } });
    expect([await stateOf(world, runs[0]!), await stateOf(world, late.runId)]).toEqual(["failed", "failed"]);
    expect(await decisionsOf(world, runs[0]!)).toHaveLength(1);
  });

  it("count what cannot be replayed by why, and go on", async () => {
    const { runs } = await several(3);
    const gone = await givenUp(world);
    await deleteSchedule(world.authority, { tenantId: world.tenantId, actor: "test", scheduleId: gone.scheduleId });
    const id = await begin(world, "replay", {}, 1);
    await step(world, id);
    // Others decide meanwhile: what is resolved is not found any more.
    await dismiss(world, runs[1]!);
    await replay(world, runs[2]!);
    expect(await finish(world, id)).toBe("ended");
    expect(await operationOf(world, id)).toMatchObject({
      done: 1,
      failed: 0,
      tally: { replayed: 1, "schedule-deleted": 1 },
    });
    expect(await stateOf(world, gone.runId)).toBe("failed");
  });

  it("whose driver dies in the middle of a step have each been replayed once in the end", async () => {
    const { scheduleId, runs } = await several(6);
    const id = await begin(world, "replay", {}, 3);
    const held = world.faults.hold("operation:step-written");
    const dying = step(world, id);
    await held.arrived;
    await world.admin.query(
      `select pg_terminate_backend(pid) from pg_stat_activity
        where datname = current_database() and application_name = 'test' and state = 'idle in transaction'`,
    );
    held.release();
    await dying.catch(() => undefined);
    expect(await states(world, scheduleId)).toEqual(Array(6).fill("failed"));
    // The next one dies after the commit, before it can say so.
    world.faults.once("operation:step-committed", () => new Promise(() => {}));
    await hurry(world, id);
    void step(world, id);
    while ((await operationOf(world, id)).done < 3) await new Promise(setImmediate);
    expect(await finish(world, id, world.another())).toBe("ended");
    expect(await operationOf(world, id)).toMatchObject({ done: 6, failed: 0, tally: { replayed: 6 } });
    for (const runId of runs) expect(await decisionsOf(world, runId)).toHaveLength(1);
    expect(await states(world, scheduleId)).toEqual(Array(6).fill("queued"));
  });

  it("with a poisoned one among them: it is passed over and told, its neighbours are replayed", async () => {
    const { runs } = await several(20);
    const bad = runs[11]!;
    await world.admin.query(`alter table live_run add constraint refused check (id <> '${bad}') not valid`);
    try {
      const id = await begin(world, "replay");
      expect(await finish(world, id)).toBe("ended");
      expect(await operationOf(world, id)).toMatchObject({
        done: 19,
        failed: 1,
        tally: { replayed: 19 },
        message: expect.stringContaining('check constraint "refused"'),
      });
      expect(await letterOf(world, bad)).toMatchObject({ resolved_at: null });
      expect(await stateOf(world, bad)).toBe("failed");
    } finally {
      await world.admin.query("alter table live_run drop constraint refused");
    }
  });

  it("with a run that somebody is at: the step does those before it, and then looks again", async () => {
    const { runs } = await several(3);
    const id = await begin(world, "replay");
    const stranger = await world.stranger();
    await stranger.query("select 1 from run where id = $1 for update", [runs[1]]);
    expect(await step(world, id)).toBe("stepped");
    expect(await operationOf(world, id)).toMatchObject({ done: 1 });
    await hurry(world, id);
    expect(await step(world, id)).toBe("postponed");
    await stranger.commit();
    expect(await finish(world, id)).toBe("ended");
    expect(await operationOf(world, id)).toMatchObject({ done: 3 });
  });

  it("can be stopped between two steps", async () => {
    const { scheduleId } = await several(3);
    const operationId = await begin(world, "replay", {}, 1);
    await step(world, operationId);
    await cancelOperation(world.authority, { tenantId: world.tenantId, actor: "test", operationId });
    await hurry(world, operationId);
    expect(await step(world, operationId)).toBe("missed");
    expect(await states(world, scheduleId)).toEqual(["queued", "failed", "failed"]);
  });

  it("are dismissed the same way: nothing runs", async () => {
    const { scheduleId, runs } = await several(3);
    const id = await begin(world, "dismiss");
    expect(await finish(world, id)).toBe("ended");
    expect(await operationOf(world, id)).toMatchObject({ kind: "dismiss", done: 3, tally: { dismissed: 3 } });
    expect(await states(world, scheduleId)).toEqual(["failed", "failed", "failed"]);
    expect(await decisionsOf(world, runs[0]!)).toMatchObject([
      { resolution: "dismissed", reason: "mended", operation_id: id },
    ]);
  });

  it("asked for twice with one key are one operation; another tenant's are not there", async () => {
    await several(1);
    const foreign = await world.newTenant("somebody else");
    const requestKey = { key: "dead-letters:k", bodySha256: createHash("sha256").update("{}").digest() };
    const wanted = { actor: "anna", kind: "replay", filter: {}, reason: null, pacePerSecond: 10, total: null } as const;
    const ask = (tenantId: Uuid) => createLettersOperation(world.authority, { ...wanted, tenantId, requestKey });
    const made = [await ask(world.tenantId), await ask(world.tenantId), await ask(foreign)];
    expect(made.map((one) => one.kind)).toEqual(["created", "repeated", "created"]);
    const other = { ...requestKey, bodySha256: createHash("sha256").update("other").digest() };
    expect(
      await createLettersOperation(world.authority, { ...wanted, tenantId: world.tenantId, requestKey: other }),
    ).toEqual({ kind: "key-reused" });
    const theirs = (made[2] as { operation: { id: Uuid } }).operation.id;
    await finish(world, theirs);
    const { rows } = await world.admin.query("select done from operation where id = $1", [theirs]);
    expect(rows).toEqual([{ done: 0n }]);
  });

  it("that fail while the request waits for its key are part of it: what is meant is what is open when it begins", async () => {
    const requestKey = { key: "dead-letters:late", bodySha256: createHash("sha256").update("{}").digest() };
    const stranger = await world.stranger();
    await stranger.query("insert into request_key (scope, key, request_sha256, subject) values ($1, $2, $3, $1)", [
      world.tenantId,
      requestKey.key,
      requestKey.bodySha256,
    ]);
    const wanted = { actor: "anna", kind: "replay", filter: {}, reason: null, pacePerSecond: 10, total: null } as const;
    const making = createLettersOperation(world.authority, { ...wanted, tenantId: world.tenantId, requestKey });
    await world.lockWaits();
    const { scheduleId } = await several(1);
    await stranger.rollback();
    const made = await making;
    expect(made.kind).toBe("created");
    await finish(world, (made as { operation: { id: Uuid } }).operation.id);
    expect(await states(world, scheduleId)).toEqual(["queued"]);
  });

  it("are estimated, listed and grouped without being changed", async () => {
    const one = await several(2);
    const two = await several(1, { class: "long" } as never);
    await world.admin.query(
      "update dead_letter set fingerprint = 'other', error_message = 'odd', error_code = 'odd' where run_id = $1",
      [two.runs[0]],
    );
    await dismiss(world, (await giveUp(world, two.scheduleId, 10_000)).runId);
    const gone = await givenUp(world);
    await deleteSchedule(world.authority, { tenantId: world.tenantId, actor: "test", scheduleId: gone.scheduleId });
    const { tenantId, db } = world;
    expect(await estimateLetters(world.authority, tenantId, "replay", {})).toMatchObject({
      letters: 4,
      capped: false,
      tally: { replayed: 3, "schedule-deleted": 1 },
      sample: [{ runId: one.runs[0] }, { runId: one.runs[1] }, { runId: two.runs[0] }, { runId: gone.runId }],
    });
    const { groups, capped } = await groupLetters(db, tenantId, {});
    expect(capped).toBe(false);
    expect(groups).toMatchObject([
      { count: 3, schedules: 2, runId: gone.runId, error: { code: "broken", message: "no use" } },
      { fingerprint: "other", count: 1, error: { code: "odd", message: "odd" } },
    ]);
    const list = async (page: object) =>
      (await listLetters(db, tenantId, { state: "open", limit: 10, ...page })).map((row) => row.runId);
    expect(await list({})).toEqual([gone.runId, two.runs[0], one.runs[1], one.runs[0]]);
    expect(await list({ state: "any" })).toHaveLength(5);
    expect(await list({ state: "dismissed", scheduleId: two.scheduleId })).toHaveLength(1);
    expect(await list({ class: "long" })).toEqual([two.runs[0]]);
    expect(await list({ fingerprint: "other", scheduleId: one.scheduleId })).toEqual([]);
    expect(await listLetters(db, await world.newTenant("nobody"), { state: "any", limit: 10 })).toEqual([]);
  });

  it("of one instant of failure are paged without a gap or a repeat", async () => {
    const { runs } = await several(5);
    await world.admin.query(
      "update dead_letter set created_at = date_trunc('second', clock_timestamp()) + interval '123456 us'",
    );
    const seen: Uuid[] = [];
    for (let after: { failedAt: number; runId: Uuid } | undefined; ; ) {
      const page = await listLetters(world.db, world.tenantId, {
        state: "open",
        limit: 2,
        ...(after === undefined ? {} : { after }),
      });
      if (page.length === 0) break;
      seen.push(...page.map((row) => row.runId));
      after = page.at(-1)!;
    }
    expect(seen.toSorted()).toEqual(runs.toSorted());
    await world.admin.query("update dead_letter set created_at = created_at - interval '1 minute'");
    const id = await begin(world, "replay", {}, 2);
    expect(await finish(world, id)).toBe("ended");
    expect(await operationOf(world, id)).toMatchObject({ done: 5, tally: { replayed: 5 } });
  });
});
