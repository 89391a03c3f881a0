import type { Uuid } from "../../../kernel/ids.ts";
import { type Queryable, sql } from "../../database.ts";

/** A tenant's data key as it is kept: wrapped by the master key that it names. */
export type DataKeyRow = { tenantId: Uuid; id: Uuid; masterKeyId: string; wrapped: Buffer };

const COLUMNS = `tenant_id as "tenantId", id, master_key_id as "masterKeyId", wrapped`;

const IN_USE = sql(
  "data_keys_in_use",
  `select ${COLUMNS} from tenant_data_key where tenant_id = $1 and retired_at is null`,
);
const ONE = sql("data_keys_one", `select ${COLUMNS} from tenant_data_key where tenant_id = $1 and id = $2`);
const OF_TENANT = sql(
  "data_keys_of_tenant",
  `select ${COLUMNS} from tenant_data_key where tenant_id = $1 order by retired_at desc nulls first, id desc limit $2`,
);
// A key that is in use already stays: somebody else was faster.
const INSERT = sql(
  "data_keys_insert",
  `insert into tenant_data_key (tenant_id, id, master_key_id, wrapped, created_at)
   values ($1, $2, $3, $4, clock_timestamp())
   on conflict (tenant_id) where retired_at is null do nothing returning id`,
);
const RETIRE = sql(
  "data_keys_retire",
  `update tenant_data_key set retired_at = clock_timestamp() where tenant_id = $1 and retired_at is null returning id`,
);
const LOCK_OLDER = sql(
  "data_keys_lock_older",
  `select ${COLUMNS} from tenant_data_key
    where master_key_id <> $1 and (tenant_id, id) > ($2::uuid, $3::uuid)
    order by tenant_id, id limit $4 for update`,
);
const REWRAP = sql(
  "data_keys_rewrap",
  `update tenant_data_key k set master_key_id = $1, wrapped = decode(n.hex, 'hex')
     from unnest($2::uuid[], $3::uuid[], $4::text[]) as n (tenant_id, id, hex)
    where k.tenant_id = n.tenant_id and k.id = n.id`,
);
const PAGE = sql(
  "data_keys_page",
  `select ${COLUMNS} from tenant_data_key where (tenant_id, id) > ($1::uuid, $2::uuid) order by tenant_id, id limit $3`,
);
const BY_MASTER = sql(
  "data_keys_by_master",
  `select master_key_id as "masterKeyId", count(*)::int as keys, count(*) filter (where retired_at is null)::int as "inUse"
     from tenant_data_key group by 1 order by 1`,
);

export async function findKeyInUse(db: Queryable, tenantId: Uuid): Promise<DataKeyRow | undefined> {
  return (await db.query<DataKeyRow>(IN_USE, [tenantId]))[0];
}

export async function findDataKey(db: Queryable, tenantId: Uuid, id: Uuid): Promise<DataKeyRow | undefined> {
  return (await db.query<DataKeyRow>(ONE, [tenantId, id]))[0];
}

/** The one in use first, then those retired last. */
export function listDataKeys(db: Queryable, tenantId: Uuid, limit: number): Promise<DataKeyRow[]> {
  return db.query<DataKeyRow>(OF_TENANT, [tenantId, limit]);
}

/** False where the tenant has one in use. */
export async function insertDataKey(tx: Queryable, row: DataKeyRow): Promise<boolean> {
  return (await tx.query(INSERT, [row.tenantId, row.id, row.masterKeyId, row.wrapped])).length === 1;
}

export async function retireDataKey(tx: Queryable, tenantId: Uuid): Promise<Uuid | undefined> {
  return (await tx.query<{ id: Uuid }>(RETIRE, [tenantId]))[0]?.id;
}

/** Keys behind `after` that another master key wraps, locked in their order. */
export function lockOlderKeys(
  tx: Queryable,
  newest: string,
  after: Pick<DataKeyRow, "tenantId" | "id">,
  limit: number,
): Promise<DataKeyRow[]> {
  return tx.query<DataKeyRow>(LOCK_OLDER, [newest, after.tenantId, after.id, limit]);
}

export async function rewrapKeys(tx: Queryable, masterKeyId: string, rows: readonly DataKeyRow[]): Promise<void> {
  if (rows.length === 0) return;
  await tx.query(REWRAP, [
    masterKeyId,
    rows.map((row) => row.tenantId),
    rows.map((row) => row.id),
    rows.map((row) => row.wrapped.toString("hex")),
  ]);
}

export function pageOfKeys(
  db: Queryable,
  after: Pick<DataKeyRow, "tenantId" | "id">,
  limit: number,
): Promise<DataKeyRow[]> {
  return db.query<DataKeyRow>(PAGE, [after.tenantId, after.id, limit]);
}

export function countByMaster(db: Queryable): Promise<{ masterKeyId: string; keys: number; inUse: number }[]> {
  return db.query(BY_MASTER);
}
