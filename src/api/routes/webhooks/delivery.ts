import { READERS } from "../../context.ts";
import { noFields } from "../../input/no-fields.ts";
import { deliverySchema } from "../../present/webhooks/webhook.ts";
import { defineRoute } from "../../route.ts";
import { deliveryParams, shownDelivery } from "./delivery-ref.ts";
import { getWebhookId } from "./webhook-ref.ts";

export const getDeliveryRoute = defineRoute({
  method: "get",
  path: "/v1/webhooks/{webhook}/deliveries/{delivery}",
  tag: "webhooks",
  summary: "Show one delivery",
  roles: READERS,
  params: deliveryParams,
  query: noFields,
  answer: { kind: "ok", description: "The delivery as it stands", schema: deliverySchema },
  problems: ["not-found"],
  async handle({ params: { webhook, delivery } }, context, caller) {
    return { kind: "ok", body: await shownDelivery(context, caller, getWebhookId(webhook), delivery) };
  },
});
