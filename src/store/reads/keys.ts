import type { OutboundRules } from "../../domain/outbound/rules.ts";
import type { Instant } from "../../kernel/clock.ts";
import type { Uuid } from "../../kernel/ids.ts";
import { type Queryable, sql } from "../database.ts";

export type ApiKeyRow = {
  id: Uuid;
  tenantId: Uuid;
  tenantName: string;
  tenantStatus: string;
  /** Names of the job types that the tenant may use; null: all. */
  allowedJobs: readonly string[] | null;
  /** Where the tenant's calls may lead; null: wherever anybody's may. */
  outbound: OutboundRules | null;
  prefix: string;
  secretHash: Buffer;
  role: "admin" | "owner" | "operator" | "viewer" | "worker";
  label: string;
  expiresAt: Instant | null;
  revokedAt: Instant | null;
  lastUsedAt: Instant | null;
};

/** A key as people see it: everything but its hash. Instants are epoch ms. */
export type ApiKeyView = Pick<
  ApiKeyRow,
  "id" | "tenantId" | "prefix" | "role" | "label" | "expiresAt" | "revokedAt" | "lastUsedAt"
> & {
  createdAt: Instant;
  createdBy: string | null;
  rotatedFrom: Uuid | null;
  replacedBy: Uuid | null;
};

const FIND_API_KEY = sql(
  "find_api_key",
  `select k.id, k.tenant_id as "tenantId", t.name as "tenantName", t.status as "tenantStatus",
          to_jsonb(t.allowed_jobs) as "allowedJobs", t.outbound, k.prefix, k.secret_hash as "secretHash", k.role, k.label,
          k.expires_at as "expiresAt", k.revoked_at as "revokedAt", k.last_used_at as "lastUsedAt"
   from api_key k join tenant t on t.id = k.tenant_id
   where k.prefix = $1`,
);

/** The key with that prefix, also when it is revoked or expired: the caller decides. */
export async function findApiKey(db: Queryable, prefix: string): Promise<ApiKeyRow | undefined> {
  return (await db.query<ApiKeyRow>(FIND_API_KEY, [prefix]))[0];
}

const VIEW = `id, tenant_id as "tenantId", prefix, role, label, expires_at as "expiresAt", revoked_at as "revokedAt",
  last_used_at as "lastUsedAt", created_at as "createdAt", created_by as "createdBy", rotated_from as "rotatedFrom",
  replaced_by as "replacedBy"`;
const READ = sql("read_api_key", `select ${VIEW} from api_key where tenant_id = $1 and id = $2`);
const LIST = sql(
  "read_api_keys",
  `select ${VIEW} from api_key
    where tenant_id = $1 and id < coalesce($2::uuid, 'ffffffff-ffff-ffff-ffff-ffffffffffff')
    order by id desc limit $3`,
);

export async function readApiKey(db: Queryable, tenantId: Uuid, id: Uuid): Promise<ApiKeyView | undefined> {
  return (await db.query<ApiKeyView>(READ, [tenantId, id]))[0];
}

/** Newest first, also those that are over; `afterId` is the last id of the page before. */
export function listApiKeys(
  db: Queryable,
  tenantId: Uuid,
  page: { afterId?: Uuid; limit: number },
): Promise<ApiKeyView[]> {
  return db.query<ApiKeyView>(LIST, [tenantId, page.afterId ?? null, page.limit]);
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
