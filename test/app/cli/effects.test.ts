import { Webhook } from "standardwebhooks";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type WebhookReceiver, webhookReceiver } from "../../support/receivers.ts";
import { startUp, type Up } from "./punctual.ts";

let up: Up;
let receiver: WebhookReceiver;
beforeAll(async () => {
  up = await startUp({ PUNCTUAL_OUTBOUND_ALLOW: "127.0.0.1" });
  // Nobody knows what a 500 has done, of a receiver that keeps no keys.
  receiver = await webhookReceiver((_call, response) => void response.writeHead(500).end());
});
afterAll(async () => {
  await up.stop();
  up.remove();
  await receiver.close();
});

/** A run whose webhook is uncertain: the run and the effect. */
async function inDoubt(): Promise<{ run: string; effect: string }> {
  const effects = [{ name: "crm", kind: "webhook", url: receiver.url, idempotencyWindowMs: 0 }];
  const create = ["runs", "create", "--job", "report.run-summary@1", "--set", JSON.stringify({ effects }), "--json"];
  const { runId } = JSON.parse((await up.run(...create)).out);
  const found = async () => JSON.parse((await up.run("runs", "get", runId, "--json")).out).effects[0];
  await expect.poll(async () => (await found())?.state).toBe("uncertain");
  return { run: runId, effect: (await found()).effectId };
}

test.each([
  ["sent", "counts as sent; it is not sent again", "resolved: sent"],
  ["drop", "dropped; it is not sent again", "resolved: dropped"],
])(
  "an uncertain effect that is resolved as %s says what was decided, then and beside its run",
  async (outcome, said, state) => {
    const { run, effect } = await inDoubt();
    const resolve = ["effects", "resolve", effect, "--outcome", outcome, "--reason", "asked them"];
    expect(await up.run(...resolve)).toMatchObject({ exitCode: 0, out: `${effect}: ${said}\n` });
    expect((await up.run(...resolve)).out).toBe(`${effect} was decided so already: ${said}\n`);
    expect((await up.run("runs", "get", run)).out).toMatch(new RegExp(`^${effect} +crm +webhook +${state} `, "m"));
    expect((await up.run("effects", "list")).out).toMatch(new RegExp(`^${effect} +crm +webhook +${state} `, "m"));
  },
  60_000,
);

test("one that is sent again says that it may happen twice", async () => {
  const { effect } = await inDoubt();
  const resolved = await up.run("effects", "resolve", effect, "--outcome", "resend", "--reason", "they want it");
  expect(resolved.out).toMatch(new RegExp(`^${effect}: to be sent again \\(\\w+\\); it may happen twice\\n$`));
});

test("a webhook made at the command line is told of a run, signed with a key made there, and told again on request", async () => {
  const told = await webhookReceiver();
  const key = (await up.run("signing-keys", "create", "--label", "events")).out.trim();
  const made = await up.run("webhooks", "create", told.url, "--event", "run.succeeded", "--json");
  const { webhookId } = JSON.parse(made.out);
  const { runId } = JSON.parse((await up.run("runs", "create", "--job", "report.run-summary@1", "--json")).out);
  await expect.poll(() => told.calls.length).toBe(1);
  const [call] = told.calls;
  expect(new Webhook(key).verify(call!.body, call!.headers as Record<string, string>)).toMatchObject({
    type: "run.succeeded",
    data: { run: { id: runId }, job: "report.run-summary" },
  });
  await expect
    .poll(async () => (await up.run("webhooks", "deliveries", webhookId)).out)
    .toMatch(new RegExp(`^\\d+ +run.succeeded +delivered +1 +204 .* ${runId}`, "m"));
  const { items } = JSON.parse((await up.run("webhooks", "deliveries", webhookId, "--json")).out);
  await up.run("webhooks", "redeliver", webhookId, "--delivery", items[0].deliveryId);
  await expect.poll(() => told.calls.length).toBe(2);
  expect(told.calls[1]!.headers["webhook-id"]).toBe(call!.headers["webhook-id"]);
  await up.run("webhooks", "disable", webhookId);
  expect((await up.run("webhooks", "list")).out).toMatch(new RegExp(`^${webhookId} .* disabled `, "m"));
  await told.close();
});
