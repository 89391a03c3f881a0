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
