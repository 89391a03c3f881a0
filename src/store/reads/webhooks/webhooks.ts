import type { DeliveryState } from "../../../domain/webhooks/events.ts";
import type { Instant } from "../../../kernel/clock.ts";
import type { Uuid } from "../../../kernel/ids.ts";
import { type Queryable, sql } from "../../database.ts";

/** Endpoints and deliveries as people see them. */

export type WebhookView = {
  id: Uuid;
  url: string;
  description: string | null;
  events: string[];
  scheduleIds: Uuid[] | null;
  lateAfterMs: number;
  status: "enabled" | "disabled";
  disabledAt: Instant | null;
  disabledReason: string | null;
  failures: number;
  failingSince: Instant | null;
  lastDeliveredAt: Instant | null;
  createdAt: Instant;
  createdBy: string;
};

export type DeliveryView = {
  id: bigint;
  type: string;
  runId: Uuid | null;
  n: number;
  state: DeliveryState;
  attempts: number;
  nextAttemptAt: Instant;
  answerStatus: number | null;
  message: string | null;
  occurredAt: Instant;
  settledAt: Instant | null;
};

const WEBHOOK = `id, url, description, to_jsonb(events) as events, schedule_ids as "scheduleIds", late_after_ms as "lateAfterMs", status,
  disabled_at as "disabledAt", disabled_reason as "disabledReason", failures, failing_since as "failingSince",
  last_delivered_at as "lastDeliveredAt", created_at as "createdAt", created_by as "createdBy"`;
const DELIVERY = `id, type, run_id as "runId", n, state, attempts, next_attempt_at as "nextAttemptAt",
  answer_status as "answerStatus", message, occurred_at as "occurredAt", settled_at as "settledAt"`;

const READ = sql("read_webhook", `select ${WEBHOOK} from webhook_endpoint where tenant_id = $1 and id = $2`);
const LIST = sql("list_webhooks", `select ${WEBHOOK} from webhook_endpoint where tenant_id = $1 order by id desc`);
const READ_DELIVERY = sql(
  "read_delivery",
  `select ${DELIVERY} from webhook_delivery where tenant_id = $1 and endpoint_id = $2 and id = $3`,
);
// A list of one, in the order of one index alone: that of ids would be read past everybody's newer deliveries.
const LIST_DELIVERIES = sql(
  "list_deliveries",
  `select * from (
     select ${DELIVERY}, $4::text is null or state = $4 as matches,
            row_number() over (order by endpoint_id, id desc) = $6 as "isLast"
       from webhook_delivery
      where tenant_id = $1 and endpoint_id = any($2::uuid[]) and id < coalesce($3::bigint, 9223372036854775807)
      order by endpoint_id, id desc limit $6::int) d
    where matches or "isLast" order by id desc limit $5::int`,
);
/** Deliveries of which a page with a filter is picked: one that few match reads no more. */
const WALK_ROWS = 5_000;

export async function readWebhook(db: Queryable, tenantId: Uuid, id: Uuid): Promise<WebhookView | undefined> {
  return (await db.query<WebhookView>(READ, [tenantId, id]))[0];
}

/** All of them: there are few. */
export function listWebhooks(db: Queryable, tenantId: Uuid): Promise<WebhookView[]> {
  return db.query<WebhookView>(LIST, [tenantId]);
}

export async function readDelivery(
  db: Queryable,
  tenantId: Uuid,
  endpointId: Uuid,
  id: bigint,
): Promise<DeliveryView | undefined> {
  return (await db.query<DeliveryView>(READ_DELIVERY, [tenantId, endpointId, id]))[0];
}

export type DeliveryPage = {
  items: DeliveryView[];
  /** After which delivery the next page begins; absent after the last one. */
  nextAfterId?: string;
};

/** Newest first; `afterId` is where the page before ended. */
export async function listDeliveries(
  db: Queryable,
  tenantId: Uuid,
  endpointId: Uuid,
  page: { afterId?: string; state?: DeliveryState; limit: number },
): Promise<DeliveryPage> {
  const { afterId = null, state = null, limit } = page;
  const walkRows = state === null ? limit + 1 : WALK_ROWS;
  const values = [tenantId, [endpointId], afterId, state, limit + 1, walkRows];
  const rows = await db.query<DeliveryView & { matches: boolean; isLast: boolean }>(LIST_DELIVERIES, values);
  const found = rows.filter((row) => row.matches);
  const items = found.slice(0, limit).map(({ matches: _, isLast: __, ...item }) => item);
  const last = found.length > items.length ? items.at(-1) : rows.find((row) => row.isLast);
  return last === undefined ? { items } : { items, nextAfterId: String(last.id) };
}
