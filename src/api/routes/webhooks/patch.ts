import { z } from "zod";
import { changeWebhook } from "../../../authority/webhooks/change-webhook.ts";
import { WRITERS } from "../../context.ts";
import { WEBHOOK_CHANGE_BODY } from "../../examples/webhooks.ts";
import { noFields } from "../../input/no-fields.ts";
import { webhookSchema } from "../../present/webhooks/webhook.ts";
import { defineRoute } from "../../route.ts";
import {
  checkUrl,
  getWebhookId,
  noSuchWebhook,
  readScheduleIds,
  shownWebhook,
  webhookChange,
  webhookParams,
} from "./webhook-ref.ts";

export const patchWebhookRoute = defineRoute({
  method: "patch",
  path: "/v1/webhooks/{webhook}",
  tag: "webhooks",
  summary: "Change a webhook",
  description: "What waits is sent to the new URL. What it hears of changes for what ends from now on.",
  roles: WRITERS,
  params: webhookParams,
  query: noFields,
  body: webhookChange,
  example: WEBHOOK_CHANGE_BODY,
  answer: {
    kind: "ok",
    description: "The webhook after the change",
    schema: z.strictObject({ webhook: webhookSchema, changed: z.boolean() }),
  },
  problems: ["not-found"],
  async handle({ params: { webhook: ref }, body }, context, caller) {
    const { tenantId, actor } = caller;
    const id = getWebhookId(ref);
    await shownWebhook(context, caller, id, ref);
    const { url, events, description, scheduleIds: refs, lateAfterMs } = body;
    if (url !== undefined) checkUrl(context, caller, url);
    const scheduleIds = refs == null ? refs : await readScheduleIds(context, caller, refs);
    const outcome = await changeWebhook(context.authority, {
      tenantId,
      actor,
      id,
      change: {
        ...(url === undefined ? {} : { url }),
        ...(events === undefined ? {} : { events }),
        ...(description === undefined ? {} : { description }),
        ...(scheduleIds === undefined ? {} : { scheduleIds }),
        ...(lateAfterMs === undefined ? {} : { lateAfterMs }),
      },
    });
    if (outcome.kind === "not-found") throw noSuchWebhook(ref);
    const webhook = await shownWebhook(context, caller, id, ref);
    return { kind: "ok", body: { webhook, changed: outcome.kind === "changed" } };
  },
});
