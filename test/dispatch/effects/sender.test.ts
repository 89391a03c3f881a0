import { Readable } from "node:stream";
import { afterEach, beforeEach, expect, it, onTestFinished } from "vitest";
import { resolveEffect } from "../../../src/authority/effects/resolve.ts";
import { createEffectSender } from "../../../src/dispatch/effects/sender.ts";
import { SEND_LEASE_MS, type Sender } from "../../../src/dispatch/effects/sending-loop.ts";
import { createEmailAdapter } from "../../../src/handlers/effects/email.ts";
import type { EffectAdapter } from "../../../src/handlers/effects/port.ts";
import { createWebhookAdapter } from "../../../src/handlers/effects/webhook.ts";
import { systemClock } from "../../../src/kernel/clock.ts";
import { outcomeUnknown } from "../../../src/kernel/errors.ts";
import type { Uuid } from "../../../src/kernel/ids.ts";
import { effect, effectsOf, email, makeSendable, succeeded, webhook } from "../../authority/effects/scenes.ts";
import { running } from "../../authority/scenes.ts";
import { outboundOf } from "../../support/outbound.ts";
import { mailReceiver, webhookReceiver } from "../../support/receivers.ts";
import { createWorld, type World } from "../../support/world.ts";

let world: World;
beforeEach(async () => {
  world = await createWorld();
});
afterEach(async () => {
  await world.check();
  await world.close();
});

function webhooks(concurrency = 8): EffectAdapter {
  return createWebhookAdapter({
    outbound: outboundOf(),
    keys: { keysOf: async () => [] },
    concurrency,
    userAgent: "Punctual/test",
    clock: systemClock,
  });
}

function emails(port: number): EffectAdapter {
  return createEmailAdapter({
    server: { host: "127.0.0.1", port, secure: false, startTls: "off", auth: undefined, silenceMs: 5_000 },
    from: "punctual@example.com",
    concurrency: 5,
  });
}

function senderOf(adapter: EffectAdapter, change: Partial<Parameters<typeof createEffectSender>[0]> = {}): Sender {
  const sender = createEffectSender({
    authority: world.authority,
    adapter,
    objects: { open: async () => Readable.from(["a report"]) },
    name: "sender-a",
    linkTo: (run, sha256, expires) => `https://punctual.example.com/${run}/${sha256.slice(0, 6)}/${expires}`,
    graceMs: 10_000,
    ...change,
  });
  onTestFinished(() => sender.stop());
  return sender;
}

const pass = (sender: Sender) => sender.pass(new AbortController().signal);

it("what is due is sent once, and says what came of it", async () => {
  const hooks = await webhookReceiver(
    (_call, response) => void response.writeHead(200, { "x-request-id": "r1" }).end(),
  );
  const post = await mailReceiver();
  onTestFinished(async () => {
    await hooks.close();
    await post.close();
  });
  const { grant, effects } = await succeeded(world, [
    webhook({ url: hooks.url }),
    email({ text: "At {{result.url}}", result: "attach" }),
  ]);
  const senders = [senderOf(webhooks()), senderOf(emails(post.port))];
  for (const sender of senders) {
    expect(await pass(sender)).toMatchObject({ did: 1 });
    await sender.drain();
    expect(await pass(sender)).toMatchObject({ did: 0, more: false });
  }
  const [hook, mail] = await effectsOf(world, grant.runId);
  expect([hook, mail]).toMatchObject([
    { state: "sent", external_id: "r1" },
    { state: "sent", external_id: expect.stringContaining("250") },
  ]);
  expect(hooks.calls.map((call) => call.key)).toEqual([effects[0]!.action_id]);
  const link = JSON.parse(hooks.calls[0]!.body).result.url as string;
  expect(post.mails).toMatchObject([
    {
      messageId: `<${effects[1]!.action_id}@example.com>`,
      text: expect.stringContaining(`At ${link}`),
      attachments: [{ size: 8 }],
    },
  ]);
});

