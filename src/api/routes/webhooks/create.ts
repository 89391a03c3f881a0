import { createWebhook } from "../../../authority/webhooks/create-webhook.ts";
import { webhookFields } from "../../../domain/webhooks/definition.ts";
import { showId } from "../../../kernel/ids.ts";
import { WRITERS } from "../../context.ts";
import { WEBHOOK_BODY } from "../../examples/webhooks.ts";
import { noSuchTenant } from "../../identity/acting.ts";
import { noFields } from "../../input/no-fields.ts";
import { webhookSchema } from "../../present/webhooks/webhook.ts";
import { defineRoute } from "../../route.ts";
import { checkUrl, readScheduleIds, shownWebhook, tooManyWebhooks } from "./webhook-ref.ts";

export const createWebhookRoute = defineRoute({
  method: "post",
  path: "/v1/webhooks",
  tag: "webhooks",
  summary: "Have a server told of what happens to runs",
  description:
    "It hears of what ends from now on. Each call makes another webhook: after a doubtful end, look in the list.",
  roles: WRITERS,
  params: noFields,
  query: noFields,
  body: webhookFields,
  example: WEBHOOK_BODY,
  answer: { kind: "created", description: "The webhook", schema: webhookSchema },
  problems: ["too-many-webhooks"],
  async handle({ body }, context, caller) {
    const { tenantId, actor } = caller;
    checkUrl(context, caller, body.url);
    const scheduleIds = body.scheduleIds === null ? null : await readScheduleIds(context, caller, body.scheduleIds);
    const outcome = await createWebhook(context.authority, { tenantId, actor, draft: { ...body, scheduleIds } });
    if (outcome.kind === "no-tenant") throw noSuchTenant(showId("ten", tenantId));
    if (outcome.kind === "too-many") throw tooManyWebhooks(outcome.used);
    const { id } = outcome.endpoint;
    const shown = showId("whk", id);
    return {
      kind: "created",
      headers: { location: `/v1/webhooks/${shown}` },
      body: await shownWebhook(context, caller, id, shown),
    };
  },
});
