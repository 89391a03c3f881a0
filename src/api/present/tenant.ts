import { z } from "zod";
import { showId } from "../../kernel/ids.ts";
import { TENANT_STATUSES, type TenantView } from "../../store/reads/tenants/tenants.ts";
import { TENANT } from "../examples/identity.ts";
import { shownInstant } from "../input/fields.ts";
import { showInstant } from "./instant.ts";

const fields = z.strictObject({
  tenantId: z.string(),
  name: z.string(),
  status: z.enum(TENANT_STATUSES).describe("suspended: nothing of it starts, and its callers may only read"),
  allowedJobs: z.array(z.string()).nullable().describe("Names of the job types it may use; null: all"),
  createdAt: shownInstant,
});
export const tenantSchema = fields.meta({ id: "Tenant", example: TENANT });

export function presentTenant({ id, name, status, allowedJobs, createdAt }: TenantView): z.output<typeof fields> {
  return {
    tenantId: showId("ten", id),
    name,
    status,
    allowedJobs: allowedJobs && [...allowedJobs],
    createdAt: showInstant(createdAt),
  };
}
