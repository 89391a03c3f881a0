import type { Instant } from "../../../kernel/clock.ts";
import type { Uuid } from "../../../kernel/ids.ts";
import { type Queryable, sql } from "../../database.ts";
import { instantText } from "../../values.ts";

const SIGNS = "revoked_at is null and (active_until is null or active_until > clock_timestamp())";

const INSERT = sql(
  "signing_key_insert",
  `insert into signing_key (id, tenant_id, label, sealed, created_at, created_by, rotated_from)
   values ($1, $2, $3, $4, $5::timestamptz, $6, $7)`,
);
const COUNT = sql("signing_key_count", `select count(*)::int as n from signing_key where tenant_id = $1 and ${SIGNS}`);
const REPLACE = sql(
  "signing_key_replace",
  "update signing_key set replaced_by = $2, active_until = $3::timestamptz where id = $1",
);
const REVOKE = sql(
  "signing_key_revoke",
  "update signing_key set revoked_at = $2::timestamptz, sealed = null where id = $1",
);
const IN_USE = sql(
  "signing_keys_in_use",
  `select sealed from signing_key where tenant_id = $1 and ${SIGNS} order by created_at desc, id desc`,
);

export async function insertSigningKey(
  tx: Queryable,
  key: {
    id: Uuid;
    tenantId: Uuid;
    label: string;
    sealed: string;
    createdAt: Instant;
    createdBy: string;
    rotatedFrom: Uuid | null;
  },
): Promise<void> {
  const { id, tenantId, label, sealed, createdAt, createdBy, rotatedFrom } = key;
  await tx.query(INSERT, [id, tenantId, label, sealed, instantText(createdAt), createdBy, rotatedFrom]);
}

/** How many keys of the tenant sign. */
export async function countSigningKeys(tx: Queryable, tenantId: Uuid): Promise<number> {
  return (await tx.query<{ n: number }>(COUNT, [tenantId]))[0]!.n;
}

export async function replaceSigningKey(tx: Queryable, id: Uuid, by: { id: Uuid; untilAt: Instant }): Promise<void> {
  await tx.query(REPLACE, [id, by.id, instantText(by.untilAt)]);
}

/** It signs nothing more, and what it was is kept nowhere. */
export async function revokeSigningKey(tx: Queryable, id: Uuid, nowAt: Instant): Promise<void> {
  await tx.query(REVOKE, [id, instantText(nowAt)]);
}

/** What signs for a tenant, sealed, the newest first. */
export async function findSigningKeys(db: Queryable, tenantId: Uuid): Promise<string[]> {
  return (await db.query<{ sealed: string }>(IN_USE, [tenantId])).map((row) => row.sealed);
}
