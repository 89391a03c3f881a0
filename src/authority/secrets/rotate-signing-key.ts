import { decideRotation, type Rotation } from "../../domain/api-key.ts";
import { MOST_SIGNING_KEYS } from "../../domain/secrets/signing-secret.ts";
import { mintId, randomBucket, showId, type Uuid } from "../../kernel/ids.ts";
import { readSigningKey, type SigningKeyView } from "../../store/reads/tenants/signing-keys.ts";
import { writeAudit } from "../../store/rows/audit.ts";
import { countSigningKeys, insertSigningKey, replaceSigningKey } from "../../store/rows/tenants/signing-keys.ts";
import { lockTenant } from "../../store/rows/tenants/tenants.ts";
import type { Authority } from "../authority.ts";

export type RotateSigningKeyOutcome =
  | { kind: "rotated"; key: SigningKeyView; replaced: SigningKeyView }
  | { kind: "not-found" }
  | { kind: "too-many"; used: number }
  | (Extract<Rotation, { kind: "not-current" }> & { key: SigningKeyView });

/**
 * Puts a key in the place of another one. Both sign until the overlap is over, so that receivers can change over.
 * Locks   the tenant for no key update: its keys change one at a time.
 * Time    authority time, after the lock.
 * Writes  signing_key twice, an audit event.
 * Replay  `not-current`, naming the key that has replaced it: it was shown once, so that one is rotated.
 */
export async function rotateSigningKey(
  authority: Authority,
  request: { tenantId: Uuid; actor: string; keyId: Uuid; secret: string; overlapMs: number },
): Promise<RotateSigningKeyOutcome> {
  const { tenantId, actor, keyId, secret, overlapMs } = request;
  // What does not exist makes no data key.
  if ((await readSigningKey(authority.db, tenantId, keyId)) === undefined) return { kind: "not-found" };
  const sealed = (await authority.vault.sealer(tenantId))(secret);
  return authority.transact("rotate-signing-key", async (tx): Promise<RotateSigningKeyOutcome> => {
    if (!(await lockTenant(tx, tenantId))) return { kind: "not-found" };
    const old = await readSigningKey(tx, tenantId, keyId);
    if (old === undefined) return { kind: "not-found" };
    const nowAt = await tx.authorityNow();
    const decided = decideRotation({ ...old, expiresAt: old.activeUntil }, overlapMs, nowAt);
    if (decided.kind === "not-current") return { ...decided, key: old };
    const used = await countSigningKeys(tx, tenantId);
    if (used >= MOST_SIGNING_KEYS && overlapMs > 0) return { kind: "too-many", used };
    const id = mintId(nowAt, randomBucket());
    const { label } = old;
    await insertSigningKey(tx, { id, tenantId, label, sealed, createdAt: nowAt, createdBy: actor, rotatedFrom: keyId });
    await replaceSigningKey(tx, keyId, { id, untilAt: decided.oldUntilAt });
    await writeAudit(tx, {
      tenantId,
      actor,
      action: "signing-key.rotate",
      subject: showId("sgk", keyId),
      after: { activeUntil: decided.oldUntilAt, replacedBy: showId("sgk", id) },
    });
    return {
      kind: "rotated",
      key: (await readSigningKey(tx, tenantId, id))!,
      replaced: (await readSigningKey(tx, tenantId, keyId))!,
    };
  });
}
