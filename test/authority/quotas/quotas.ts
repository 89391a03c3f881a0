import { setTenantQuotas } from "../../../src/authority/tenants/set-tenant-quotas.ts";
import { DEFAULT_QUOTAS, type TenantQuotas } from "../../../src/domain/quotas/tenant.ts";
import { findTenantQuotas } from "../../../src/store/reads/tenants/quotas.ts";
import type { World } from "../../support/world.ts";

/** Sets a tenant's quotas, whatever they were. */
export async function setQuotas(
  { authority }: Pick<World, "authority">,
  tenantId: string,
  change: Partial<TenantQuotas>,
): Promise<void> {
  const expectedVersion = (await findTenantQuotas(authority.db, tenantId))?.version ?? 0;
  const quotas = { ...DEFAULT_QUOTAS, ...change };
  const outcome = await setTenantQuotas(authority, { tenantId, actor: "key_ops", expectedVersion, quotas });
  if (outcome.kind !== "set") throw new Error(JSON.stringify(outcome));
}
