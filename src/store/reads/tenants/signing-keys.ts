import type { Instant } from "../../../kernel/clock.ts";
import type { Uuid } from "../../../kernel/ids.ts";
import { type Queryable, sql } from "../../database.ts";

/** A signing key as people see it: everything but the key. */
export type SigningKeyView = {
  id: Uuid;
  label: string;
  createdAt: Instant;
  createdBy: string;
  /** Until when it signs; null: for ever. */
  activeUntil: Instant | null;
  revokedAt: Instant | null;
  rotatedFrom: Uuid | null;
  replacedBy: Uuid | null;
};

const VIEW = `id, label, created_at as "createdAt", created_by as "createdBy", active_until as "activeUntil",
  revoked_at as "revokedAt", rotated_from as "rotatedFrom", replaced_by as "replacedBy"`;
const READ = sql("read_signing_key", `select ${VIEW} from signing_key where tenant_id = $1 and id = $2`);
const LIST = sql(
  "read_signing_keys",
  `select ${VIEW} from signing_key
    where tenant_id = $1 and id < coalesce($2::uuid, 'ffffffff-ffff-ffff-ffff-ffffffffffff')
    order by id desc limit $3`,
);

export async function readSigningKey(db: Queryable, tenantId: Uuid, id: Uuid): Promise<SigningKeyView | undefined> {
  return (await db.query<SigningKeyView>(READ, [tenantId, id]))[0];
}

/** Newest first, also those that are over; `afterId` is the last id of the page before. */
export function listSigningKeys(
  db: Queryable,
  tenantId: Uuid,
  page: { afterId?: Uuid; limit: number },
): Promise<SigningKeyView[]> {
  return db.query<SigningKeyView>(LIST, [tenantId, page.afterId ?? null, page.limit]);
}
