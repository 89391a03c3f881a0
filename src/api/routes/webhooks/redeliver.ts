import { z } from "zod";
import { redeliver } from "../../../authority/webhooks/send-again.ts";
import { WRITERS } from "../../context.ts";
import { noFields } from "../../input/no-fields.ts";
import { deliverySchema } from "../../present/webhooks/webhook.ts";
import { Problem } from "../../problems/problem.ts";
import { defineRoute } from "../../route.ts";
import { deliveryParams, getDeliveryId, noSuchDelivery, shownDelivery } from "./delivery-ref.ts";
import { getWebhookId } from "./webhook-ref.ts";

export const redeliverRoute = defineRoute({
  method: "post",
  path: "/v1/webhooks/{webhook}/deliveries/{delivery}/redeliver",
  tag: "webhooks",
  summary: "Send a delivery again, under the same event id",
  roles: WRITERS,
  params: deliveryParams,
  query: noFields,
  body: z.strictObject({}),
  example: {},
  answer: {
    kind: "ok",
    description: "The delivery, which waits to be made",
    schema: z.strictObject({ delivery: deliverySchema, changed: z.boolean().describe("false: it waits already") }),
  },
  problems: ["not-found", "effect-sending", "webhook-disabled"],
  async handle({ params: { webhook, delivery: ref } }, context, caller) {
    const endpointId = getWebhookId(webhook);
    const { tenantId, actor } = caller;
    const deliveryId = getDeliveryId(ref);
    const outcome = await redeliver(context.authority, { tenantId, actor, endpointId, deliveryId });
    switch (outcome.kind) {
      case "not-found":
        throw noSuchDelivery(ref);
      case "sending":
        throw new Problem("effect-sending", "The event is being sent right now", { headers: { "retry-after": "10" } });
      case "endpoint-disabled":
        throw new Problem("webhook-disabled", "The webhook is disabled: enable it first");
      case "asked":
      case "repeated": {
        const delivery = await shownDelivery(context, caller, endpointId, ref);
        return { kind: "ok", body: { delivery, changed: outcome.kind === "asked" } };
      }
    }
  },
});
