import { afterEach, beforeEach, expect, it } from "vitest";
import { lapseEffects } from "../../../src/authority/effects/lapse.ts";
import { type Decision, resolveEffect } from "../../../src/authority/effects/resolve.ts";
import { sendEffects } from "../../../src/authority/effects/send.ts";
import { settleEffects } from "../../../src/authority/effects/settle.ts";
import { cleanObjects } from "../../../src/authority/objects/clean-objects.ts";
import { settleDeletions } from "../../../src/authority/objects/settle-deletions.ts";
import { mintId } from "../../../src/kernel/ids.ts";
import { createWorld, type World } from "../../support/world.ts";
import {
  ageSend,
  claimSends,
  effect,
  email,
  expireSend,
  makeSendable,
  report,
  SENT,
  sending,
  succeeded,
  UNKNOWN,
  webhook,
} from "./scenes.ts";

let world: World;
beforeEach(async () => {
  world = await createWorld();
});
afterEach(async () => {
  await world.check();
  await world.close();
});

const DAY_MS = 86_400_000;
const NOT_NOW = { kind: "refused", transient: true, message: "451" } as const;
const NOT_TRIED = { kind: "not-sent", message: "too late" } as const;

const resolve = (effectId: string, decision: Decision, tenantId = world.tenantId) =>
  resolveEffect(world.authority, { tenantId, actor: "ada", effectId, decision, reason: "asked them" });

const auditOf = async (effectId: string) =>
  (await world.admin.query("select actor, action, after from audit_event where subject = $1 order by id", [effectId]))
    .rows;

it("two senders at once: one sends", async () => {
  const { effects } = await succeeded(world, [email()]);
  const id = effects[0]!.id;
  const held = world.faults.hold("send-effect:written");
  const first = claimSends(world, [id]);
  await held.arrived;
  const other = world.another();
  const second = await sendEffects(other, {
    claimId: mintId(Date.now(), 0),
    sender: "sender-b",
    effectIds: [id],
    leaseMs: 60_000,
    repeated: false,
  });
  held.release();
  expect([(await first).length, second.length]).toEqual([1, 0]);
  expect(await effect(world, id)).toMatchObject({ state: "sending", attempts: 1 });
});

it("two senders that both saw it due, one after the other: one sends", async () => {
  const { effects } = await succeeded(world, [email()]);
  const id = effects[0]!.id;
  const grants = [...(await claimSends(world, [id])), ...(await claimSends(world, [id]))];
  expect(grants).toHaveLength(1);
});

it("a repeated claim waits for the first one, and gets its grants", async () => {
  const { effects } = await succeeded(world, [email()]);
  const id = effects[0]!.id;
  const claimId = mintId(Date.now(), 0);
  const held = world.faults.hold("send-effect:written");
  const first = claimSends(world, [id], { claimId });
  await held.arrived;
  const again = claimSends(world, [id], { claimId, repeated: true });
  await world.lockWaits();
  held.release();
  expect(await again).toEqual(await first);
  expect(await effect(world, id)).toMatchObject({ attempts: 1 });
});

it("a report and the end of its lease at once: the report wins", async () => {
  const grant = await sending(world, email());
  await expireSend(world, grant.effectId);
  const held = world.faults.hold("settle-effect:locked");
  const said = report(world, grant, SENT);
  await held.arrived;
  expect(await lapseEffects(world.another(), [grant.effectId])).toBe(0);
  held.release();
  expect(await said).toEqual({ kind: "settled", state: "sent" });
});

it("a lease that ends while a report waits for the lock: the report is heard all the same", async () => {
  const grant = await sending(world, email());
  await expireSend(world, grant.effectId);
  const held = world.faults.hold("lapse-effect:locked");
  const lapse = lapseEffects(world.authority, [grant.effectId]);
  await held.arrived;
  const { effectId, fence } = grant;
  const said = settleEffects(world.another(), [{ effectId, fence, report: SENT }]);
  await world.lockWaits();
  held.release();
  await lapse;
  expect(await said).toEqual([{ kind: "settled", state: "sent" }]);
});

it("whether a lease is over is decided after the lock was waited for", async () => {
  const grant = await sending(world, email());
  await world.admin.query("update effect set lease_until = clock_timestamp() + interval '300 ms' where id = $1", [
    grant.effectId,
  ]);
  const until = (await world.admin.query("select lease_until from effect where id = $1", [grant.effectId])).rows[0];
  const held = world.faults.hold("lapse-effect:locked");
  const lapse = lapseEffects(world.authority, [grant.effectId]);
  await held.arrived;
  await world.passes(until.lease_until.getTime() + 1);
  held.release();
  expect(await lapse).toBe(1);
});

