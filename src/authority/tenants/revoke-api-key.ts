import { keyStateOf } from "../../domain/api-key.ts";
import { showId, type Uuid } from "../../kernel/ids.ts";
import { type ApiKeyView, readApiKey } from "../../store/reads/keys.ts";
import { writeAudit } from "../../store/rows/audit.ts";
import { countLastingAdminKeys, lockAdminKeys, lockApiKey, revokeKey } from "../../store/rows/tenants/keys.ts";
import type { Authority } from "../authority.ts";

export type RevokeOutcome =
  | { kind: "revoked"; key: ApiKeyView }
  | { kind: "unchanged"; key: ApiKeyView }
  | { kind: "not-found" }
  /** Nobody could make keys for anybody any more. A tenant without an owner's key can be helped by an admin. */
  | { kind: "last-admin" };

/**
 * Ends a key at once; replicas that have just looked at it notice within 5 s.
 * Locks   the key; of an admin's, all admin keys that are not revoked, by id.
 * Time    authority time, after the locks.
 * Writes  api_key, an audit event.
 * Replay  `unchanged`.
 */
export function revokeApiKey(
  authority: Authority,
  request: { tenantId: Uuid; actor: string; keyId: Uuid },
): Promise<RevokeOutcome> {
  const { tenantId, actor, keyId } = request;
  return authority.transact("revoke-api-key", async (tx): Promise<RevokeOutcome> => {
    // A role never changes, so it may be read before the locks.
    const role = (await readApiKey(tx, tenantId, keyId))?.role;
    if (role === "admin") await lockAdminKeys(tx);
    if (!(await lockApiKey(tx, tenantId, keyId))) return { kind: "not-found" };
    const before = (await readApiKey(tx, tenantId, keyId))!;
    if (before.revokedAt !== null) return { kind: "unchanged", key: before };
    const nowAt = await tx.authorityNow();
    const isLive = keyStateOf(before, nowAt) !== "expired";
    if (role === "admin" && isLive && (await countLastingAdminKeys(tx, keyId, nowAt)) === 0) {
      return { kind: "last-admin" };
    }
    await revokeKey(tx, keyId, nowAt);
    await writeAudit(tx, {
      tenantId,
      actor,
      action: "api-key.revoke",
      subject: showId("key", keyId),
      before: { label: before.label, role: before.role, prefix: before.prefix, expiresAt: before.expiresAt },
    });
    return { kind: "revoked", key: (await readApiKey(tx, tenantId, keyId))! };
  });
}
