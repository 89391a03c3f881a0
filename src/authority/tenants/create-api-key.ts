import type { Instant } from "../../kernel/clock.ts";
import { mintId, randomBucket, showId, type Uuid } from "../../kernel/ids.ts";
import { type ApiKeyRow, type ApiKeyView, readApiKey } from "../../store/reads/keys.ts";
import { writeAudit } from "../../store/rows/audit.ts";
import { insertApiKey } from "../../store/rows/tenants/keys.ts";
import { holdTenant } from "../../store/rows/tenants/tenants.ts";
import type { Authority } from "../authority.ts";

export type ApiKeyOutcome = { kind: "created"; keyId: Uuid; key: ApiKeyView } | { kind: "no-tenant" };

/**
 * Stores the hash of a key that the caller minted (api/keys.ts) and shows once.
 * Locks   the tenant, for key share.
 * Time    authority time, for the id.
 * Writes  api_key, an audit event.
 * Replay  a new key each time; one whose answer was lost was never shown and opens nothing.
 */
export function createApiKey(
  authority: Authority,
  request: {
    tenantId: Uuid;
    prefix: string;
    secretHash: Buffer;
    role: ApiKeyRow["role"];
    label: string;
    /** Absent: the program itself, which has nobody to ask for a first key. */
    actor?: string;
    expiresAt?: Instant;
  },
): Promise<ApiKeyOutcome> {
  return authority.transact("create-api-key", async (tx): Promise<ApiKeyOutcome> => {
    const { tenantId, prefix, secretHash, role, label, actor, expiresAt = null } = request;
    if (!(await holdTenant(tx, tenantId))) return { kind: "no-tenant" };
    const nowAt = await tx.authorityNow();
    const keyId = mintId(nowAt, randomBucket());
    const key = { id: keyId, tenantId, prefix, secretHash, role, label, createdAt: nowAt, expiresAt };
    await insertApiKey(tx, { ...key, createdBy: actor ?? null, rotatedFrom: null });
    await writeAudit(tx, {
      tenantId,
      actor: actor ?? "punctual",
      action: "api-key.create",
      subject: showId("key", keyId),
      after: { label, role, prefix, expiresAt },
    });
    return { kind: "created", keyId, key: (await readApiKey(tx, tenantId, keyId))! };
  });
}