it("a person decides while it is being sent: not now", async () => {
  const grant = await sending(world, email());
  for (const decision of ["sent", "resend", "drop"] as const) {
    expect(await resolve(grant.effectId, decision)).toEqual({ kind: "sending", state: "sending" });
  }
  expect(await report(world, grant, SENT)).toEqual({ kind: "settled", state: "sent" });
  expect(await resolve(grant.effectId, "drop")).toEqual({ kind: "settled", state: "sent" });
  expect(await auditOf(grant.effectId)).toEqual([]);
});

it("dropped at the moment a sender claims it: whoever locks first decides", async () => {
  const { effects } = await succeeded(world, [email(), webhook()]);
  const [hook, mail] = [effects[0]!, effects[1]!];
  // The person first: the sender passes it by, and finds it resolved afterwards.
  const held = world.faults.hold("resolve-effect:locked");
  const drop = resolve(hook.id, "drop");
  await held.arrived;
  expect(await claimSends(world, [hook.id])).toEqual([]);
  held.release();
  expect(await drop).toEqual({ kind: "resolved" });
  expect(await claimSends(world, [hook.id])).toEqual([]);
  // The sender first: the person waits, and is told.
  const claiming = world.faults.hold("send-effect:written");
  const claim = claimSends(world, [mail.id]);
  await claiming.arrived;
  const late = resolve(mail.id, "drop");
  await world.lockWaits();
  claiming.release();
  expect(await claim).toHaveLength(1);
  expect(await late).toEqual({ kind: "sending", state: "sending" });
});

it("a person's decisions are kept with who and why; said again they change nothing", async () => {
  const grant = await sending(world, email());
  await report(world, grant, UNKNOWN);
  expect(await resolve(grant.effectId, "sent", await world.newTenant("other"))).toEqual({ kind: "not-found" });
  expect(await resolve(grant.effectId, "sent")).toEqual({ kind: "resolved" });
  expect(await resolve(grant.effectId, "sent")).toEqual({ kind: "repeated" });
  expect(await resolve(grant.effectId, "drop")).toEqual({ kind: "settled", state: "resolved" });
  expect(await effect(world, grant.effectId)).toMatchObject({
    state: "resolved",
    resolution: "sent",
    resolved_by: "ada",
  });
  expect(await auditOf(grant.effectId)).toEqual([
    { actor: "ada", action: "effect.resolve", after: { decision: "sent", reason: "asked them" } },
  ]);
});

it("an uncertain effect that a person has sent again keeps its action id and gets a fresh budget", async () => {
  const grant = await sending(world, email({ retry: { maxAttempts: 1 } }));
  await report(world, grant, UNKNOWN);
  expect(await resolve(grant.effectId, "resend")).toEqual({ kind: "resolved" });
  expect(await resolve(grant.effectId, "resend")).toEqual({ kind: "repeated" });
  const [again] = await claimSends(world, [grant.effectId]);
  expect(again).toMatchObject({ actionId: grant.actionId, attempt: 2 });
  // The first sender comes back: it has nothing to say any more.
  expect(await report(world, grant, SENT)).toEqual({ kind: "stale-fence" });
  await report(world, again!, { kind: "refused", transient: true, message: "451" });
  // The second did not happen; of the first nobody knows to this day, and a person may hear of it.
  expect(await effect(world, grant.effectId)).toMatchObject({ state: "uncertain", error_message: "451" });
  expect(await resolve(grant.effectId, "sent")).toEqual({ kind: "resolved" });
});

it("an uncertain effect that a person has sent again is tried as often as any, however it stood before", async () => {
  const grant = await sending(world, email());
  await report(world, grant, UNKNOWN);
  await resolve(grant.effectId, "resend");
  for (const said of [NOT_NOW, NOT_TRIED, NOT_NOW]) {
    await makeSendable(world, grant.effectId);
    const [again] = await claimSends(world, [grant.effectId]);
    expect(await report(world, again!, said)).toEqual({ kind: "settled", state: "pending" });
  }
  await makeSendable(world, grant.effectId);
  const [last] = await claimSends(world, [grant.effectId]);
  expect(await report(world, last!, UNKNOWN)).toEqual({ kind: "settled", state: "uncertain" });
});

