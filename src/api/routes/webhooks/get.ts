import { READERS } from "../../context.ts";
import { noFields } from "../../input/no-fields.ts";
import { webhookSchema } from "../../present/webhooks/webhook.ts";
import { defineRoute } from "../../route.ts";
import { getWebhookId, shownWebhook, webhookParams } from "./webhook-ref.ts";

export const getWebhookRoute = defineRoute({
  method: "get",
  path: "/v1/webhooks/{webhook}",
  tag: "webhooks",
  summary: "Show one webhook",
  roles: READERS,
  params: webhookParams,
  query: noFields,
  answer: { kind: "ok", description: "The webhook as it stands", schema: webhookSchema },
  problems: ["not-found"],
  async handle({ params: { webhook } }, context, caller) {
    return { kind: "ok", body: await shownWebhook(context, caller, getWebhookId(webhook), webhook) };
  },
});
