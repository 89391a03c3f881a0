import { decideRotation, type Rotation } from "../../domain/api-key.ts";
import { mintId, randomBucket, showId, type Uuid } from "../../kernel/ids.ts";
import { type ApiKeyView, readApiKey } from "../../store/reads/keys.ts";
import { writeAudit } from "../../store/rows/audit.ts";
import { insertApiKey, lockApiKey, replaceKey } from "../../store/rows/tenants/keys.ts";
import type { Authority } from "../authority.ts";

export type RotateOutcome =
  | { kind: "rotated"; key: ApiKeyView; replaced: ApiKeyView }
  | { kind: "not-found" }
  | (Extract<Rotation, { kind: "not-current" }> & { key: ApiKeyView });

/**
 * Puts a key that the caller minted in the place of another: same role, same label, as long a life. The old one goes on
 * for the overlap, so that whoever uses it can change over.
 * Locks   the old key.
 * Time    authority time, after the lock.
 * Writes  api_key twice, an audit event.
 * Replay  `not-current`, naming the key that has replaced it: its secret was shown once, so that one is rotated.
 */
export function rotateApiKey(
  authority: Authority,
  request: { tenantId: Uuid; actor: string; keyId: Uuid; prefix: string; secretHash: Buffer; overlapMs: number },
): Promise<RotateOutcome> {
  const { tenantId, actor, keyId, prefix, secretHash, overlapMs } = request;
  return authority.transact("rotate-api-key", async (tx): Promise<RotateOutcome> => {
    if (!(await lockApiKey(tx, tenantId, keyId))) return { kind: "not-found" };
    const old = (await readApiKey(tx, tenantId, keyId))!;
    const nowAt = await tx.authorityNow();
    const decided = decideRotation(old, overlapMs, nowAt);
    if (decided.kind === "not-current") return { ...decided, key: old };
    const id = mintId(nowAt, randomBucket());
    const { role, label } = old;
    const key = { id, tenantId, prefix, secretHash, role, label, createdAt: nowAt, expiresAt: decided.newExpiresAt };
    await insertApiKey(tx, { ...key, createdBy: actor, rotatedFrom: keyId });
    await replaceKey(tx, keyId, { id, untilAt: decided.oldUntilAt });
    await writeAudit(tx, {
      tenantId,
      actor,
      action: "api-key.rotate",
      subject: showId("key", keyId),
      before: { expiresAt: old.expiresAt },
      after: { expiresAt: decided.oldUntilAt, replacedBy: showId("key", id) },
    });
    return {
      kind: "rotated",
      key: (await readApiKey(tx, tenantId, id))!,
      replaced: (await readApiKey(tx, tenantId, keyId))!,
    };
  });
}
