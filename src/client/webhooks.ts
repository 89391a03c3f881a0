import { type Http, pathOf } from "./http.ts";

/** Servers that are told of what happens to runs. Instants are RFC 3339 in UTC. */

export type WebhookDraft = {
  url: string;
  /** `run.succeeded`, `run.failed`, `run.dead-lettered`, `run.canceled`, `run.skipped`, `run.late` */
  events: readonly string[];
  description?: string | null;
  /** Only runs of these schedules; null: all runs. */
  scheduleIds?: readonly string[] | null;
  lateAfterMs?: number;
};

export type Webhook = {
  webhookId: string;
  url: string;
  description: string | null;
  events: string[];
  scheduleIds: string[] | null;
  lateAfterMs: number;
  status: "enabled" | "disabled";
  disabledAt: string | null;
  disabledReason: string | null;
  failures: number;
  failingSince: string | null;
  lastDeliveredAt: string | null;
  createdAt: string;
  createdBy: string;
};

export type Delivery = {
  deliveryId: string;
  /** `webhook-id`: the same in every attempt. */
  eventId: string;
  type: string;
  runId: string | null;
  state: "pending" | "sending" | "delivered" | "failed";
  attempts: number;
  answerStatus: number | null;
  message: string | null;
  occurredAt: string;
  nextAttemptAt: string | null;
  settledAt: string | null;
};
type Changed = { webhook: Webhook; changed: boolean };

export type Webhooks = {
  list(): Promise<{ items: Webhook[] }>;
  get(webhookId: string): Promise<Webhook>;
  /** Never repeated by itself: each call makes another one. */
  create(draft: WebhookDraft): Promise<Webhook>;
  edit(webhookId: string, change: Partial<WebhookDraft>): Promise<Changed>;
  delete(webhookId: string): Promise<{ webhookId: string }>;
  enable(webhookId: string): Promise<Changed>;
  disable(webhookId: string, reason?: string): Promise<Changed>;
  /** Sends a test event; `deliveries.get` says what came of it. */
  test(webhookId: string): Promise<Delivery>;
  deliveries: {
    list(
      webhookId: string,
      filters?: { state?: string; limit?: number; after?: string },
    ): Promise<{ items: Delivery[]; next: string | null }>;
    get(webhookId: string, deliveryId: string): Promise<Delivery>;
    /** Sends it again under the same event id. `changed` is false while it waits already. */
    redeliver(webhookId: string, deliveryId: string): Promise<{ delivery: Delivery; changed: boolean }>;
  };
};

export function webhooksOf(http: Http): Webhooks {
  return {
    list: () => http.call({ path: "/v1/webhooks" }),
    get: (id) => http.call({ path: pathOf`/v1/webhooks/${id}` }),
    create: (draft) => http.call({ method: "POST", path: "/v1/webhooks", body: JSON.stringify(draft), once: true }),
    edit: (id, change) =>
      http.call({ method: "PATCH", path: pathOf`/v1/webhooks/${id}`, body: JSON.stringify(change) }),
    delete: (id) => http.call({ method: "DELETE", path: pathOf`/v1/webhooks/${id}` }),
    enable: (id) => http.call({ method: "POST", path: pathOf`/v1/webhooks/${id}/enable`, body: "{}" }),
    disable: (id, reason) =>
      http.call({ method: "POST", path: pathOf`/v1/webhooks/${id}/disable`, body: JSON.stringify({ reason }) }),
    test: (id) => http.call({ method: "POST", path: pathOf`/v1/webhooks/${id}/test`, body: "{}", once: true }),
    deliveries: {
      list: (id, filters = {}) => http.call({ path: pathOf`/v1/webhooks/${id}/deliveries`, query: filters }),
      get: (id, deliveryId) => http.call({ path: pathOf`/v1/webhooks/${id}/deliveries/${deliveryId}` }),
      redeliver: (id, deliveryId) =>
        http.call({
          method: "POST",
          path: pathOf`/v1/webhooks/${id}/deliveries/${deliveryId}/redeliver`,
          body: "{}",
        }),
    },
  };
}
