import { claimDeliveries, type DeliveryGrant } from "../../../src/authority/webhooks/claim-deliveries.ts";
import { createWebhook, type WebhookDraft } from "../../../src/authority/webhooks/create-webhook.ts";
import { settleDelivery } from "../../../src/authority/webhooks/settle-delivery.ts";
import type { DeliveryReport } from "../../../src/domain/webhooks/settlement.ts";
import { mintId, type Uuid } from "../../../src/kernel/ids.ts";
import type { World } from "../../support/world.ts";

export type Line = {
  id: bigint;
  endpoint_id: Uuid;
  type: string;
  run_id: Uuid | null;
  n: number;
  state: string;
  attempts: number;
  budget_attempts: number;
  answer_status: number | null;
  message: string | null;
};

/** An endpoint of the tenant; answers its id. */
export async function listening(
  world: World,
  events: WebhookDraft["events"],
  change: Partial<WebhookDraft> & { tenantId?: Uuid } = {},
): Promise<Uuid> {
  const { tenantId = world.tenantId, ...rest } = change;
  const url = "https://hooks.example.com/events";
  const draft = { url, events, description: null, scheduleIds: null, lateAfterMs: 60_000, ...rest };
  const made = await createWebhook(world.authority, { tenantId, actor: "ada", draft });
  if (made.kind !== "created") throw new Error(made.kind);
  return made.endpoint.id;
}

export async function deliveries(world: World, endpointId?: Uuid): Promise<Line[]> {
  const { rows } = await world.admin.query(
    "select * from webhook_delivery where $1::uuid is null or endpoint_id = $1 order by id",
    [endpointId ?? null],
  );
  return rows;
}

export async function endpoint(world: World, id: Uuid): Promise<Record<string, unknown>> {
  return (await world.admin.query("select * from webhook_endpoint where id = $1", [id])).rows[0];
}

export function claim(
  world: World,
  ids: readonly bigint[],
  change: { claimId?: Uuid; repeated?: boolean } = {},
): Promise<DeliveryGrant[]> {
  const claimId = change.claimId ?? mintId(Date.now(), 0);
  return claimDeliveries(world.authority, { claimId, ids, leaseMs: 60_000, repeated: change.repeated ?? false });
}

export const report = (world: World, { id, claimId }: DeliveryGrant, said: DeliveryReport) =>
  settleDelivery(world.authority, { id, claimId, report: said });

export const DELIVERED: DeliveryReport = { kind: "delivered", status: 204 };
export const FAILED: DeliveryReport = { kind: "failed", status: 500, message: "it answered 500", retryable: true };

/** Whatever waits is due now. */
export async function makeDue(world: World): Promise<void> {
  await world.admin.query("update webhook_delivery set next_attempt_at = clock_timestamp() where settled_at is null");
}

/** As if all that has happened to deliveries and endpoints had happened so long ago. */
export async function age(world: World, ms: number): Promise<void> {
  await world.admin.query("update webhook_delivery set budget_from = budget_from - $1 * interval '1 ms'", [ms]);
  await world.admin.query("update webhook_endpoint set failing_since = failing_since - $1 * interval '1 ms'", [ms]);
}