it("what was refused, never in doubt, and refused again after a person's resend has failed", async () => {
  const grant = await sending(world, email());
  await report(world, grant, { kind: "refused", transient: false, message: "550" });
  await resolve(grant.effectId, "resend");
  const [again] = await claimSends(world, [grant.effectId]);
  expect(await report(world, again!, { kind: "refused", transient: false, message: "550" })).toMatchObject({
    state: "failed",
  });
  expect(await resolve(grant.effectId, "sent")).toEqual({ kind: "settled", state: "failed" });
});

it("a resend does not make a receiver remember the key any longer", async () => {
  const grant = await sending(world, webhook({ retry: { maxElapsedMs: 30 * DAY_MS } }));
  await report(world, grant, UNKNOWN);
  await ageSend(world, grant.effectId, DAY_MS - 600_000);
  await makeSendable(world, grant.effectId);
  const [second] = await claimSends(world, [grant.effectId]);
  await report(world, second!, { kind: "refused", transient: false, message: "422" });
  expect(await resolve(grant.effectId, "resend")).toEqual({ kind: "resolved" });
  const [third] = await claimSends(world, [grant.effectId]);
  await report(world, third!, { ...UNKNOWN, retryAfterMs: 900_000 });
  expect(await effect(world, grant.effectId)).toMatchObject({ state: "uncertain" });
  // After that time it is a new call, and remembered as one.
  await ageSend(world, grant.effectId, DAY_MS);
  await resolve(grant.effectId, "resend");
  const [fourth] = await claimSends(world, [grant.effectId]);
  await report(world, fourth!, { ...UNKNOWN, retryAfterMs: 900_000 });
  expect(await effect(world, grant.effectId)).toMatchObject({ state: "pending", in_doubt: true });
});

it("one effect held by a stranger keeps no other waiting", async () => {
  const { effects } = await succeeded(world, [email(), webhook()]);
  const stranger = await world.stranger();
  await stranger.query("select 1 from effect where id = $1 for update", [effects[0]!.id]);
  const grants = await claimSends(
    world,
    effects.map((one) => one.id),
  );
  expect(grants.map((one) => one.effectId)).toEqual([effects[1]!.id]);
  await stranger.rollback();
  await makeSendable(world, effects[0]!.id);
  expect(await claimSends(world, [effects[0]!.id])).toHaveLength(1);
});

it("what failed is not sent again when retention has just taken its result: whoever locks the object first decides", async () => {
  const { grant: run, effects } = await succeeded(world, [email()]);
  const [grant] = await claimSends(world, [effects[0]!.id]);
  await report(world, grant!, { kind: "refused", transient: false, message: "no such user" });
  const objectId = effects[0]!.object_id!;
  await world.admin.query(
    "update object set referenced_at = now() - interval '8 days', pin_until = now() - interval '1 day' where id = $1",
    [objectId],
  );
  await world.admin.query("update run set finished_at = now() - interval '8 days' where id = $1", [run.runId]);
  const held = world.faults.hold("clean-objects:written");
  const cleaning = cleanObjects(world.authority, [objectId], 7 * 86_400_000);
  await held.arrived;
  const other = world.another();
  const request = { tenantId: world.tenantId, actor: "ada", effectId: grant!.effectId, reason: "mended" } as const;
  const resolving = resolveEffect(other, { ...request, decision: "resend" });
  await world.lockWaits();
  held.release();
  expect(await cleaning).toEqual([objectId]);
  expect(await resolving).toEqual({ kind: "result-expired" });
  expect(await effect(world, grant!.effectId)).toMatchObject({ state: "failed" });
  expect(await resolveEffect(other, { ...request, decision: "drop" })).toEqual({ kind: "resolved" });
});

it("what failed is not sent again once its result is long gone, and forgotten even by the registry", async () => {
  const { grant: run, effects } = await succeeded(world, [email()]);
  const [grant] = await claimSends(world, [effects[0]!.id]);
  await report(world, grant!, { kind: "refused", transient: false, message: "no such user" });
  const objectId = effects[0]!.object_id!;
  await world.admin.query(
    `update object set state = 'deleted', granted_until = now() - interval '40 days', pin_until = null,
            deleting_at = now() - interval '31 days', deleted_at = now() - interval '31 days', clean_at = now() - interval '1 day'
      where id = $1`,
    [objectId],
  );
  await world.admin.query("update run set finished_at = now() - interval '40 days' where id = $1", [run.runId]);
  await settleDeletions(world.authority, [{ id: objectId, outcome: "forget" }]);
  expect((await world.admin.query("select 1 from object")).rows).toEqual([]);
  expect(await resolve(grant!.effectId, "resend")).toEqual({ kind: "result-expired" });
  expect(await effect(world, grant!.effectId)).toMatchObject({ state: "failed" });
});
