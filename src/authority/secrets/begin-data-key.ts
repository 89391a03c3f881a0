import { randomBytes } from "node:crypto";
import type { MasterKeys } from "../../domain/secrets/sealing.ts";
import { mintId, randomBucket, type Uuid } from "../../kernel/ids.ts";
import { writeAudit } from "../../store/rows/audit.ts";
import { type DataKeyRow, findKeyInUse, insertDataKey, retireDataKey } from "../../store/rows/tenants/data-keys.ts";
import { holdTenant } from "../../store/rows/tenants/tenants.ts";
import type { Authority } from "../authority.ts";

export type BegunKey = { kind: "begun" | "exists"; row: DataKeyRow; retired: Uuid | undefined } | { kind: "no-tenant" };

const DATA_KEY_BYTES = 32;

/**
 * Gives a tenant a data key: its first, or with `rotate` another one for what is sealed from now on.
 * Locks   the tenant, for key share; the key in use, where it is retired.
 * Time    authority time, for the id.
 * Writes  tenant_data_key, audit_event.
 * Replay  without `rotate` the key that is in use: `exists`. With it one more key, and the one before still opens.
 */
export function beginDataKey(
  authority: Authority,
  masterKeys: MasterKeys,
  request: { tenantId: Uuid; actor: string; rotate: boolean },
): Promise<BegunKey> {
  const { tenantId, actor, rotate } = request;
  return authority.transact("begin-data-key", async (tx): Promise<BegunKey> => {
    if (!(await holdTenant(tx, tenantId))) return { kind: "no-tenant" };
    const retired = rotate ? await retireDataKey(tx, tenantId) : undefined;
    const id = mintId(await tx.authorityNow(), randomBucket());
    const row = { tenantId, id, ...masterKeys.wrap({ tenantId, id }, randomBytes(DATA_KEY_BYTES)) };
    if (!(await insertDataKey(tx, row))) {
      return { kind: "exists", row: (await findKeyInUse(tx, tenantId))!, retired: undefined };
    }
    const after = { dataKeyId: id, masterKeyId: row.masterKeyId };
    const before = retired === undefined ? {} : { before: { dataKeyId: retired } };
    await writeAudit(tx, { tenantId, actor, action: "tenant.begin-data-key", subject: tenantId, ...before, after });
    return { kind: "begun", row, retired };
  });
}
