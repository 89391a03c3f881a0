import { TEST_EVENT } from "../../domain/webhooks/events.ts";
import { showId, type Uuid } from "../../kernel/ids.ts";
import { writeAudit } from "../../store/rows/audit.ts";
import { insertTest, lockDeliveries, updateDeliveries } from "../../store/rows/webhooks/deliveries.ts";
import { lockEndpoint } from "../../store/rows/webhooks/endpoints.ts";
import type { Authority } from "../authority.ts";

type Of = { tenantId: Uuid; actor: string; endpointId: Uuid };

export type TestOutcome = { kind: "asked"; id: bigint } | { kind: "not-found" };

/**
 * Sends a test to an endpoint, also to a disabled one: once, whatever comes of it.
 * Locks   the endpoint.
 * Time    authority time, after the lock.
 * Writes  webhook_delivery, an audit event.
 * Replay  another test.
 */
export async function testWebhook(authority: Authority, request: Of): Promise<TestOutcome> {
  const { tenantId, actor, endpointId } = request;
  const outcome = await authority.transact("test-webhook", async (tx): Promise<TestOutcome> => {
    if ((await lockEndpoint(tx, tenantId, endpointId)) === undefined) return { kind: "not-found" };
    const nowAt = await tx.authorityNow();
    const id = await insertTest(tx, { endpoint_id: endpointId, tenant_id: tenantId, type: TEST_EVENT }, nowAt);
    const subject = showId("whk", endpointId);
    await writeAudit(tx, { tenantId, actor, action: "webhook.test", subject, after: { deliveryId: String(id) } });
    return { kind: "asked", id };
  });
  if (outcome.kind === "asked") authority.signals.effectsDue();
  return outcome;
}

export type RedeliverOutcome =
  | { kind: "asked" | "repeated" }
  | { kind: "not-found" }
  /** An attempt is being made. */
  | { kind: "sending" }
  | { kind: "endpoint-disabled" };

/**
 * Sends a settled delivery again, under the same event id, with a fresh budget.
 * Locks   the delivery, waiting for who settles it; the endpoint.
 * Time    authority time, after the locks.
 * Writes  webhook_delivery, an audit event.
 * Replay  `repeated` while it waits.
 */
export async function redeliver(authority: Authority, request: Of & { deliveryId: bigint }): Promise<RedeliverOutcome> {
  const { tenantId, actor, endpointId, deliveryId } = request;
  const outcome = await authority.transact("redeliver", async (tx): Promise<RedeliverOutcome> => {
    const [row] = await lockDeliveries(tx, [deliveryId]);
    if (row === undefined || row.tenant_id !== tenantId || row.endpoint_id !== endpointId) return { kind: "not-found" };
    const endpoint = await lockEndpoint(tx, tenantId, endpointId);
    if (endpoint === undefined) return { kind: "not-found" };
    if (row.state === "sending") return { kind: "sending" };
    if (row.state === "pending") return { kind: "repeated" };
    if (endpoint.status === "disabled") return { kind: "endpoint-disabled" };
    const nowAt = await tx.authorityNow();
    const again = { budget_attempts: 0, budget_from: nowAt, next_attempt_at: nowAt, settled_at: null };
    await updateDeliveries(tx, [{ ...row, ...again, state: "pending" }]);
    await writeAudit(tx, {
      tenantId,
      actor,
      action: "webhook.redeliver",
      subject: showId("whk", endpointId),
      before: { deliveryId: String(deliveryId), state: row.state, attempts: row.attempts },
    });
    return { kind: "asked" };
  });
  if (outcome.kind === "asked") authority.signals.effectsDue();
  return outcome;
}
