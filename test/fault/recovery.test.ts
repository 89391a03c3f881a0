import { afterEach, describe, expect, it } from "vitest";
import { createHealthProbe } from "../../src/app/health.ts";
import { completeRuns } from "../../src/authority/attempts/complete.ts";
import { expireLeases } from "../../src/authority/attempts/expire.ts";
import { failRuns } from "../../src/authority/attempts/fail.ts";
import type { Grant } from "../../src/authority/attempts/grant.ts";
import type { SendGrant } from "../../src/authority/effects/send.ts";
import { findDoubts } from "../../src/authority/recovery/doubts.ts";
import { putRight } from "../../src/authority/recovery/put-right.ts";
import { recoverAuthority } from "../../src/authority/recovery/recover.ts";
import { runNow } from "../../src/authority/runs/run-now.ts";
import { mintId, showId, type Uuid } from "../../src/kernel/ids.ts";
import { migrateToLatest } from "../../src/store/migrate.ts";
import { punctual } from "../app/cli/punctual.ts";
import { claimSends, email, report, SENT, sending, succeeded, UNKNOWN } from "../authority/effects/scenes.ts";
import { bear, hintsOf, liveOf, running, start, stateOf } from "../authority/scenes.ts";
import { promote, restore, type Server, startPrimary, startStandby, takeBackup } from "../support/copies.ts";
import { createWorld, type World } from "../support/world.ts";

const servers: Server[] = [];
const worlds: World[] = [];
afterEach(async () => {
  for (const world of worlds.splice(0)) await world.close();
  for (const server of servers.splice(0)) await server.stop();
});

async function worldOn(server: Server, tenantId?: Uuid): Promise<World> {
  const world = await createWorld({ copy: { url: server.url, ...(tenantId === undefined ? {} : { tenantId }) } });
  worlds.push(world);
  return world;
}

async function primary(): Promise<{ server: Server; world: World }> {
  const server = await startPrimary();
  servers.push(server);
  await migrateToLatest(server.url);
  return { server, world: await worldOn(server) };
}

const operator = { actor: "operator:test", reason: "the disk is lost", anyway: false, nothingLost: false };
const key = { key: "once", bodySha256: Buffer.alloc(32, 7) };
const request = (world: World, scheduleId: Uuid) => ({
  tenantId: world.tenantId,
  actor: "test",
  scheduleId,
  requestKey: key,
});

/** An effect of a run that has ended; they wait for no sender here. */
async function effect(world: World, runId: Uuid, name: string, state: "pending" | "sending"): Promise<Uuid> {
  const id = mintId(Date.now(), 0);
  const sending = state === "sending";
  await world.admin.query(
    `insert into effect (id, tenant_id, run_id, kind, action_id, name, state, request, fence, claim_id, lease_until, first_sent_at, attempts, budget_attempts)
     values ($1, $2, $3, 'email', $4, $4, $5, '{}', $6, $7, $8, $8, $9, $9)`,
    [
      id,
      world.tenantId,
      runId,
      name,
      state,
      sending ? "5" : null,
      sending ? id : null,
      sending ? new Date(Date.now() + 60_000) : null,
      sending ? 1 : 0,
    ],
  );
  return id;
}

const claimOf = async (world: World, runId: Uuid) => world.claim(await hintsOf(world, runId));

