import type { Authority } from "../../authority/authority.ts";
import { claimDeliveries, type DeliveryGrant } from "../../authority/webhooks/claim-deliveries.ts";
import { findDueTellings } from "../../authority/webhooks/due.ts";
import { settleDelivery } from "../../authority/webhooks/settle-delivery.ts";
import type { DeliveryReport } from "../../domain/webhooks/settlement.ts";
import type { EventPoster } from "../../handlers/effects/event-webhook.ts";
import { messageOf } from "../../kernel/errors.ts";
import { createSendingLoop, type Sender } from "./sending-loop.ts";

/** Tells tenants' servers of events. */
export function createEventSender(options: { authority: Authority; poster: EventPoster; graceMs: number }): Sender {
  const { authority, poster } = options;
  const { clock, log, metrics } = authority;

  async function send(grant: DeliveryGrant, signal: AbortSignal): Promise<DeliveryReport> {
    const startedMs = clock.monotonic();
    try {
      return await poster.send(grant, signal);
    } catch (error) {
      log.error({ event: grant.eventId, err: error, reason: messageOf(error) }, "an event could not be posted");
      return { kind: "failed", status: null, message: messageOf(error), retryable: true };
    } finally {
      metrics.deliverySeconds.observe((clock.monotonic() - startedMs) / 1000);
    }
  }

  async function settle({ id, claimId, eventId, attempt }: DeliveryGrant, report: DeliveryReport): Promise<void> {
    const outcome = await settleDelivery(authority, { id, claimId, report });
    const said = { event: eventId, report: report.kind };
    if (outcome.kind === "stale")
      return log.warn(said, "a report changed nothing: its event was settled, or is with another sender");
    if (report.kind !== "delivered")
      log.warn({ ...said, attempt, reason: report.message }, "an event was not delivered");
    if (outcome.disabled) log.warn(said, "a webhook was disabled: it only failed");
  }

  return createSendingLoop(
    authority,
    {
      name: "webhook-events",
      concurrency: poster.concurrency,
      findDue: (limits) => findDueTellings(authority, limits),
      claim: (claim) => claimDeliveries(authority, claim),
      send,
      notSent: (message): DeliveryReport => ({ kind: "not-sent", message }),
      settle,
      nameOf: (grant) => grant.eventId,
      close: async () => undefined,
    },
    options.graceMs,
  );
}
