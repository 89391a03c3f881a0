import type { IntentRow } from "../../domain/dispatch/hint-size.ts";
import type { Lane } from "../../domain/states.ts";
import type { Instant } from "../../kernel/clock.ts";
import type { Uuid } from "../../kernel/ids.ts";
import { type Queryable, sql } from "../database.ts";
import { instantText } from "../values.ts";

/** The outbox: what must still be dispatched. A row is a hint; whoever deletes it in a claim dispatches its runs. */
export type OutboxRow = {
  id: bigint;
  kind: "run" | "effect" | "schedule";
  tenant_id: Uuid;
  class: string;
  lane: Lane;
  available_at: Instant;
  runs: Uuid[];
  published_at: Instant | null;
  publish_no: number;
};

const COLUMNS = "id, kind, tenant_id, class, lane, available_at, runs, published_at, publish_no";

// unnest would flatten an array of arrays, so each row's runs travel as one text.
const INSERT = sql(
  "outbox_insert",
  `insert into outbox (kind, tenant_id, class, lane, available_at, runs, published_at, publish_no)
   select 'run', tenant_id, class, lane, available_at, runs::uuid[], case when published then $7::timestamptz end,
          case when published then 1 else 0 end
     from unnest($1::uuid[], $2::text[], $3::smallint[], $4::timestamptz[], $5::text[], $6::boolean[])
       as r (tenant_id, class, lane, available_at, runs, published)
   returning ${COLUMNS}`,
);
const LOCK_SKIPPING = sql(
  "outbox_lock_skipping",
  `select ${COLUMNS} from outbox where id = any($1::bigint[]) order by id for update skip locked`,
);
const LOCK_WAITING = sql(
  "outbox_lock_waiting",
  `select ${COLUMNS} from outbox where id = any($1::bigint[]) order by id for update`,
);
const DELETE = sql("outbox_delete", "delete from outbox where id = any($1::bigint[])");

export type NewIntent = IntentRow & { published: boolean };

/** Inserts intents to dispatch runs; answers the rows in the order given. */
export async function insertIntents(tx: Queryable, rows: readonly NewIntent[], nowAt: Instant): Promise<OutboxRow[]> {
  if (rows.length === 0) return [];
  return tx.query<OutboxRow>(INSERT, [
    rows.map((row) => row.tenantId),
    rows.map((row) => row.class),
    rows.map((row) => row.lane),
    rows.map((row) => row.availableAt),
    rows.map((row) => `{${row.runs.join(",")}}`),
    rows.map((row) => row.published),
    instantText(nowAt),
  ]);
}

/** Locks what nobody else holds, by id. */
export function lockOutboxSkipping(tx: Queryable, ids: readonly bigint[]): Promise<OutboxRow[]> {
  return tx.query<OutboxRow>(LOCK_SKIPPING, [ids]);
}

/** Locks by id, waiting for whoever holds a row. */
export function lockOutboxWaiting(tx: Queryable, ids: readonly bigint[]): Promise<OutboxRow[]> {
  return tx.query<OutboxRow>(LOCK_WAITING, [ids]);
}

export async function deleteOutbox(tx: Queryable, ids: readonly bigint[]): Promise<void> {
  if (ids.length > 0) await tx.query(DELETE, [ids]);
}

const READ_IDS = sql("outbox_read_ids", "select id from outbox where id = any($1::bigint[])");

export async function readOutboxIds(tx: Queryable, ids: readonly bigint[]): Promise<Set<bigint>> {
  return new Set((await tx.query<{ id: bigint }>(READ_IDS, [ids])).map((row) => row.id));
}

const LOCK_NAMING = sql(
  "outbox_lock_naming",
  "select from outbox where kind = 'run' and tenant_id = $1 and runs && $2::uuid[] for update nowait",
);
const DELETE_NAMING = sql(
  "outbox_delete_naming",
  "delete from outbox where kind = 'run' and tenant_id = $1 and runs <@ $2::uuid[]",
);
const DROP_NAMES = sql(
  "outbox_drop_names",
  `update outbox set runs = array(select id from unnest(runs) with ordinality n (id, k) where id <> all ($2::uuid[]) order by k)
    where kind = 'run' and tenant_id = $1 and runs && $2::uuid[]`,
);

/**
 * Takes these runs out of every row that names them. Outbox rows are locked before all else, and here after: whoever holds
 * one is not waited for (a lock timeout at once). No index leads there: rarely.
 */
export async function dropNames(tx: Queryable, tenantId: Uuid, runIds: readonly Uuid[]): Promise<void> {
  if (runIds.length === 0) return;
  await tx.query(LOCK_NAMING, [tenantId, runIds]);
  await tx.query(DELETE_NAMING, [tenantId, runIds]);
  await tx.query(DROP_NAMES, [tenantId, runIds]);
}
