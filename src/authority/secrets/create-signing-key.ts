import { MOST_SIGNING_KEYS } from "../../domain/secrets/signing-secret.ts";
import { mintId, randomBucket, showId, type Uuid } from "../../kernel/ids.ts";
import { readSigningKey, type SigningKeyView } from "../../store/reads/tenants/signing-keys.ts";
import { writeAudit } from "../../store/rows/audit.ts";
import { countSigningKeys, insertSigningKey } from "../../store/rows/tenants/signing-keys.ts";
import { lockTenant } from "../../store/rows/tenants/tenants.ts";
import type { Authority } from "../authority.ts";

export type SigningKeyOutcome =
  | { kind: "created"; key: SigningKeyView }
  | { kind: "too-many"; used: number }
  | { kind: "no-tenant" };

/**
 * Gives a tenant one more key that signs what it sends. The caller minted it and shows it once; here it is kept sealed.
 * Locks   the tenant for no key update, so that the count is exact.
 * Time    authority time, for the id.
 * Writes  signing_key, an audit event. Before it, in a transaction of its own, perhaps the tenant's first data key.
 * Replay  a new key each time; one whose answer was lost is known to nobody: revoke it.
 */
export async function createSigningKey(
  authority: Authority,
  request: { tenantId: Uuid; actor: string; label: string; secret: string },
): Promise<SigningKeyOutcome> {
  const { tenantId, actor, label, secret } = request;
  const sealed = (await authority.vault.sealer(tenantId))(secret);
  return authority.transact("create-signing-key", async (tx): Promise<SigningKeyOutcome> => {
    if (!(await lockTenant(tx, tenantId))) return { kind: "no-tenant" };
    const used = await countSigningKeys(tx, tenantId);
    if (used >= MOST_SIGNING_KEYS) return { kind: "too-many", used };
    const nowAt = await tx.authorityNow();
    const id = mintId(nowAt, randomBucket());
    await insertSigningKey(tx, { id, tenantId, label, sealed, createdAt: nowAt, createdBy: actor, rotatedFrom: null });
    const subject = showId("sgk", id);
    await writeAudit(tx, { tenantId, actor, action: "signing-key.create", subject, after: { label } });
    return { kind: "created", key: (await readSigningKey(tx, tenantId, id))! };
  });
}