it("a webhook that is answered with 503 is called again with the same key and body", async () => {
  let answers = 0;
  const hooks = await webhookReceiver((_call, response) => void response.writeHead(++answers === 1 ? 503 : 204).end());
  onTestFinished(() => hooks.close());
  const { effects } = await succeeded(world, [webhook({ url: hooks.url })]);
  const sender = senderOf(webhooks());
  for (let tries = 1; tries <= 2; tries++) {
    await makeSendable(world, effects[0]!.id);
    await pass(sender);
    await sender.drain();
  }
  expect(await effect(world, effects[0]!.id)).toMatchObject({ state: "sent", attempts: 2 });
  expect(hooks.calls[1]).toMatchObject({ key: hooks.calls[0]!.key, body: hooks.calls[0]!.body });
});

it("a receiver without keys that did it, and whose gateway then says 502, is not called again: a person is asked", async () => {
  const hooks = await webhookReceiver((_call, response) => void response.writeHead(502).end("bad gateway"));
  onTestFinished(() => hooks.close());
  const { effects } = await succeeded(world, [webhook({ url: hooks.url, idempotencyWindowMs: 0 })]);
  const sender = senderOf(webhooks());
  await pass(sender);
  await sender.drain();
  await makeSendable(world, effects[0]!.id);
  expect(await pass(sender)).toMatchObject({ did: 0 });
  expect(hooks.calls).toHaveLength(1);
  expect(await effect(world, effects[0]!.id)).toMatchObject({
    state: "uncertain",
    error_message: "the receiver answered 502: bad gateway",
  });
});

it("one tenant's receivers that never answer hold a quarter of the room, pass after pass, and others' effects begin", async () => {
  const answer = Promise.withResolvers<void>();
  const hooks = await webhookReceiver(
    (_call, response) => void answer.promise.then(() => response.writeHead(204).end()),
  );
  onTestFinished(() => hooks.close());
  const many = Array.from({ length: 6 }, (_, i) => webhook({ name: `hook-${i}`, url: hooks.url }));
  await succeeded(world, many);
  const sender = senderOf(webhooks(8));
  expect(await pass(sender)).toMatchObject({ did: 2 });
  // There is room, and it is not for this tenant.
  expect(await pass(sender)).toMatchObject({ did: 0 });
  const tenants = await Promise.all(["b", "c", "d", "e"].map((name) => world.newTenant(name)));
  for (const tenantId of tenants) {
    const effects = ["x", "y", "z"].map((name) => webhook({ name, url: hooks.url }));
    const { grant } = await running(world, { tenantId, effects });
    await world.complete(grant);
  }
  // The first of every tenant before anybody's second, and no more than the adapter can take.
  expect(await pass(sender)).toMatchObject({ did: 6 });
  expect(await pass(sender)).toMatchObject({ did: 0 });
  const { rows } = await world.admin.query(
    "select tenant_id, count(*)::int as n from effect where state = 'sending' group by 1",
  );
  const sendingOf = (tenantId: Uuid) => rows.find((row) => row.tenant_id === tenantId)?.n;
  expect(sendingOf(world.tenantId)).toBe(2);
  expect(tenants.map(sendingOf).toSorted()).toEqual([1, 1, 2, 2]);
  // What ends makes room for its tenant again.
  answer.resolve();
  await sender.drain();
  expect(hooks.calls).toHaveLength(8);
  expect(await pass(sender)).toMatchObject({ did: 8 });
  await sender.drain();
  expect(await pass(sender)).toMatchObject({ did: 2 });
});

it("a sender that was frozen between its claim and its attempt does not begin: somebody else may be at it", async () => {
  const hooks = await webhookReceiver();
  onTestFinished(() => hooks.close());
  const { effects } = await succeeded(world, [webhook({ url: hooks.url })]);
  const { clock } = world.authority;
  let frozenMs = 0;
  const authority = { ...world.authority, clock: { ...clock, monotonic: () => clock.monotonic() + frozenMs } };
  world.faults.once("send-effect:written", () => {
    frozenMs = SEND_LEASE_MS;
  });
  const sender = senderOf(webhooks(), { authority });
  await pass(sender);
  await sender.drain();
  expect(hooks.calls).toEqual([]);
  expect(await effect(world, effects[0]!.id)).toMatchObject({ state: "pending", budget_attempts: 0 });
});

