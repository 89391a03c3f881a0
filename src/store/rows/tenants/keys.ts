import type { Instant } from "../../../kernel/clock.ts";
import type { Uuid } from "../../../kernel/ids.ts";
import { type Queryable, sql } from "../../database.ts";
import type { ApiKeyRow } from "../../reads/keys.ts";
import { instantText } from "../../values.ts";

const INSERT = sql(
  "api_key_insert",
  `insert into api_key (id, tenant_id, prefix, secret_hash, role, label, created_at, expires_at, created_by, rotated_from)
   values ($1, $2, $3, $4, $5, $6, $7::timestamptz, $8::timestamptz, $9, $10)`,
);
const LOCK = sql("api_key_lock", "select id from api_key where tenant_id = $1 and id = $2 for update");
const LOCK_ADMINS = sql(
  "api_key_lock_admins",
  "select id from api_key where role = 'admin' and revoked_at is null order by id for update",
);
const COUNT_LASTING_ADMINS = sql(
  "api_key_count_admins",
  `select count(*)::int as n from api_key
    where role = 'admin' and revoked_at is null and replaced_by is null and id <> $1
      and (expires_at is null or expires_at > $2::timestamptz)`,
);
const REVOKE = sql("api_key_revoke", "update api_key set revoked_at = $2::timestamptz where id = $1");
const REPLACE = sql(
  "api_key_replace",
  "update api_key set replaced_by = $2, expires_at = $3::timestamptz where id = $1",
);
// What somebody holds is left out: another process notes the same keys, in an order of its own.
const NOTE_USE = sql(
  "api_key_note_use",
  `with stale as materialized (
     select id from api_key
      where id = any($1::uuid[]) and (last_used_at is null or last_used_at < clock_timestamp() - interval '1 minute')
      order by id for no key update skip locked)
   update api_key set last_used_at = clock_timestamp() where id = any(array(select id from stale))`,
);

export async function insertApiKey(
  tx: Queryable,
  key: Pick<ApiKeyRow, "id" | "tenantId" | "prefix" | "secretHash" | "role" | "label" | "expiresAt"> & {
    createdAt: Instant;
    createdBy: string | null;
    rotatedFrom: Uuid | null;
  },
): Promise<void> {
  const expiresAt = key.expiresAt === null ? null : instantText(key.expiresAt);
  const { id, tenantId, prefix, secretHash, role, label, createdAt, createdBy, rotatedFrom } = key;
  await tx.query(INSERT, [
    id,
    tenantId,
    prefix,
    secretHash,
    role,
    label,
    instantText(createdAt),
    expiresAt,
    createdBy,
    rotatedFrom,
  ]);
}

/** Whether there is such a key; nobody else changes it until the transaction ends. */
export async function lockApiKey(tx: Queryable, tenantId: Uuid, id: Uuid): Promise<boolean> {
  return (await tx.query(LOCK, [tenantId, id])).length > 0;
}

/** Every admin key of the installation that is not revoked: of two that are revoked at once, one sees the other go. */
export async function lockAdminKeys(tx: Queryable): Promise<void> {
  await tx.query(LOCK_ADMINS);
}

/** Admin keys beside this one that are live and meant to stay. */
export async function countLastingAdminKeys(tx: Queryable, exceptId: Uuid, nowAt: Instant): Promise<number> {
  return (await tx.query<{ n: number }>(COUNT_LASTING_ADMINS, [exceptId, instantText(nowAt)]))[0]!.n;
}

export async function revokeKey(tx: Queryable, id: Uuid, nowAt: Instant): Promise<void> {
  await tx.query(REVOKE, [id, instantText(nowAt)]);
}

export async function replaceKey(tx: Queryable, id: Uuid, by: { id: Uuid; untilAt: Instant }): Promise<void> {
  await tx.query(REPLACE, [id, by.id, instantText(by.untilAt)]);
}

/** Waits for nobody: nothing is decided by it. */
export async function noteUseOfKeys(tx: Queryable, ids: readonly Uuid[]): Promise<void> {
  await tx.query(NOTE_USE, [ids]);
}
