import { Webhook } from "standardwebhooks";
import { afterAll, afterEach, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { changeWebhook, deleteWebhook, setWebhookStatus } from "../../../src/authority/webhooks/change-webhook.ts";
import { findDueTellings } from "../../../src/authority/webhooks/due.ts";
import { redeliver, testWebhook } from "../../../src/authority/webhooks/send-again.ts";
import { createEventSender } from "../../../src/dispatch/effects/event-sender.ts";
import type { Sender } from "../../../src/dispatch/effects/sending-loop.ts";
import { createEventPoster } from "../../../src/handlers/effects/event-webhook.ts";
import type { SigningKeys } from "../../../src/handlers/outbound/signing.ts";
import { systemClock } from "../../../src/kernel/clock.ts";
import type { Uuid } from "../../../src/kernel/ids.ts";
import { outboundOf } from "../../support/outbound.ts";
import { webhookReceiver } from "../../support/receivers.ts";
import { createWorld, type World } from "../../support/world.ts";
import { running } from "../scenes.ts";
import { age, claim, DELIVERED, deliveries, endpoint, FAILED, listening, makeDue, report } from "./scenes.ts";

let world: World;
beforeAll(async () => {
  world = await createWorld();
});
afterEach(async () => {
  await world.check();
  await world.admin.query("delete from webhook_delivery");
  await world.admin.query("delete from webhook_endpoint");
});
afterAll(() => world?.close());

const KEY = Buffer.alloc(32, 7);

function senderOf(keysOf: SigningKeys["keysOf"] = async () => [KEY], authority = world.authority): Sender {
  const outbound = outboundOf();
  const poster = createEventPoster({
    outbound,
    keys: { keysOf },
    concurrency: 8,
    userAgent: "Punctual/test",
    clock: systemClock,
  });
  const sender = createEventSender({ authority, poster, graceMs: 10_000 });
  onTestFinished(async () => {
    await sender.stop();
    await outbound.close();
  });
  return sender;
}

async function pass(sender: Sender): Promise<number> {
  const { did } = await sender.pass(new AbortController().signal);
  await sender.drain();
  return did;
}

async function receiver(...statuses: number[]) {
  let calls = 0;
  const hooks = await webhookReceiver((_call, response) => {
    const status = statuses[Math.min(calls++, statuses.length - 1)] ?? 204;
    response.writeHead(status, status === 429 ? { "retry-after": "7200" } : {}).end("said so");
  });
  onTestFinished(() => hooks.close());
  return hooks;
}

/** An endpoint at the receiver, and one event for it. */
async function told(url: string, tenantId?: Uuid) {
  const of = tenantId === undefined ? {} : { tenantId };
  const endpointId = await listening(world, ["run.succeeded"], { url, ...of });
  const { grant } = await running(world, of);
  await world.complete(grant);
  const [one] = await deliveries(world, endpointId);
  return { endpointId, id: one!.id, grant };
}

const only = async (endpointId: Uuid) => (await deliveries(world, endpointId))[0]!;

describe("an event for an endpoint", () => {
  it("arrives once, signed, and a receiver verifies it", async () => {
    const hooks = await receiver();
    const { endpointId } = await told(hooks.url);
    const sender = senderOf();
    expect([await pass(sender), await pass(sender)]).toEqual([1, 0]);
    const [call] = hooks.calls;
    const headers = call!.headers as Record<string, string>;
    const verified = new Webhook(KEY.toString("base64")).verify(call!.body, headers);
    expect(verified).toMatchObject({ type: "run.succeeded", data: { run: { state: "succeeded" } } });
    expect(headers["webhook-id"]).toMatch(/^run-succeeded-run_\w{26}-1$/);
    expect(await only(endpointId)).toMatchObject({
      state: "delivered",
      attempts: 1,
      answer_status: 204,
      message: null,
    });
  });

  it("is sent unsigned, with its id, where the tenant has no key; and not at all where the keys cannot be had", async () => {
    const hooks = await receiver();
    const { endpointId } = await told(hooks.url);
    await pass(senderOf(() => Promise.reject(new Error("no master key"))));
    expect(hooks.calls).toEqual([]);
    expect(await only(endpointId)).toMatchObject({
      state: "pending",
      message: "it could not be signed: no master key",
    });
    // No fault of the endpoint.
    expect(await endpoint(world, endpointId)).toMatchObject({ failures: 0 });
    await makeDue(world);
    await pass(senderOf(async () => []));
    expect(hooks.calls[0]!.headers).toMatchObject({ "webhook-id": expect.stringMatching(/^run-succeeded-/) });
    expect(hooks.calls[0]!.headers).not.toHaveProperty("webhook-signature");
  });

  it("that is refused is tried again later under the same id with the same body, whatever the refusal", async () => {
    const hooks = await receiver(404, 301, 500, 429, 200);
    const { endpointId } = await told(hooks.url);
    const sender = senderOf();
    for (let tries = 1; tries <= 5; tries++) {
      await makeDue(world);
      expect(await pass(sender)).toBe(1);
    }
    expect(new Set(hooks.calls.map((call) => `${call.headers["webhook-id"]} ${call.body}`)).size).toBe(1);
    expect(await only(endpointId)).toMatchObject({ state: "delivered", attempts: 5 });
    expect(await endpoint(world, endpointId)).toMatchObject({ failures: 0, failing_since: null });
  });

  it("waits as long as its receiver asks", async () => {
    const hooks = await receiver(429);
    const { endpointId } = await told(hooks.url);
    await pass(senderOf());
    const { rows } = await world.admin.query(
      "select next_attempt_at > clock_timestamp() + interval '119 minutes' as patient from webhook_delivery",
    );
    expect([rows[0].patient, (await only(endpointId)).message]).toEqual([true, "the receiver answered 429: said so"]);
  });

  it("has failed after a day, and a person may send it again", async () => {
    const hooks = await receiver(500, 200);
    const { endpointId, id } = await told(hooks.url);
    await age(world, 86_400_000);
    const sender = senderOf();
    await pass(sender);
    expect(await only(endpointId)).toMatchObject({ state: "failed", answer_status: 500 });
    const again = { tenantId: world.tenantId, actor: "ada", endpointId, deliveryId: id };
    const stranger = { ...again, tenantId: await world.newTenant("other 1") };
    expect(await redeliver(world.authority, stranger)).toEqual({ kind: "not-found" });
    const theirs = await listening(world, ["run.failed"], { tenantId: stranger.tenantId });
    expect(await redeliver(world.authority, { ...stranger, endpointId: theirs })).toEqual({ kind: "not-found" });
    expect(await redeliver(world.authority, again)).toEqual({ kind: "asked" });
    expect(await redeliver(world.authority, again)).toEqual({ kind: "repeated" });
    await pass(sender);
    expect(await only(endpointId)).toMatchObject({ state: "delivered", attempts: 2, budget_attempts: 1 });
    expect(new Set(hooks.calls.map((call) => call.headers["webhook-id"])).size).toBe(1);
  });

  it("is not lost with a sender that is killed before it sent, nor with one that is killed after", async () => {
    const hooks = await receiver();
    const { endpointId, id } = await told(hooks.url);
    // Claimed, and never heard of again.
    const [lost] = await claim(world, [id]);
    const sender = senderOf();
    expect(await pass(sender)).toBe(0);
    await makeDue(world);
    // Sent, and never heard of again.
    world.faults.once("effect:sent", () => {
      throw new Error("killed");
    });
    await pass(sender);
    expect([hooks.calls.length, (await only(endpointId)).state]).toEqual([1, "sending"]);
    await makeDue(world);
    await pass(sender);
    expect(await only(endpointId)).toMatchObject({ state: "delivered", attempts: 3 });
    expect(hooks.calls[1]!.headers["webhook-id"]).toBe(hooks.calls[0]!.headers["webhook-id"]);
    // The one that was believed dead says that it failed: too late to count.
    expect(await report(world, lost!, FAILED)).toEqual({ kind: "stale" });
    expect(await only(endpointId)).toMatchObject({ state: "delivered" });
  });

  it("is claimed once by two senders, and a claim that got no answer is answered the same again", async () => {
    const { id } = await told("https://hooks.example.com/x");
    const claimId = "01000000-0000-8000-8000-00000000000a";
    const first = await claim(world, [id], { claimId });
    expect(await claim(world, [id])).toEqual([]);
    expect(await claim(world, [id], { claimId, repeated: true })).toEqual(first);
    expect(await report(world, first[0]!, { kind: "not-sent", message: "too late" })).toMatchObject({
      state: "pending",
    });
    expect(await report(world, first[0]!, DELIVERED)).toEqual({ kind: "stale" });
  });

  it("that is sent anew by another sender is that one's: what the first one says comes too late", async () => {
    const { endpointId, id } = await told("https://hooks.example.com/x");
    const [first] = await claim(world, [id]);
    await makeDue(world);
    const [second] = await claim(world, [id]);
    expect(await report(world, first!, FAILED)).toEqual({ kind: "stale" });
    expect(await only(endpointId)).toMatchObject({ state: "sending", attempts: 2 });
    expect(await report(world, second!, DELIVERED)).toMatchObject({ state: "delivered" });
  });

  it("of one tenant leaves room for the others', however slow its receivers are", async () => {
    const { endpointId } = await told("https://hooks.example.com/x");
    for (let i = 0; i < 4; i++)
      await testWebhook(world.authority, { tenantId: world.tenantId, actor: "ada", endpointId });
    const other = await world.newTenant("other 2");
    await told("https://hooks.example.com/y", other);
    const limits = { perTenant: 2, all: 8, sending: [{ tenantId: world.tenantId, endpointId }] };
    expect((await findDueTellings(world.authority, limits)).ids).toHaveLength(2);
  });
});

describe("an endpoint", () => {
  const failing = async () => {
    const { endpointId, id } = await told("https://hooks.example.com/x");
    return { endpointId, id, by: { tenantId: world.tenantId, actor: "ada", id: endpointId } };
  };
  const failOnce = async (id: bigint) => {
    await makeDue(world);
    const [grant] = await claim(world, [id]);
    return report(world, grant!, FAILED);
  };
  const events = async (action: string) =>
    (await world.admin.query("select actor, after from audit_event where action = $1", [action])).rows;

  it("that has failed twenty times and for a day is disabled, says why, and hears of nothing more", async () => {
    const { endpointId, id, by } = await failing();
    for (let tries = 1; tries <= 19; tries++) await failOnce(id);
    await age(world, 3_600_000);
    expect(await failOnce(id)).toMatchObject({ state: "pending", disabled: false });
    await world.admin.query("update webhook_endpoint set failing_since = failing_since - interval '23 hours'");
    expect(await failOnce(id)).toMatchObject({ disabled: true });
    const reason = expect.stringMatching(/^all 21 attempts since .* have failed$/);
    expect(await endpoint(world, endpointId)).toMatchObject({ status: "disabled", disabled_reason: reason });
    expect(await events("webhook.disable")).toEqual([{ actor: "punctual", after: { status: "disabled", reason } }]);

    const { grant } = await running(world);
    await world.complete(grant);
    expect(await deliveries(world)).toHaveLength(1);
    // What waited is given up as its turn comes, until somebody enables it and asks for it.
    await makeDue(world);
    expect(await claim(world, [id])).toEqual([]);
    expect(await only(endpointId)).toMatchObject({ state: "failed", message: "its endpoint is disabled" });
    const again = { tenantId: world.tenantId, actor: "ada", endpointId, deliveryId: id };
    expect(await redeliver(world.authority, again)).toEqual({ kind: "endpoint-disabled" });
    expect(await setWebhookStatus(world.authority, { ...by, status: "enabled" })).toMatchObject({ kind: "changed" });
    expect(await setWebhookStatus(world.authority, { ...by, status: "enabled" })).toMatchObject({ kind: "unchanged" });
    expect(await endpoint(world, endpointId)).toMatchObject({ failures: 0, failing_since: null, disabled_at: null });
    expect(await redeliver(world.authority, again)).toEqual({ kind: "asked" });
  });

  it("that is disabled keeps nothing of its tenant's waiting: what waits for it is given up look after look, without a nap", async () => {
    const hooks = await receiver();
    const { endpointId, by } = await failing();
    for (let i = 0; i < 4; i++) await world.complete((await running(world)).grant);
    const { endpointId: well } = await told(hooks.url);
    await setWebhookStatus(world.authority, { ...by, id: endpointId, status: "disabled", reason: "moved" });
    const sender = senderOf();
    // Two at a time are a tenant's.
    for (let looks = 1; looks <= 4; looks++) {
      const { more } = await sender.pass(new AbortController().signal);
      await sender.drain();
      expect(more).toBe(true);
    }
    expect((await deliveries(world, endpointId)).map((one) => one.state)).toEqual(Array(6).fill("failed"));
    expect(await only(well)).toMatchObject({ state: "delivered" });
    expect(await sender.pass(new AbortController().signal)).toMatchObject({ did: 0, more: false });
  });

  it("that answers once in between is not disabled: its failures count anew", async () => {
    const { endpointId, id } = await failing();
    for (let tries = 1; tries <= 19; tries++) await failOnce(id);
    await makeDue(world);
    const [grant] = await claim(world, [id]);
    await report(world, grant!, DELIVERED);
    expect(await endpoint(world, endpointId)).toMatchObject({ failures: 0, failing_since: null, status: "enabled" });
  });

  it("that answers 410 is disabled at once", async () => {
    const hooks = await receiver(410);
    const { endpointId } = await told(hooks.url);
    await pass(senderOf());
    expect(await endpoint(world, endpointId)).toMatchObject({
      status: "disabled",
      disabled_reason: expect.stringContaining("410"),
    });
    expect(await only(endpointId)).toMatchObject({ state: "failed", answer_status: 410 });
  });

  it("is tried once by a test, also while it is disabled", async () => {
    const hooks = await receiver(503, 200);
    const endpointId = await listening(world, ["run.failed"], { url: hooks.url });
    const by = { tenantId: world.tenantId, actor: "ada" };
    await setWebhookStatus(world.authority, { ...by, id: endpointId, status: "disabled", reason: "new" });
    const sender = senderOf();
    for (let i = 0; i < 2; i++) {
      await testWebhook(world.authority, { ...by, endpointId });
      expect(await pass(sender)).toBe(1);
    }
    expect(hooks.calls.map((call) => JSON.parse(call.body))).toMatchObject([
      { type: "webhook.test", data: {} },
      { type: "webhook.test", data: {} },
    ]);
    expect(await deliveries(world)).toMatchObject([{ state: "failed" }, { state: "delivered" }]);
    expect(
      await testWebhook(world.authority, { ...by, tenantId: await world.newTenant("other 3"), endpointId }),
    ).toEqual({
      kind: "not-found",
    });
  });

  it("whose URL changes gets there what waited", async () => {
    const hooks = await receiver();
    const { by } = await failing();
    await changeWebhook(world.authority, { ...by, change: { url: hooks.url } });
    await pass(senderOf());
    expect(hooks.calls).toHaveLength(1);
  });

  it("that leads where nobody may go fails there, and is not dialled", async () => {
    const { endpointId } = await told("http://169.254.169.254/latest/meta-data");
    await pass(senderOf());
    expect(await only(endpointId)).toMatchObject({ state: "failed", message: expect.stringContaining("169.254") });
  });

  it("that is deleted gets nothing more: what waited for it goes as its turn comes", async () => {
    const { by, id } = await failing();
    await deleteWebhook(world.authority, by);
    expect(await claim(world, [id])).toEqual([]);
    expect(await deliveries(world)).toEqual([]);
  });
});
