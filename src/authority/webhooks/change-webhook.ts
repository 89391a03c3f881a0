import { showId, type Uuid } from "../../kernel/ids.ts";
import { writeAudit } from "../../store/rows/audit.ts";
import { deleteEndpoint, type EndpointRow, lockEndpoint, updateEndpoint } from "../../store/rows/webhooks/endpoints.ts";
import type { Authority } from "../authority.ts";
import type { WebhookDraft } from "./create-webhook.ts";

type Of = { tenantId: Uuid; actor: string; id: Uuid };

export type ChangeWebhookOutcome = { kind: "changed" | "unchanged"; endpoint: EndpointRow } | { kind: "not-found" };

const saidOf = (row: EndpointRow): WebhookDraft => ({
  url: row.url,
  events: row.events,
  description: row.description,
  scheduleIds: row.schedule_ids,
  lateAfterMs: row.late_after_ms,
});

/**
 * Changes what an endpoint is: another URL holds from its next attempt on, also for what waits.
 * Locks   the endpoint.
 * Time    none: nothing is decided by it.
 * Writes  webhook_endpoint, an audit event.
 * Replay  `unchanged`.
 */
export function changeWebhook(
  authority: Authority,
  request: Of & { change: Partial<WebhookDraft> },
): Promise<ChangeWebhookOutcome> {
  const { tenantId, actor, id, change } = request;
  return authority.transact("change-webhook", async (tx): Promise<ChangeWebhookOutcome> => {
    const row = await lockEndpoint(tx, tenantId, id);
    if (row === undefined) return { kind: "not-found" };
    const before = saidOf(row);
    const after = { ...before, ...change };
    const fields = (Object.keys(after) as (keyof WebhookDraft)[]).filter(
      (field) => JSON.stringify(after[field]) !== JSON.stringify(before[field]),
    );
    if (fields.length === 0) return { kind: "unchanged", endpoint: row };
    const { url, events, description, scheduleIds: schedule_ids, lateAfterMs: late_after_ms } = after;
    const endpoint = { ...row, url, events, description, schedule_ids, late_after_ms };
    await updateEndpoint(tx, endpoint);
    const of = (said: WebhookDraft) => Object.fromEntries(fields.map((field) => [field, said[field]]));
    const subject = showId("whk", id);
    await writeAudit(tx, { tenantId, actor, action: "webhook.change", subject, before: of(before), after: of(after) });
    return { kind: "changed", endpoint };
  });
}

/**
 * Lets an endpoint hear of events again, or no more. What waits for a disabled one is given up as its turn comes.
 * Locks   the endpoint.
 * Time    authority time, after the lock.
 * Writes  webhook_endpoint, an audit event.
 * Replay  `unchanged`.
 */
export function setWebhookStatus(
  authority: Authority,
  request: Of & ({ status: "enabled" } | { status: "disabled"; reason: string }),
): Promise<ChangeWebhookOutcome> {
  const { tenantId, actor, id, status } = request;
  return authority.transact("set-webhook-status", async (tx): Promise<ChangeWebhookOutcome> => {
    const row = await lockEndpoint(tx, tenantId, id);
    if (row === undefined) return { kind: "not-found" };
    if (row.status === status) return { kind: "unchanged", endpoint: row };
    const nowAt = await tx.authorityNow();
    // Who enables it has seen to it: failures count anew.
    const endpoint: EndpointRow =
      request.status === "disabled"
        ? { ...row, status, disabled_at: nowAt, disabled_reason: request.reason }
        : { ...row, status, disabled_at: null, disabled_reason: null, failures: 0, failing_since: null };
    await updateEndpoint(tx, endpoint);
    await writeAudit(tx, {
      tenantId,
      actor,
      action: status === "enabled" ? "webhook.enable" : "webhook.disable",
      subject: showId("whk", id),
      before: { status: row.status, reason: row.disabled_reason },
      after: { status, reason: endpoint.disabled_reason },
    });
    return { kind: "changed", endpoint };
  });
}

/**
 * Takes an endpoint away. What waits for it is not sent, and goes when its turn comes.
 * Locks   the endpoint.
 * Time    none.
 * Writes  webhook_endpoint, an audit event.
 * Replay  `not-found`.
 */
export function deleteWebhook(authority: Authority, request: Of): Promise<ChangeWebhookOutcome> {
  const { tenantId, actor, id } = request;
  return authority.transact("delete-webhook", async (tx): Promise<ChangeWebhookOutcome> => {
    const row = await lockEndpoint(tx, tenantId, id);
    if (row === undefined) return { kind: "not-found" };
    await deleteEndpoint(tx, id);
    const subject = showId("whk", id);
    await writeAudit(tx, { tenantId, actor, action: "webhook.delete", subject, before: saidOf(row) });
    return { kind: "changed", endpoint: row };
  });
}
