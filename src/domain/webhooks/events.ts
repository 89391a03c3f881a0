/** What an endpoint may hear of. docs/webhooks.md has each. */
export const EVENT_TYPES = [
  "run.succeeded",
  "run.failed",
  "run.dead-lettered",
  "run.canceled",
  "run.skipped",
  "run.late",
] as const;
export type EventType = (typeof EVENT_TYPES)[number];

/** What a person sends to see whether anybody listens; it needs no subscription. */
export const TEST_EVENT = "webhook.test";

export const ENDPOINT_STATUSES = ["enabled", "disabled"] as const;
export type EndpointStatus = (typeof ENDPOINT_STATUSES)[number];

/** The life of a delivery. The SQL CHECK and docs/lifecycle.md are tested against this table. */
export type DeliveryState = "pending" | "sending" | "delivered" | "failed";
export const DELIVERY_EDGES: Readonly<Record<DeliveryState, readonly DeliveryState[]>> = {
  pending: ["sending", "failed"], // failed: its endpoint is disabled
  sending: ["delivered", "pending", "failed", "sending"], // sending: its sender was not heard of again
  delivered: ["pending"], // a person's redelivery
  failed: ["pending"], // the same
};
export const DELIVERY_STATES = Object.keys(DELIVERY_EDGES) as readonly DeliveryState[] as [
  DeliveryState,
  ...DeliveryState[],
];

/** `webhook-id`: the same for every endpoint, and in every attempt. No full stops: they divide what is signed. */
export function eventIdOf(type: string, of: string, n: number): string {
  return `${type.replaceAll(".", "-")}-${of}-${n}`;
}
