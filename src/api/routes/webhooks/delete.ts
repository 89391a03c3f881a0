import { z } from "zod";
import { deleteWebhook } from "../../../authority/webhooks/change-webhook.ts";
import { showId } from "../../../kernel/ids.ts";
import { WRITERS } from "../../context.ts";
import { noFields } from "../../input/no-fields.ts";
import { defineRoute } from "../../route.ts";
import { getWebhookId, noSuchWebhook, webhookParams } from "./webhook-ref.ts";

export const deleteWebhookRoute = defineRoute({
  method: "delete",
  path: "/v1/webhooks/{webhook}",
  tag: "webhooks",
  summary: "Take a webhook away; what waits for it is not sent",
  roles: WRITERS,
  params: webhookParams,
  query: noFields,
  answer: { kind: "ok", description: "It is gone", schema: z.strictObject({ webhookId: z.string() }) },
  problems: ["not-found"],
  async handle({ params: { webhook: ref } }, context, caller) {
    const id = getWebhookId(ref);
    const { tenantId, actor } = caller;
    const outcome = await deleteWebhook(context.authority, { tenantId, actor, id });
    if (outcome.kind === "not-found") throw noSuchWebhook(ref);
    return { kind: "ok", body: { webhookId: showId("whk", id) } };
  },
});
