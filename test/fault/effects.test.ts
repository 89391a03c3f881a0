import { expect, test } from "vitest";
import { findLapsedSends } from "../../src/authority/effects/due.ts";
import { lapseEffects } from "../../src/authority/effects/lapse.ts";
import { effect, effectsOf, email, expireSend, makeSendable, webhook } from "../authority/effects/scenes.ts";
import { running } from "../authority/scenes.ts";
import { mailReceiver, webhookReceiver } from "../support/receivers.ts";
import { type NodeOptions, spawnNode, startNode, until } from "../support/system.ts";
import { createWorld, type World } from "../support/world.ts";

/** Sender processes that are killed without a word, after the other side has it and before anybody wrote that down. */
async function openScene(onTestFinished: (close: () => Promise<void>) => void) {
  const world = await createWorld();
  const hooks = await webhookReceiver();
  const post = await mailReceiver();
  onTestFinished(async () => {
    await hooks.close();
    await post.close();
    await world.check();
    await world.close();
  });
  const options: NodeOptions = {
    roles: ["sender"],
    url: world.url,
    config: {
      PUNCTUAL_OUTBOUND_ALLOW: "127.0.0.0/8",
      PUNCTUAL_SMTP_URL: post.url,
      PUNCTUAL_SMTP_FROM: "punctual@example.com",
      PUNCTUAL_SMTP_TLS: "off",
    },
  };
  return { world, hooks, post, options };
}

async function sentAndKilled(world: World, options: NodeOptions, effects: Parameters<typeof running>[1]) {
  const { grant } = await running(world, effects);
  await world.complete(grant);
  const [one] = await effectsOf(world, grant.runId);
  const doomed = await spawnNode({ ...options, killAt: "effect:sent" });
  await doomed.exited;
  expect(await effect(world, one!.id)).toMatchObject({ state: "sending", attempts: 1 });
  await expireSend(world, one!.id);
  expect(await findLapsedSends(world.authority, 10)).toEqual([one!.id]);
  await lapseEffects(world.authority, [one!.id]);
  return one!;
}

test("an email whose sender was killed is held for a person, and never sent a second time", async ({
  onTestFinished,
}) => {
  const { world, post, options } = await openScene(onTestFinished);
  const one = await sentAndKilled(world, options, { effects: [email()] });
  expect(await effect(world, one.id)).toMatchObject({ state: "uncertain" });
  const next = await startNode(options);
  await makeSendable(world, one.id);
  await next.stop();
  expect([post.mails.length, (await effect(world, one.id)).state]).toEqual([1, "uncertain"]);
});

test("an email that is to be sent again all the same goes out with the same Message-ID", async ({ onTestFinished }) => {
  const { world, post, options } = await openScene(onTestFinished);
  const one = await sentAndKilled(world, options, { effects: [email({ onUncertain: "resend" })] });
  await makeSendable(world, one.id);
  const next = await startNode(options);
  await until("it is sent again", async () => (await effect(world, one.id)).state === "sent");
  await next.stop();
  expect(post.mails.map((mail) => mail.messageId)).toEqual(Array(2).fill(`<${one.action_id}@example.com>`));
});

test("a webhook whose sender was killed is called again under its key, so that its receiver knows it again", async ({
  onTestFinished,
}) => {
  const { world, hooks, options } = await openScene(onTestFinished);
  const one = await sentAndKilled(world, options, { effects: [webhook({ url: hooks.url })] });
  expect(await effect(world, one.id)).toMatchObject({ state: "pending", in_doubt: true });
  await makeSendable(world, one.id);
  const next = await startNode(options);
  await until("it is sent again", async () => (await effect(world, one.id)).state === "sent");
  await next.stop();
  expect(hooks.calls.map((call) => call.key)).toEqual([one.action_id, one.action_id]);
});
