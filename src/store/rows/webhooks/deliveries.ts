import type { DeliveryState } from "../../../domain/webhooks/events.ts";
import type { EventFacts } from "../../../domain/webhooks/message.ts";
import type { Instant } from "../../../kernel/clock.ts";
import type { Uuid } from "../../../kernel/ids.ts";
import { type Queryable, sql } from "../../database.ts";
import { instantText } from "../../values.ts";
import { TELL_WAITING } from "./births.ts";

/** One event for one endpoint. The row is the intent: nothing else names what is due. */
export type DeliveryRow = {
  id: bigint;
  endpoint_id: Uuid;
  tenant_id: Uuid;
  type: string;
  run_id: Uuid | null;
  n: number;
  facts: EventFacts;
  occurred_at: Instant;
  state: DeliveryState;
  next_attempt_at: Instant;
  attempts: number;
  budget_attempts: number;
  budget_from: Instant;
  claim_id: Uuid | null;
  answer_status: number | null;
  message: string | null;
  settled_at: Instant | null;
};

const COLUMNS = `id, endpoint_id, tenant_id, type, run_id, n, facts, occurred_at, state, next_attempt_at, attempts,
  budget_attempts, budget_from, claim_id, answer_status, message, settled_at`;

const INSERT_TEST = sql(
  "deliveries_insert_test",
  `insert into webhook_delivery (endpoint_id, tenant_id, type, n, facts, occurred_at, next_attempt_at, budget_from)
   values ($1, $2, $3, 0, '{}', $4::timestamptz, $4::timestamptz, $4::timestamptz) returning id`,
);
const LOCK = sql(
  "deliveries_lock",
  `select ${COLUMNS} from webhook_delivery where id = any($1::bigint[]) order by id for update`,
);
const LOCK_SKIPPING = sql(
  "deliveries_lock_skipping",
  `select ${COLUMNS} from webhook_delivery where id = any($1::bigint[]) order by id for update skip locked`,
);
const UPDATE = sql(
  "deliveries_update",
  `update webhook_delivery d
      set state = u.state, next_attempt_at = u.next_attempt_at, attempts = u.attempts, budget_attempts = u.budget_attempts,
          budget_from = u.budget_from, claim_id = u.claim_id, answer_status = u.answer_status, message = u.message,
          settled_at = u.settled_at
     from unnest($1::bigint[], $2::text[], $3::timestamptz[], $4::int[], $5::int[], $6::timestamptz[], $7::uuid[],
                 $8::int[], $9::text[], $10::timestamptz[])
       as u (id, state, next_attempt_at, attempts, budget_attempts, budget_from, claim_id, answer_status, message, settled_at)
    where d.id = u.id`,
);
const DELETE = sql("deliveries_delete", "delete from webhook_delivery where id = any($1::bigint[])");
const NEXT = sql(
  "deliveries_next_due",
  `select greatest(0, extract(epoch from min(next_attempt_at) - clock_timestamp()) * 1000)::float8 as "inMs"
     from webhook_delivery where settled_at is null`,
);
/**
 * As effects are found: from tenant to tenant, the first of each before anybody's second. An endpoint that failed when it
 * was tried last is tried by one at a time until it does not, so that one which keeps silent leaves its tenant's room to
 * the others. One that is disabled is none of those: what waits for it is given up, and that is soon done.
 */
