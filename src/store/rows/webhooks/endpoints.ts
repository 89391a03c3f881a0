import type { EndpointStatus, EventType } from "../../../domain/webhooks/events.ts";
import type { Instant } from "../../../kernel/clock.ts";
import type { Uuid } from "../../../kernel/ids.ts";
import { type Queryable, sql } from "../../database.ts";
import { instantText } from "../../values.ts";

/** Where a tenant listens. */
export type EndpointRow = {
  id: Uuid;
  tenant_id: Uuid;
  url: string;
  description: string | null;
  events: EventType[];
  schedule_ids: Uuid[] | null;
  late_after_ms: number;
  status: EndpointStatus;
  disabled_at: Instant | null;
  disabled_reason: string | null;
  failures: number;
  failing_since: Instant | null;
  last_delivered_at: Instant | null;
  created_at: Instant;
  created_by: string;
};

const ENDPOINT_COLUMNS = `id, tenant_id, url, description, to_jsonb(events) as events, schedule_ids, late_after_ms, status, disabled_at,
  disabled_reason, failures, failing_since, last_delivered_at, created_at, created_by`;

const COUNT = sql("webhooks_count", "select count(*)::int as n from webhook_endpoint where tenant_id = $1");
const INSERT = sql(
  "webhooks_insert",
  `insert into webhook_endpoint (id, tenant_id, url, description, events, schedule_ids, late_after_ms, created_at, created_by)
   values ($1, $2, $3, $4, $5::text[], $6::uuid[], $7, $8::timestamptz, $9)`,
);
const LOCK = sql(
  "webhooks_lock",
  `select ${ENDPOINT_COLUMNS} from webhook_endpoint where tenant_id = $1 and id = $2 for update`,
);
const READ = sql("webhooks_read", `select ${ENDPOINT_COLUMNS} from webhook_endpoint where id = any($1::uuid[])`);
// Where all is well and stays so, nothing is to be written: then nobody waits for anybody.
const LOCK_SETTLING = sql(
  "webhooks_lock_settling",
  `select ${ENDPOINT_COLUMNS} from webhook_endpoint
    where id = any($1::uuid[]) or (id = any($2::uuid[]) and failures > 0) order by id for update`,
);
const UPDATE = sql(
  "webhooks_update",
  `update webhook_endpoint
      set url = $2, description = $3, events = $4::text[], schedule_ids = $5::uuid[], late_after_ms = $6, status = $7,
          disabled_at = $8::timestamptz, disabled_reason = $9, failures = $10, failing_since = $11::timestamptz
    where id = $1`,
);
const DELETE = sql("webhooks_delete", "delete from webhook_endpoint where id = $1");
/** To the minute: nothing is decided by it, and nobody waits for it. */
const NOTE_DELIVERY = sql(
  "webhooks_note_delivery",
  `update webhook_endpoint set last_delivered_at = $2::timestamptz
    where id = any(array(select id from webhook_endpoint
                          where id = any($1::uuid[])
                            and (last_delivered_at is null or last_delivered_at < $2::timestamptz - interval '1 minute')
                          order by id for no key update skip locked))`,
);

export async function countEndpoints(tx: Queryable, tenantId: Uuid): Promise<number> {
  return (await tx.query<{ n: number }>(COUNT, [tenantId]))[0]!.n;
}

export async function insertEndpoint(
  tx: Queryable,
  row: Pick<
    EndpointRow,
    | "id"
    | "tenant_id"
    | "url"
    | "description"
    | "events"
    | "schedule_ids"
    | "late_after_ms"
    | "created_at"
    | "created_by"
  >,
): Promise<void> {
  const { id, tenant_id, url, description, events, schedule_ids, late_after_ms, created_at, created_by } = row;
  const values = [id, tenant_id, url, description, events, schedule_ids, late_after_ms];
  await tx.query(INSERT, [...values, instantText(created_at), created_by]);
}

export async function lockEndpoint(tx: Queryable, tenantId: Uuid, id: Uuid): Promise<EndpointRow | undefined> {
  return (await tx.query<EndpointRow>(LOCK, [tenantId, id]))[0];
}

export async function readEndpoints(db: Queryable, ids: readonly Uuid[]): Promise<Map<Uuid, EndpointRow>> {
  const rows = await db.query<EndpointRow>(READ, [ids]);
  return new Map(rows.map((row) => [row.id, row]));
}

/** Locks those of `failing`, and of `well` those that have failed lately. */
export async function lockEndpointsToSettle(
  tx: Queryable,
  ids: { failing: readonly Uuid[]; well: readonly Uuid[] },
): Promise<Map<Uuid, EndpointRow>> {
  const rows = await tx.query<EndpointRow>(LOCK_SETTLING, [ids.failing, ids.well]);
  return new Map(rows.map((row) => [row.id, row]));
}

/** Writes whatever of an endpoint may change; its row is locked. */
export async function updateEndpoint(tx: Queryable, row: EndpointRow): Promise<void> {
  const { id, url, description, events, schedule_ids, late_after_ms, status, disabled_at, disabled_reason } = row;
  const text = (at: Instant | null) => (at === null ? null : instantText(at));
  const first = [id, url, description, events, schedule_ids, late_after_ms, status, text(disabled_at), disabled_reason];
  await tx.query(UPDATE, [...first, row.failures, text(row.failing_since)]);
}

export async function deleteEndpoint(tx: Queryable, id: Uuid): Promise<void> {
  await tx.query(DELETE, [id]);
}

export async function noteDelivery(tx: Queryable, ids: readonly Uuid[], nowAt: Instant): Promise<void> {
  if (ids.length > 0) await tx.query(NOTE_DELIVERY, [ids, instantText(nowAt)]);
}