it("what was never sent until its link died is not sent with it: it has failed, and a person's resend gives it a new one", async () => {
  const post = await mailReceiver();
  onTestFinished(() => post.close());
  const { effects } = await succeeded(world, [email({ text: "At {{result.url}}" })]);
  const id = effects[0]!.id;
  await world.admin.query(
    `update effect set request = jsonb_set(request, '{facts,result,linkExpires}', to_jsonb(floor(extract(epoch from now())) - 1))
      where id = $1`,
    [id],
  );
  const sender = senderOf(emails(post.port));
  await pass(sender);
  await sender.drain();
  expect(post.mails).toEqual([]);
  expect(await effect(world, id)).toMatchObject({
    state: "failed",
    error_message: expect.stringMatching(/link .* has expired/),
  });
  const request = { tenantId: world.tenantId, actor: "ada", effectId: id, decision: "resend", reason: "late" } as const;
  expect(await resolveEffect(world.authority, request)).toEqual({ kind: "resolved" });
  await pass(sender);
  await sender.drain();
  expect(post.mails).toHaveLength(1);
  expect(await effect(world, id)).toMatchObject({ state: "sent" });
});

it("a report that gets no answer is said again, and counts once", async () => {
  const hooks = await webhookReceiver();
  onTestFinished(() => hooks.close());
  const { effects } = await succeeded(world, [webhook({ url: hooks.url })]);
  const lost = { ...world.authority };
  let told = 0;
  const authority: typeof lost = {
    ...lost,
    async transact(verb, work) {
      const answer = await lost.transact(verb, work);
      // It committed, and nobody heard of it.
      if (verb === "settle-effect" && ++told === 1) throw outcomeUnknown("the reply was lost", undefined);
      return answer;
    },
  };
  const sender = senderOf(webhooks(), { authority });
  await pass(sender);
  await sender.drain();
  expect([told, hooks.calls.length]).toEqual([2, 1]);
  expect(await effect(world, effects[0]!.id)).toMatchObject({ state: "sent", attempts: 1 });
});

it("a claim that gets no answer is said again, and sends once", async () => {
  const hooks = await webhookReceiver();
  onTestFinished(() => hooks.close());
  const { effects } = await succeeded(world, [webhook({ url: hooks.url })]);
  let told = 0;
  const authority: World["authority"] = {
    ...world.authority,
    async transact(verb, work) {
      const answer = await world.authority.transact(verb, work);
      if (verb === "send-effect" && ++told === 1) throw outcomeUnknown("the reply was lost", undefined);
      return answer;
    },
  };
  const sender = senderOf(webhooks(), { authority });
  await pass(sender);
  await sender.drain();
  expect([told, hooks.calls.length]).toEqual([2, 1]);
  expect(await effect(world, effects[0]!.id)).toMatchObject({ state: "sent", attempts: 1 });
});

it("a sender that is asked to stop lets what it sends end, and begins nothing more", async () => {
  const arrived = Promise.withResolvers<() => void>();
  const hooks = await webhookReceiver((_call, response) => arrived.resolve(() => void response.writeHead(204).end()));
  onTestFinished(() => hooks.close());
  const { effects } = await succeeded(world, [webhook({ url: hooks.url })]);
  const sender = senderOf(webhooks());
  await pass(sender);
  const answer = await arrived.promise;
  const stopped = sender.stop();
  answer();
  await stopped;
  expect(await effect(world, effects[0]!.id)).toMatchObject({ state: "sent" });
});

it("what does not end within the grace is broken off, and says that nobody knows", async () => {
  const arrived = Promise.withResolvers<void>();
  const hooks = await webhookReceiver(() => arrived.resolve());
  onTestFinished(() => hooks.close());
  const { effects } = await succeeded(world, [webhook({ url: hooks.url, idempotencyWindowMs: 0 })]);
  const sender = senderOf(webhooks(), { graceMs: 0 });
  await pass(sender);
  await arrived.promise;
  await sender.stop();
  expect(await effect(world, effects[0]!.id)).toMatchObject({ state: "uncertain" });
});
