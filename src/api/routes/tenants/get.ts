import { findTenant } from "../../../store/reads/tenants/tenants.ts";
import { noSuchTenant } from "../../identity/acting.ts";
import { noFields } from "../../input/no-fields.ts";
import { presentTenant, tenantSchema } from "../../present/tenant.ts";
import { defineRoute } from "../../route.ts";
import { getTenantId, PLATFORM, tenantParams } from "./tenant-fields.ts";

export const getTenantRoute = defineRoute({
  method: "get",
  path: "/v1/tenants/{tenant}",
  tag: "tenants",
  summary: "Show a tenant",
  roles: PLATFORM,
  sees: "every-tenant",
  params: tenantParams,
  query: noFields,
  answer: { kind: "ok", description: "The tenant as it stands", schema: tenantSchema },
  problems: ["tenant-not-found"],
  async handle({ params }, context) {
    const tenant = await findTenant(context.db, getTenantId(params.tenant));
    if (tenant === undefined) throw noSuchTenant(params.tenant);
    return { kind: "ok", body: presentTenant(tenant) };
  },
});