describe("a server restored from a backup", () => {
  it("gives no work until `punctual recover` was run; then fences of the lost future are refused, and nothing that was in the backup is forgotten", async () => {
    const { server, world } = await primary();
    const { scheduleId, grant: old } = await running(world);
    const other = await world.newSchedule();
    const queued = await bear(world, other, 60_000);
    const asked = await runNow(world.authority, request(world, other));
    const done = await running(world);
    await world.complete(done.grant);
    const sending = await effect(world, done.grant.runId, "mail-1", "sending");
    const pending = await effect(world, done.grant.runId, "mail-2", "pending");
    const backup = await takeBackup(server);

    // What is lost: one attempt ends, others begin and end, and begin again.
    await world.complete(old, "the lost result");
    const lost: Grant[] = [await start(world, queued)];
    for (let i = 0; i < 5; i++) lost.push((await running(world)).grant);
    await failRuns(world.authority, [
      { runId: queued, fence: lost[0]!.fence, failure: { transient: true, code: "x", message: "x" } },
    ]);
    await world.makeAvailable();
    const newest = await start(world, queued);
    lost.push(newest);
    await worlds.pop()!.close();
    await servers.pop()!.stop();

    const copy = await restore(backup);
    servers.push(copy);
    const restored = await worldOn(copy, world.tenantId);
    const stopped = { code: "recovery-needed", details: { sameTimeline: false, sameSystem: true } };
    await expect(claimOf(restored, queued)).rejects.toMatchObject(stopped);
    expect(await stateOf(restored, queued)).toBe("queued");
    const probe = createHealthProbe({ authority: restored.authority, clock: restored.authority.clock } as never);
    const { ready, reasons } = await probe.readiness();
    expect({ ready, reasons }).toEqual({
      ready: false,
      reasons: [
        expect.stringMatching(/restored or promoted copy .*`punctual recover`.* 1 run and 2 effects are in doubt/),
      ],
    });

    // The command shows what is in doubt, and changes nothing by itself.
    const dry = await punctual(["recover", "--json"], { DATABASE_URL: copy.url });
    expect({ exitCode: dry.exitCode, ...JSON.parse(dry.out) }).toMatchObject({
      exitCode: 1,
      outcome: "needed",
      differences: ["timeline"],
      runs: [{ runId: showId("run", old.runId), state: "running", worker: "worker-a" }],
      effects: [{ state: "sending" }, { state: "pending" }],
    });
    await expect(claimOf(restored, queued)).rejects.toMatchObject(stopped);
    const unexplained = await punctual(["recover", "--yes"], { DATABASE_URL: copy.url });
    expect([unexplained.exitCode, unexplained.err]).toEqual([2, expect.stringMatching(/--reason: is missing/)]);

    await restored.admin.query(
      "update live_run set lease_until = now() - interval '1 day', deadline_at = now() - interval '1 day' where id = $1",
      [old.runId],
    );
    const did = await punctual(["recover", "--yes", "--reason", "the disk is lost"], { DATABASE_URL: copy.url });
    expect(did).toMatchObject({ exitCode: 0, out: expect.stringMatching(/1 running attempts .*\n2 effects/) });
    const again = await punctual(["recover", "--yes", "--reason", "to be sure"], { DATABASE_URL: copy.url });
    expect(again).toMatchObject({ exitCode: 0, out: expect.stringMatching(/Nothing to do/) });
    const { rows } = await restored.admin.query(
      "select actor, action, after->>'reason' as reason from audit_event where action = 'authority.recover'",
    );
    expect(rows).toEqual([
      { actor: expect.stringMatching(/^operator:/), action: "authority.recover", reason: "the disk is lost" },
    ]);
    expect((await probe.readiness()).ready).toBe(true);

    // Work goes on with greater fences than any that was ever given.
    const { grants } = await restored.claim(await hintsOf(restored, queued), {
      epoch: await epochOfAuthority(restored),
    });
    expect(grants).toHaveLength(1);
    for (const grant of [old, ...lost]) expect(grants[0]!.fence).toBeGreaterThan(grant.fence);
    for (const grant of lost) {
      const [outcome] = await completeRuns(restored.authority, [
        { runId: grant.runId, fence: grant.fence, output: null },
      ]);
      expect(["stale-fence", "not-found", "gone"]).toContain(outcome!.kind);
    }
    expect(await restored.complete(grants[0]!)).toMatchObject({ kind: "accepted" });

    // The attempt that was running has a term to be heard of, and then costs its run nothing.
    const held = await liveOf(restored, old.runId);
    expect(held!.lease_until).toSatisfy((at: Date) => at.getTime() > Date.now());
    await restored.expireLease(old.runId);
    await expireLeases(restored.authority, [old.runId], 0);
    expect(await liveOf(restored, old.runId)).toMatchObject({ state: "retrying", expiries: 0, interruptions: 0 });

    // Effects may have been sent: nobody says that they were not.
    const effects = await restored.admin.query(
      "select id, state, in_doubt, lease_until <= clock_timestamp() as over from effect order by action_id",
    );
    expect(effects.rows).toEqual([
      { id: sending, state: "sending", in_doubt: true, over: true },
      { id: pending, state: "pending", in_doubt: true, over: null },
    ]);
    await restored.admin.query("delete from effect");

    // The backup has its request keys: what was accepted before is known, and not done twice.
    const repeated = await runNow(restored.authority, request(restored, other));
    expect(repeated).toMatchObject({ kind: "repeated", runId: (asked as { runId: Uuid }).runId });
    expect(await stateOf(restored, old.runId)).toBe("retrying");
    expect(scheduleId).toBeDefined();
    await restored.check();
  }, 300_000);
});

