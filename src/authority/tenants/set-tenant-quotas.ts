import { QUOTA_NAMES, type TenantQuotas } from "../../domain/quotas/tenant.ts";
import type { Uuid } from "../../kernel/ids.ts";
import type { KeptQuotas } from "../../store/reads/tenants/quotas.ts";
import { writeAudit } from "../../store/rows/audit.ts";
import { lockTenantQuotas, writeTenantQuotas } from "../../store/rows/tenants/quotas.ts";
import { lockTenant } from "../../store/rows/tenants/tenants.ts";
import type { Authority } from "../authority.ts";

export type TenantQuotasOutcome =
  | { kind: "set"; quotas: KeptQuotas }
  | { kind: "conflict"; current: KeptQuotas | undefined }
  | { kind: "no-tenant" };

/**
 * Sets what a tenant may have. What there is already stays, above a lowered limit too: only new ones are refused.
 * Locks   the tenant, so that nobody else writes its first row meanwhile; its quotas.
 * Time    the event's own: nothing is decided by it.
 * Writes  tenant_quota, an audit event.
 * Replay  the same quotas: nothing is changed, whatever version was expected. Other ones: `conflict`, unless it is the
 *         version in force (0: there is none yet).
 */
export function setTenantQuotas(
  authority: Authority,
  request: { tenantId: Uuid; actor: string; expectedVersion: number; quotas: TenantQuotas },
): Promise<TenantQuotasOutcome> {
  const { tenantId, actor, expectedVersion, quotas } = request;
  return authority.transact("set-tenant-quotas", async (tx): Promise<TenantQuotasOutcome> => {
    if (!(await lockTenant(tx, tenantId))) return { kind: "no-tenant" };
    const before = await lockTenantQuotas(tx, tenantId, "all");
    if (before !== undefined && QUOTA_NAMES.every((name) => before[name] === quotas[name])) {
      return { kind: "set", quotas: before };
    }
    if ((before?.version ?? 0) !== expectedVersion) return { kind: "conflict", current: before };
    const version = await writeTenantQuotas(tx, tenantId, quotas);
    const after = { ...quotas, version };
    await writeAudit(tx, { tenantId, actor, action: "tenant.set-quotas", subject: "tenant", before, after });
    return { kind: "set", quotas: after };
  });
}
