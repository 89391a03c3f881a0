import type { Instant } from "../../kernel/clock.ts";
import type { Uuid } from "../../kernel/ids.ts";
import { type Queryable, sql } from "../database.ts";

export type ApiKeyRow = {
  id: Uuid;
  tenantId: Uuid;
  tenantName: string;
  tenantStatus: string;
  prefix: string;
  secretHash: Buffer;
  role: "admin" | "owner" | "operator" | "viewer" | "worker";
  label: string;
  expiresAt: Instant | null;
  revokedAt: Instant | null;
};

const FIND_API_KEY = sql(
  "find_api_key",
  `select k.id, k.tenant_id as "tenantId", t.name as "tenantName", t.status as "tenantStatus", k.prefix,
          k.secret_hash as "secretHash", k.role, k.label, k.expires_at as "expiresAt", k.revoked_at as "revokedAt"
   from api_key k join tenant t on t.id = k.tenant_id
   where k.prefix = $1`,
);

/** The key with that prefix, also when it is revoked or expired: the caller decides. */
export async function findApiKey(db: Queryable, prefix: string): Promise<ApiKeyRow | undefined> {
  return (await db.query<ApiKeyRow>(FIND_API_KEY, [prefix]))[0];
}

const FIND_LABELS = sql(
  "find_key_labels",
  "select id, label from api_key where tenant_id = $1 and id = any($2::uuid[])",
);

/** What the tenant calls these keys; one that is not its own is not there. */
export async function findKeyLabels(
  db: Queryable,
  tenantId: Uuid,
  ids: readonly Uuid[],
): Promise<ReadonlyMap<Uuid, string>> {
  const rows = await db.query<{ id: Uuid; label: string }>(FIND_LABELS, [tenantId, ids]);
  return new Map(rows.map((row) => [row.id, row.label]));
}