async function epochOfAuthority(world: World): Promise<number> {
  return (await world.admin.query("select epoch from authority_epoch")).rows[0].epoch;
}

describe("a standby that was promoted", () => {
  it("may have lost commits, so it gives no work until it is recovered; attempts that went on are heard of", async () => {
    const { server, world } = await primary();
    const { grant } = await running(world);
    const queued = await bear(world, await world.newSchedule(), 60_000);
    const standby = await startStandby(await takeBackup(server), server);
    servers.push(standby);
    await promote(standby, server);
    const promoted = await worldOn(standby, world.tenantId);
    await expect(claimOf(promoted, queued)).rejects.toMatchObject({
      code: "recovery-needed",
      details: { sameTimeline: false },
    });
    expect((await findDoubts(promoted.db)).runs).toMatchObject([{ id: grant.runId }]);
    expect(await recoverAuthority(promoted.authority, operator)).toMatchObject({
      kind: "recovered",
      before: 1,
      runs: 1,
    });
    expect(await promoted.complete(grant)).toMatchObject({ kind: "accepted" });
    const epoch = await epochOfAuthority(promoted);
    expect((await promoted.claim(await hintsOf(promoted, queued), { epoch })).grants).toHaveLength(1);
    await promoted.check();
  }, 300_000);
});

