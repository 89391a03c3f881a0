import { readId } from "../../kernel/ids.ts";
import type { Queryable } from "../../store/database.ts";
import { findTenant } from "../../store/reads/tenants/tenants.ts";
import type { Caller } from "../context.ts";
import { fieldProblem, Problem } from "../problems/problem.ts";
import { boundsOf } from "./tenant-bounds.ts";

export const TENANT_HEADER = "punctual-tenant";

/**
 * The caller in the tenant that it asks for: its own for everybody, any for the platform's admins. The actor stays who it
 * is. Throws `forbidden` and `tenant-not-found`.
 */
export async function actFor(db: Queryable, caller: Caller, header: string | undefined): Promise<Caller> {
  if (header === undefined) return caller;
  const tenantId = readId("ten", header);
  if (tenantId === undefined) {
    throw fieldProblem({
      field: "Punctual-Tenant",
      message: "is no id of a tenant",
      found: JSON.stringify(header.slice(0, 80)),
      allowed: "ten_…",
    });
  }
  if (tenantId === caller.tenantId) return caller;
  if (caller.role !== "admin") {
    throw new Problem("forbidden", "Punctual-Tenant: names another tenant, for which only an admin may act", {
      more: { role: caller.role, allowedRoles: ["admin"] },
    });
  }
  const tenant = await findTenant(db, tenantId);
  if (tenant === undefined) throw noSuchTenant(header);
  return { ...caller, ...boundsOf(tenant), actingFor: true };
}

export function noSuchTenant(ref: string): Problem {
  return new Problem("tenant-not-found", `There is no tenant ${JSON.stringify(ref.slice(0, 100))}`);
}
