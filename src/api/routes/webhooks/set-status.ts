import { z } from "zod";
import { setWebhookStatus } from "../../../authority/webhooks/change-webhook.ts";
import { WRITERS } from "../../context.ts";
import { noteSchema } from "../../input/fields.ts";
import { noFields } from "../../input/no-fields.ts";
import { webhookSchema } from "../../present/webhooks/webhook.ts";
import { defineRoute } from "../../route.ts";
import { getWebhookId, noSuchWebhook, shownWebhook, webhookParams } from "./webhook-ref.ts";

const shared = {
  method: "post",
  tag: "webhooks",
  roles: WRITERS,
  params: webhookParams,
  query: noFields,
  answer: {
    kind: "ok",
    description: "The webhook after the change",
    schema: z.strictObject({ webhook: webhookSchema, changed: z.boolean().describe("false: it was so already") }),
  },
  problems: ["not-found"],
} as const;

export const enableWebhookRoute = defineRoute({
  ...shared,
  path: "/v1/webhooks/{webhook}/enable",
  summary: "Let a disabled webhook hear of events again",
  description: "Of what ends from now on; its failures count anew. What was given up meanwhile can be redelivered.",
  body: z.strictObject({}),
  example: {},
  async handle({ params: { webhook: ref } }, context, caller) {
    const { tenantId, actor } = caller;
    const id = getWebhookId(ref);
    const outcome = await setWebhookStatus(context.authority, { tenantId, actor, id, status: "enabled" });
    if (outcome.kind === "not-found") throw noSuchWebhook(ref);
    const webhook = await shownWebhook(context, caller, id, ref);
    return { kind: "ok", body: { webhook, changed: outcome.kind === "changed" } };
  },
});

export const disableWebhookRoute = defineRoute({
  ...shared,
  path: "/v1/webhooks/{webhook}/disable",
  summary: "Let a webhook hear of nothing for the time being",
  description: "What waits for it is given up as its turn comes, and can be redelivered later.",
  body: z.strictObject({ reason: noteSchema.default("a person disabled it") }),
  example: { reason: "moves to another host" },
  async handle({ params: { webhook: ref }, body: { reason } }, context, caller) {
    const { tenantId, actor } = caller;
    const id = getWebhookId(ref);
    const outcome = await setWebhookStatus(context.authority, { tenantId, actor, id, status: "disabled", reason });
    if (outcome.kind === "not-found") throw noSuchWebhook(ref);
    const webhook = await shownWebhook(context, caller, id, ref);
    return { kind: "ok", body: { webhook, changed: outcome.kind === "changed" } };
  },
});
