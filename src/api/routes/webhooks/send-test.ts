import { z } from "zod";
import { testWebhook } from "../../../authority/webhooks/send-again.ts";
import { WRITERS } from "../../context.ts";
import { noFields } from "../../input/no-fields.ts";
import { deliverySchema } from "../../present/webhooks/webhook.ts";
import { defineRoute } from "../../route.ts";
import { shownDelivery } from "./delivery-ref.ts";
import { getWebhookId, noSuchWebhook, webhookParams } from "./webhook-ref.ts";

export const testWebhookRoute = defineRoute({
  method: "post",
  path: "/v1/webhooks/{webhook}/test",
  tag: "webhooks",
  summary: "Send a test event, also to a disabled webhook",
  description: "It is tried once; `GET …/deliveries/{delivery}` says what came of it.",
  roles: WRITERS,
  params: webhookParams,
  query: noFields,
  body: z.strictObject({}),
  example: {},
  answer: { kind: "created", description: "The delivery, which is yet to be made", schema: deliverySchema },
  problems: ["not-found"],
  async handle({ params: { webhook: ref } }, context, caller) {
    const endpointId = getWebhookId(ref);
    const { tenantId, actor } = caller;
    const outcome = await testWebhook(context.authority, { tenantId, actor, endpointId });
    if (outcome.kind === "not-found") throw noSuchWebhook(ref);
    return { kind: "created", body: await shownDelivery(context, caller, endpointId, String(outcome.id)) };
  },
});
