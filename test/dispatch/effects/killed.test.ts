import type { ServerResponse } from "node:http";
import { expect, onTestFinished, test } from "vitest";
import { running } from "../../authority/scenes.ts";
import { deliveries, listening, makeDue } from "../../authority/webhooks/scenes.ts";
import { type Delivery, webhookReceiver } from "../../support/receivers.ts";
import { type NodeOptions, spawnNode, startNode, until } from "../../support/system.ts";
import { createWorld } from "../../support/world.ts";

const PATIENCE_MS = 60_000;

/** Senders of events that are killed without a word: nothing is lost, and a receiver knows again what it had. */
async function openScene(events: number, answer?: (call: Delivery, response: ServerResponse) => void) {
  const world = await createWorld();
  const hooks = await webhookReceiver(answer);
  onTestFinished(async () => {
    await hooks.close();
    await world.check();
    await world.close();
  });
  await listening(world, ["run.succeeded"], { url: hooks.url });
  for (let n = 0; n < events; n++) await world.complete((await running(world)).grant);
  const options: NodeOptions = {
    roles: ["sender"],
    url: world.url,
    // A quarter of it is a tenant's.
    config: { PUNCTUAL_OUTBOUND_ALLOW: "127.0.0.0/8", PUNCTUAL_WEBHOOK_CONCURRENCY: "16" },
  };
  const states = async () => (await deliveries(world)).map(({ state, attempts }) => `${state} ${attempts}`);
  const inherit = async () => {
    // The lease of who was killed is over.
    await makeDue(world);
    const heir = await startNode(options);
    onTestFinished(() => heir.stop());
    const isDone = async () => (await states()).every((one) => one.startsWith("delivered"));
    await until("all are delivered", isDone, PATIENCE_MS, states);
  };
  return { hooks, options, states, inherit };
}

const idOf = (call: Delivery) => String(call.headers["webhook-id"]);

test("what a sender was sending when it was killed is sent again by another process under the same ids, and nothing is lost", {
  timeout: 2 * PATIENCE_MS,
}, async () => {
  const held: string[] = [];
  let isHolding = true;
  const answered = new Set<string>();
  const { hooks, options, states, inherit } = await openScene(10, (call, response) => {
    if (isHolding && answered.size === 3) return void held.push(idOf(call));
    answered.add(idOf(call));
    response.writeHead(204).end();
  });
  const doomed = await spawnNode(options);
  const cameSoFar = async () => (await states()).filter((one) => one === "delivered 1").length;
  const isMidway = async () => held.length === 4 && (await cameSoFar()) === 3;
  await until("three are delivered, and four under way", isMidway, PATIENCE_MS, states);
  await doomed.kill();
  expect((await states()).toSorted()).toEqual([
    ...Array(3).fill("delivered 1"),
    ...Array(3).fill("pending 0"),
    ...Array(4).fill("sending 1"),
  ]);

  isHolding = false;
  await inherit();
  expect((await states()).toSorted()).toEqual([...Array(6).fill("delivered 1"), ...Array(4).fill("delivered 2")]);
  const bodies = Map.groupBy(hooks.calls, idOf);
  expect(bodies.size).toBe(10);
  for (const [id, calls] of bodies) {
    expect(calls.length, id).toBe(held.includes(id) ? 2 : 1);
    expect(new Set(calls.map((call) => call.body)).size).toBe(1);
  }
});

test.each([
  ["before its claim is written down", "claim-deliveries:written", "pending 0", 1, "delivered 1"],
  ["once it had its answer", "effect:sent", "sending 1", 2, "delivered 2"],
  ["as it wrote down what came of it", "settle-delivery:locked", "sending 1", 2, "delivered 2"],
])(
  "an event whose sender was killed %s arrives all the same, under one id",
  { timeout: 2 * PATIENCE_MS },
  async (_when, killAt, left, calls, end) => {
    const { hooks, options, states, inherit } = await openScene(1);
    await (await spawnNode({ ...options, killAt })).exited;
    expect(await states()).toEqual([left]);
    await inherit();
    expect(await states()).toEqual([end]);
    expect(hooks.calls).toHaveLength(calls);
    expect(new Set(hooks.calls.map((call) => `${idOf(call)} ${call.body}`)).size).toBe(1);
  },
);
