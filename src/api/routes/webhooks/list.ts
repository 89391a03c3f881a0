import { z } from "zod";
import { listWebhooks } from "../../../store/reads/webhooks/webhooks.ts";
import { READERS } from "../../context.ts";
import { noFields } from "../../input/no-fields.ts";
import { presentWebhook, webhookSchema } from "../../present/webhooks/webhook.ts";
import { defineRoute } from "../../route.ts";

export const listWebhooksRoute = defineRoute({
  method: "get",
  path: "/v1/webhooks",
  tag: "webhooks",
  summary: "List the tenant's webhooks, newest first",
  roles: READERS,
  params: noFields,
  query: noFields,
  answer: {
    kind: "ok",
    description: "All of them",
    schema: z.strictObject({ items: z.array(webhookSchema), source: z.literal("authority") }),
  },
  problems: [],
  async handle(_call, context, caller) {
    const items = (await listWebhooks(context.db, caller.tenantId)).map(presentWebhook);
    return { kind: "ok", body: { items, source: "authority" } };
  },
});
