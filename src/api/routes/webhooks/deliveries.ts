import { z } from "zod";
import { DELIVERY_STATES } from "../../../domain/webhooks/events.ts";
import { listDeliveries } from "../../../store/reads/webhooks/webhooks.ts";
import { READERS } from "../../context.ts";
import { afterSchema, limitSchema } from "../../input/fields.ts";
import { pageAnswer } from "../../present/page.ts";
import { deliverySchema, presentDelivery } from "../../present/webhooks/webhook.ts";
import { defineRoute } from "../../route.ts";
import { getWebhookId, shownWebhook, webhookParams } from "./webhook-ref.ts";

export const listDeliveriesRoute = defineRoute({
  method: "get",
  path: "/v1/webhooks/{webhook}/deliveries",
  tag: "webhooks",
  summary: "List what a webhook was told, newest first, and what came of it",
  description:
    "With `state` a page looks at 5,000 deliveries at most: it may be short, or empty, and still have a `next`.",
  roles: READERS,
  params: webhookParams,
  query: z.strictObject({
    state: z.enum(DELIVERY_STATES).optional().describe("What is so now: not stable over pages"),
    limit: limitSchema,
    after: afterSchema,
  }),
  answer: pageAnswer(deliverySchema),
  problems: ["not-found", "invalid-cursor"],
  async handle({ params: { webhook: ref }, query }, context, caller) {
    const id = getWebhookId(ref);
    await shownWebhook(context, caller, id, ref);
    const { state, limit } = query;
    const list = JSON.stringify(["deliveries", caller.tenantId, id, state]);
    const afterId = query.after === undefined ? undefined : String(context.cursors.read(list, query.after)[0]);
    const { items, nextAfterId } = await listDeliveries(context.db, caller.tenantId, id, {
      limit,
      ...(afterId === undefined ? {} : { afterId }),
      ...(state === undefined ? {} : { state }),
    });
    const next = nextAfterId === undefined ? null : context.cursors.write(list, [nextAfterId]);
    return { kind: "ok", body: { items: items.map(presentDelivery), next, source: "authority" } };
  },
});
