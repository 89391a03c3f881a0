import { Counter, Gauge, Histogram, type Registry } from "prom-client";

/** Of events for webhooks. */
export function webhookMetrics(registers: Registry[], buckets: number[]) {
  return {
    deliveries: new Counter({
      name: "punctual_webhook_deliveries_total",
      help: "What came of attempts to deliver events to webhooks: delivered, retry or failed",
      labelNames: ["outcome"] as const,
      registers,
    }),
    deliverySeconds: new Histogram({
      name: "punctual_webhook_delivery_seconds",
      help: "How long attempts to deliver events took",
      buckets: buckets,
      registers,
    }),
    deliveriesOverdue: new Gauge({
      name: "punctual_webhook_delivery_oldest_due_age_seconds",
      help: "How long the oldest event that may be delivered has been waiting for it",
      registers,
    }),
    webhooksDisabled: new Counter({
      name: "punctual_webhooks_disabled_total",
      help: "Webhooks that were disabled because they only failed",
      registers,
    }),
  };
}
