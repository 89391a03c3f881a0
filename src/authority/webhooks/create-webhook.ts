import { MOST_WEBHOOKS } from "../../domain/webhooks/definition.ts";
import type { EventType } from "../../domain/webhooks/events.ts";
import { mintId, randomBucket, showId, type Uuid } from "../../kernel/ids.ts";
import { writeAudit } from "../../store/rows/audit.ts";
import { lockTenant } from "../../store/rows/tenants/tenants.ts";
import { countEndpoints, type EndpointRow, insertEndpoint, lockEndpoint } from "../../store/rows/webhooks/endpoints.ts";
import type { Authority } from "../authority.ts";

/** What a person says of an endpoint. */
export type WebhookDraft = {
  url: string;
  events: EventType[];
  description: string | null;
  scheduleIds: Uuid[] | null;
  lateAfterMs: number;
};

export type CreateWebhookOutcome =
  | { kind: "created"; endpoint: EndpointRow }
  | { kind: "too-many"; used: number }
  | { kind: "no-tenant" };

/**
 * Makes an endpoint: it hears of what ends from the next transaction on.
 * Locks   the tenant for no key update, so that the count is exact.
 * Time    authority time, after the lock.
 * Writes  webhook_endpoint, an audit event.
 * Replay  another endpoint.
 */
export function createWebhook(
  authority: Authority,
  request: { tenantId: Uuid; actor: string; draft: WebhookDraft },
): Promise<CreateWebhookOutcome> {
  const { tenantId, actor, draft } = request;
  return authority.transact("create-webhook", async (tx): Promise<CreateWebhookOutcome> => {
    if (!(await lockTenant(tx, tenantId))) return { kind: "no-tenant" };
    const used = await countEndpoints(tx, tenantId);
    if (used >= MOST_WEBHOOKS) return { kind: "too-many", used };
    const nowAt = await tx.authorityNow();
    const id = mintId(nowAt, randomBucket());
    const { url, events, description, scheduleIds: schedule_ids, lateAfterMs: late_after_ms } = draft;
    const said = { url, events, description, schedule_ids, late_after_ms };
    await insertEndpoint(tx, { ...said, id, tenant_id: tenantId, created_at: nowAt, created_by: actor });
    await writeAudit(tx, {
      tenantId,
      actor,
      action: "webhook.create",
      subject: showId("whk", id),
      after: { ...draft },
    });
    return { kind: "created", endpoint: (await lockEndpoint(tx, tenantId, id))! };
  });
}