describe("a recovery", () => {
  async function inDoubt(before = async (_world: World) => {}): Promise<World> {
    const world = await createWorld();
    worlds.push(world);
    await before(world);
    await world.admin.query("update authority_epoch set database_oid = 1");
    return world;
  }

  it("is asked for where a dump was restored on the same server, too", async () => {
    const world = await inDoubt();
    const queued = await bear(world, await world.newSchedule(), 60_000);
    await expect(claimOf(world, queued)).rejects.toMatchObject({
      code: "recovery-needed",
      details: { sameDatabase: false, sameTimeline: true },
    });
    expect(await recoverAuthority(world.authority, operator)).toMatchObject({ differences: ["database"] });
    expect(
      (await world.claim(await hintsOf(world, queued), { epoch: await epochOfAuthority(world) })).grants,
    ).toHaveLength(1);
  });

  it("that breaks off has done nothing, or is gone on with by the next", async () => {
    const world = await inDoubt();
    world.faults.once("recover:written", () => {
      throw new Error("killed");
    });
    await expect(recoverAuthority(world.authority, operator)).rejects.toThrow("killed");
    expect(await epochOfAuthority(world)).toBe(1);
    const made = await recoverAuthority(world.authority, operator);
    expect(made).toMatchObject({ kind: "recovered", before: 1 });
    const { epoch } = made;
    world.faults.once("recover:put-right", () => {
      throw new Error("killed");
    });
    await expect(putRight(world.authority, epoch)).rejects.toThrow("killed");
    expect(await recoverAuthority(world.authority, operator)).toEqual({ kind: "not-needed", epoch, unfinished: true });
    await putRight(world.authority, epoch);
    expect(await recoverAuthority(world.authority, operator)).toEqual({ kind: "not-needed", epoch, unfinished: false });
  });

  it("by two operators at once raises one epoch", async () => {
    const world = await inDoubt();
    const both = await Promise.all([
      recoverAuthority(world.authority, operator),
      recoverAuthority(world.another(), operator),
    ]);
    expect(both.map((one) => one.kind).sort()).toEqual(["not-needed", "recovered"]);
    expect(new Set(both.map((one) => one.epoch)).size).toBe(1);
  });

  it("waits for a report of failure that is on its way, and renews no lease of an attempt that has ended with it", async () => {
    let grant!: Grant;
    const world = await inDoubt(async (before) => {
      grant = (await running(before)).grant;
    });
    const held = world.faults.hold("fail:written");
    const failing = failRuns(world.authority, [{ ...grant, failure: { transient: true, code: "x", message: "x" } }]);
    await held.arrived;
    const recovery = recoverAuthority(world.another(), operator);
    await world.lockWaits();
    held.release();
    expect(await failing).toMatchObject([{ kind: "retrying" }]);
    expect(await recovery).toMatchObject({ kind: "recovered", runs: 0 });
    expect(await liveOf(world, grant.runId)).toMatchObject({ state: "retrying", lease_until: null });
    await world.check();
  });

  it("waits for a sender's report that is on its way, and doubts nothing that it has settled", async () => {
    let send!: SendGrant;
    const world = await inDoubt(async (before) => {
      send = await sending(before, email());
    });
    const held = world.faults.hold("settle-effect:written");
    const said = report(world, send, SENT);
    await held.arrived;
    const recovery = recoverAuthority(world.another(), operator);
    await world.lockWaits();
    held.release();
    expect(await said).toEqual({ kind: "settled", state: "sent" });
    expect(await recovery).toMatchObject({ kind: "recovered", effects: 0 });
    const { rows } = await world.admin.query("select state, in_doubt from effect");
    expect(rows).toEqual([{ state: "sent", in_doubt: false }]);
    await world.check();
  });

  it("gives senders greater fences, too: what a sender of the lost future has to say is not taken for another's word", async () => {
    let effectId!: Uuid;
    const world = await inDoubt(async (before) => {
      effectId = (await succeeded(before, [email({ onUncertain: "resend" })])).effects[0]!.id;
    });
    // What the next sender would have been given, had nothing been lost.
    const { rows } = await world.admin.query("select (1::bigint << 40) + last_value + 1 as fence from fence_seq");
    await recoverAuthority(world.authority, operator);
    const [grant] = await claimSends(world, [effectId]);
    expect(grant!.fence).toBeGreaterThan(rows[0].fence);
    expect(await report(world, { effectId, fence: rows[0].fence }, SENT)).toEqual({ kind: "stale-fence" });
    expect(await report(world, grant!, UNKNOWN)).toMatchObject({ kind: "settled" });
  });

  it("publishes again what Redis was told before, and makes good what was lost with the outbox", async () => {
    const world = await inDoubt();
    const [told, lost] = [
      await bear(world, await world.newSchedule(), 60_000),
      await bear(world, await world.newSchedule(), 60_000),
    ];
    await world.admin.query("update outbox set published_at = now(), publish_no = 1 where $1 = any(runs)", [told]);
    await world.admin.query("delete from outbox where $1 = any(runs)", [lost]);
    const made = await recoverAuthority(world.authority, operator);
    expect(await putRight(world.authority, made.epoch)).toMatchObject({ published: 1, intents: 1 });
    expect((await world.outbox()).every((row) => row.published_at === null)).toBe(true);
    await world.check();
  });

  it("that is told that nothing was lost leaves effects as they are", async () => {
    const world = await inDoubt(async (before) => {
      const { grant } = await running(before);
      await before.complete(grant);
      await effect(before, grant.runId, "mail", "pending");
    });
    await recoverAuthority(world.authority, { ...operator, nothingLost: true });
    expect((await world.admin.query("select in_doubt from effect")).rows).toEqual([{ in_doubt: false }]);
  });

  it("can be had where the server does not know that it is a copy", async () => {
    const world = await createWorld();
    worlds.push(world);
    expect(await recoverAuthority(world.authority, operator)).toMatchObject({ kind: "not-needed" });
    expect(await recoverAuthority(world.authority, { ...operator, anyway: true })).toMatchObject({ kind: "recovered" });
  });
});
