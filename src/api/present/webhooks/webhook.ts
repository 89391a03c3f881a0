import { z } from "zod";
import {
  DELIVERY_STATES,
  ENDPOINT_STATUSES,
  EVENT_TYPES,
  eventIdOf,
  TEST_EVENT,
} from "../../../domain/webhooks/events.ts";
import { showId } from "../../../kernel/ids.ts";
import type { DeliveryView, WebhookView } from "../../../store/reads/webhooks/webhooks.ts";
import { DELIVERY, WEBHOOK } from "../../examples/webhooks.ts";
import { shownInstant } from "../../input/fields.ts";
import { showInstant, showInstantOrNull } from "../instant.ts";

const fields = z.strictObject({
  webhookId: z.string(),
  url: z.string(),
  description: z.string().nullable(),
  events: z.array(z.enum(EVENT_TYPES)),
  scheduleIds: z.array(z.string()).nullable().describe("Only runs of these; null: all runs"),
  lateAfterMs: z.int(),
  status: z.enum(ENDPOINT_STATUSES),
  disabledAt: shownInstant.nullable(),
  disabledReason: z.string().nullable(),
  failures: z.int().describe("Attempts that failed since the last one that did not"),
  failingSince: shownInstant.nullable(),
  lastDeliveredAt: shownInstant.nullable().describe("To the minute or so; null: never"),
  createdAt: shownInstant,
  createdBy: z.string(),
});
export const webhookSchema = fields.meta({ id: "Webhook", example: WEBHOOK });

const delivery = z.strictObject({
  deliveryId: z.string(),
  eventId: z.string().describe("`webhook-id`: the same in every attempt, and for every webhook"),
  type: z.enum([...EVENT_TYPES, TEST_EVENT]),
  runId: z.string().nullable().describe("null: a test"),
  state: z.enum(DELIVERY_STATES),
  attempts: z.int(),
  answerStatus: z.int().nullable().describe("Of the last attempt that was answered"),
  message: z.string().nullable().describe("What the last attempt came to, where there is something to say"),
  occurredAt: shownInstant,
  nextAttemptAt: shownInstant.nullable(),
  settledAt: shownInstant.nullable(),
});
export const deliverySchema = delivery.meta({ id: "WebhookDelivery", example: DELIVERY });

export function presentWebhook(view: WebhookView): z.output<typeof fields> {
  const { url, description, lateAfterMs, status, disabledReason, failures, createdBy } = view;
  return {
    webhookId: showId("whk", view.id),
    url,
    description,
    events: view.events as z.output<typeof fields>["events"],
    scheduleIds: view.scheduleIds?.map((id) => showId("sch", id)) ?? null,
    lateAfterMs,
    status,
    disabledAt: showInstantOrNull(view.disabledAt),
    disabledReason,
    failures,
    failingSince: showInstantOrNull(view.failingSince),
    lastDeliveredAt: showInstantOrNull(view.lastDeliveredAt),
    createdAt: showInstant(view.createdAt),
    createdBy,
  };
}

export function presentDelivery(view: DeliveryView): z.output<typeof delivery> {
  const { type, state, attempts, answerStatus, message } = view;
  const runId = view.runId === null ? null : showId("run", view.runId);
  const deliveryId = String(view.id);
  return {
    deliveryId,
    eventId: eventIdOf(type, runId ?? deliveryId, view.n),
    type: type as z.output<typeof delivery>["type"],
    runId,
    state,
    attempts,
    answerStatus,
    message,
    occurredAt: showInstant(view.occurredAt),
    nextAttemptAt: state === "pending" ? showInstant(view.nextAttemptAt) : null,
    settledAt: showInstantOrNull(view.settledAt),
  };
}