const DUE = sql(
  "deliveries_due",
  `with recursive tenants as (
     (select tenant_id from webhook_delivery where settled_at is null order by tenant_id limit 1)
     union all
     select (select e.tenant_id from webhook_delivery e where e.settled_at is null and e.tenant_id > t.tenant_id
              order by e.tenant_id limit 1)
       from tenants t where t.tenant_id is not null),
   sending as (select tenant_id, endpoint_id from unnest($3::uuid[], $4::uuid[]) as s (tenant_id, endpoint_id)),
   tried as materialized (
     select id from webhook_endpoint
      where id in (select endpoint_id from sending) and status = 'enabled' and failures > 0)
   select d.id
     from tenants t
     left join (select tenant_id, count(*) as n from sending group by 1) busy on busy.tenant_id = t.tenant_id
    cross join lateral (
      select f.id, f.next_attempt_at, coalesce(busy.n, 0) + row_number() over (order by f.next_attempt_at) as place
        from (
          select e.id, e.endpoint_id, e.next_attempt_at,
                 row_number() over (partition by e.endpoint_id order by e.next_attempt_at, e.id) as turn
            from (
              select id, endpoint_id, next_attempt_at
                from webhook_delivery
               where settled_at is null and tenant_id = t.tenant_id and next_attempt_at <= clock_timestamp()
                 and endpoint_id <> all(array(select id from tried))
               order by next_attempt_at
               limit greatest(0, $1 - coalesce(busy.n, 0))) e) f
       where f.turn = 1
          or not exists (select from webhook_endpoint w where w.id = f.endpoint_id and w.status = 'enabled' and w.failures > 0)
      ) d
    order by d.place, d.next_attempt_at
    limit $2`,
);
const TELL = sql("deliveries_tell_waiting", TELL_WAITING);
const GAUGE = sql(
  "deliveries_gauge",
  `select coalesce((select extract(epoch from clock_timestamp() - min(next_attempt_at)) * 1000 from webhook_delivery
                     where settled_at is null and next_attempt_at < clock_timestamp()), 0)::float8 as "overdueMs"`,
);

export async function insertTest(
  tx: Queryable,
  of: Pick<DeliveryRow, "endpoint_id" | "tenant_id" | "type">,
  nowAt: Instant,
) {
  return (await tx.query<{ id: bigint }>(INSERT_TEST, [of.endpoint_id, of.tenant_id, of.type, instantText(nowAt)]))[0]!
    .id;
}

/** Locks by id, waiting. */
export function lockDeliveries(tx: Queryable, ids: readonly bigint[]): Promise<DeliveryRow[]> {
  return tx.query<DeliveryRow>(LOCK, [ids]);
}

/** Locks those that nobody else holds. */
export function lockDeliveriesSkipping(tx: Queryable, ids: readonly bigint[]): Promise<DeliveryRow[]> {
  return tx.query<DeliveryRow>(LOCK_SKIPPING, [ids]);
}

/** Writes whatever of a delivery may change; its rows are locked. */
export async function updateDeliveries(tx: Queryable, rows: readonly DeliveryRow[]): Promise<void> {
  if (rows.length === 0) return;
  await tx.query(UPDATE, [
    rows.map((row) => row.id),
    rows.map((row) => row.state),
    rows.map((row) => row.next_attempt_at),
    rows.map((row) => row.attempts),
    rows.map((row) => row.budget_attempts),
    rows.map((row) => row.budget_from),
    rows.map((row) => row.claim_id),
    rows.map((row) => row.answer_status),
    rows.map((row) => row.message),
    rows.map((row) => row.settled_at),
  ]);
}

export async function deleteDeliveries(tx: Queryable, ids: readonly bigint[]): Promise<void> {
  if (ids.length > 0) await tx.query(DELETE, [ids]);
}

/** In how many ms (0: now) the next one is due; null: none waits. */
export async function nextDeliveryIn(db: Queryable): Promise<number | null> {
  return (await db.query<{ inMs: number | null }>(NEXT))[0]!.inMs;
}

/** How many of one tenant and of all; `sending`: what the asker is sending. */
export type DueLimits = {
  perTenant: number;
  all: number;
  sending: readonly { tenantId: Uuid; endpointId: Uuid }[];
};

export async function findDueDeliveries(db: Queryable, { perTenant, all, sending }: DueLimits): Promise<bigint[]> {
  const tenants = sending.map((one) => one.tenantId);
  const endpoints = sending.map((one) => one.endpointId);
  return (await db.query<{ id: bigint }>(DUE, [perTenant, all, tenants, endpoints])).map((row) => row.id);
}

/** Tells of at most `most` runs that should have started by now (and not by `since`, unless that is null); when it looked. */
export async function tellWaiting(
  tx: Queryable,
  { most, since }: { most: number; since: Instant | null },
): Promise<{ told: number; at: Instant }> {
  const values = [most, since === null ? null : instantText(since)];
  return (await tx.query<{ told: number; at: Instant }>(TELL, values))[0]!;
}

/** How late the oldest due delivery is. */
export async function readDeliveryDelay(db: Queryable): Promise<number> {
  return (await db.query<{ overdueMs: number }>(GAUGE))[0]!.overdueMs;
}
