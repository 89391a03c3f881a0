/** Bodies and answers of signing keys and webhooks, for the reference page. */

export const SIGNING_KEY_BODY = { label: "Webhooks to the CRM" };

export const SIGNING_KEY = {
  keyId: "sgk_01kct0v2mz8h3bmq5d0v5x2c9r",
  label: "Webhooks to the CRM",
  state: "active",
  activeUntil: null,
  revokedAt: null,
  createdAt: "2026-11-30T09:00:00.000Z",
  createdBy: "key_01kcszzz3wf8xr7m2q9t5v0a1b",
  rotatedFrom: null,
  replacedBy: null,
};

export const WEBHOOK_BODY = {
  url: "https://hooks.example.com/punctual",
  events: ["run.failed" as const, "run.late" as const],
  description: "Pages whoever is on duty",
};
export const WEBHOOK_CHANGE_BODY = { events: ["run.failed" as const] };

export const WEBHOOK = {
  webhookId: "whk_01kct0v2mz8h3bmq5d0v5x2c9r",
  url: "https://hooks.example.com/punctual",
  description: "Pages whoever is on duty",
  events: ["run.failed", "run.late"],
  scheduleIds: null,
  lateAfterMs: 60_000,
  status: "enabled",
  disabledAt: null,
  disabledReason: null,
  failures: 0,
  failingSince: null,
  lastDeliveredAt: "2026-11-30T09:00:01.000Z",
  createdAt: "2026-11-30T08:00:00.000Z",
  createdBy: "key_01kcszzz3wf8xr7m2q9t5v0a1b",
};

export const DELIVERY = {
  deliveryId: "4711",
  eventId: "run-failed-run_01kct0v2mz8h3bmq5d0v5x2c9s-3",
  type: "run.failed",
  runId: "run_01kct0v2mz8h3bmq5d0v5x2c9s",
  state: "pending",
  attempts: 2,
  answerStatus: 503,
  message: "the receiver answered 503",
  occurredAt: "2026-11-30T09:00:00.000Z",
  nextAttemptAt: "2026-11-30T09:00:09.000Z",
  settledAt: null,
};

export const EMAIL_TEMPLATE_BODY = {
  subject: "{{schedule.name}} of {{run.scheduledAt}}",
  text: "The report is ready: {{result.url}}\n",
  html: '<p>The report is ready: <a href="{{result.url}}">open it</a>.</p>',
};
export const EMAIL_TEMPLATE = {
  name: "monthly",
  version: 2,
  ...EMAIL_TEMPLATE_BODY,
  updatedAt: "2026-11-30T09:00:00.000Z",
  updatedBy: "key_01kcszzz3wf8xr7m2q9t5v0a1b",
};
