import { mintId, randomBucket, type Uuid } from "../../kernel/ids.ts";
import { sql } from "../../store/database.ts";
import type { ApiKeyRow } from "../../store/reads/keys.ts";
import type { Authority } from "../authority.ts";

const FIND_TENANT = sql("lock_tenant_for_key", "select id from tenant where id = $1 for key share");
const INSERT = sql(
  "create_api_key",
  `insert into api_key (id, tenant_id, prefix, secret_hash, role, label, created_at)
   values ($1, $2, $3, $4, $5, $6, clock_timestamp())`,
);

export type ApiKeyOutcome = { kind: "created"; keyId: Uuid } | { kind: "no-tenant" };

/**
 * Stores the hash of a key that the caller minted (api/keys.ts) and shows once.
 * Locks   the tenant, for key share.
 * Time    authority time, for the id.
 * Writes  api_key.
 * Replay  a new key each time; one whose answer was lost was never shown and opens nothing.
 */
export function createApiKey(
  authority: Authority,
  request: { tenantId: Uuid; prefix: string; secretHash: Buffer; role: ApiKeyRow["role"]; label: string },
): Promise<ApiKeyOutcome> {
  return authority.transact("create-api-key", async (tx) => {
    const [tenant] = await tx.query(FIND_TENANT, [request.tenantId]);
    if (tenant === undefined) return { kind: "no-tenant" };
    const keyId = mintId(await tx.authorityNow(), randomBucket());
    const { tenantId, prefix, secretHash, role, label } = request;
    await tx.query(INSERT, [keyId, tenantId, prefix, secretHash, role, label]);
    return { kind: "created", keyId };
  });
}
