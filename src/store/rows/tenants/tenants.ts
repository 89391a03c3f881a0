import type { Uuid } from "../../../kernel/ids.ts";
import { type Queryable, sql } from "../../database.ts";

const HOLD = sql("tenant_hold", "select id from tenant where id = $1 for key share");
const LOCK = sql("tenant_lock", "select id from tenant where id = $1 for no key update");
const FIND_SUSPENDED = sql(
  "tenants_suspended",
  "select id from tenant where id = any($1::uuid[]) and status = 'suspended'",
);

/** False where there is no such tenant. Whatever refers to it may be made until the transaction ends. */
export async function holdTenant(tx: Queryable, tenantId: Uuid): Promise<boolean> {
  return (await tx.query(HOLD, [tenantId])).length === 1;
}

/** The same; and nobody else changes it, its status or its quotas meanwhile. */
export async function lockTenant(tx: Queryable, tenantId: Uuid): Promise<boolean> {
  return (await tx.query(LOCK, [tenantId])).length === 1;
}

/** Those that are suspended. A plain read: good for a label, the limit of 0 in usage is what decides. */
export async function findSuspended(db: Queryable, tenantIds: readonly Uuid[]): Promise<Set<Uuid>> {
  const rows = await db.query<{ id: Uuid }>(FIND_SUSPENDED, [[...new Set(tenantIds)]]);
  return new Set(rows.map((row) => row.id));
}
