import { showId, type Uuid } from "../../kernel/ids.ts";
import { readSigningKey, type SigningKeyView } from "../../store/reads/tenants/signing-keys.ts";
import { writeAudit } from "../../store/rows/audit.ts";
import { revokeSigningKey as revokeKey } from "../../store/rows/tenants/signing-keys.ts";
import { lockTenant } from "../../store/rows/tenants/tenants.ts";
import type { Authority } from "../authority.ts";

export type RevokeSigningKeyOutcome = { kind: "revoked" | "unchanged"; key: SigningKeyView } | { kind: "not-found" };

/**
 * A key signs nothing more; who has just read it signs with it for 5 s. After the last one calls leave unsigned.
 * Locks   the tenant for no key update.
 * Time    authority time, after the lock.
 * Writes  signing_key, an audit event.
 * Replay  `unchanged`.
 */
export function revokeSigningKey(
  authority: Authority,
  request: { tenantId: Uuid; actor: string; keyId: Uuid },
): Promise<RevokeSigningKeyOutcome> {
  const { tenantId, actor, keyId } = request;
  return authority.transact("revoke-signing-key", async (tx): Promise<RevokeSigningKeyOutcome> => {
    if (!(await lockTenant(tx, tenantId))) return { kind: "not-found" };
    const before = await readSigningKey(tx, tenantId, keyId);
    if (before === undefined) return { kind: "not-found" };
    if (before.revokedAt !== null) return { kind: "unchanged", key: before };
    await revokeKey(tx, keyId, await tx.authorityNow());
    const { label, activeUntil } = before;
    const subject = showId("sgk", keyId);
    await writeAudit(tx, { tenantId, actor, action: "signing-key.revoke", subject, before: { label, activeUntil } });
    return { kind: "revoked", key: (await readSigningKey(tx, tenantId, keyId))! };
  });
}
