import { z } from "zod";
import { outboundRulesSchema } from "../../domain/outbound/rules.ts";
import { showId } from "../../kernel/ids.ts";
import { TENANT_STATUSES, type TenantView } from "../../store/reads/tenants/tenants.ts";
import { TENANT } from "../examples/identity.ts";
import { shownInstant } from "../input/fields.ts";
import { showInstant } from "./instant.ts";

const fields = z.strictObject({
  tenantId: z.string(),
  name: z.string(),
  status: z.enum(TENANT_STATUSES).describe("suspended: nothing of it starts, and its callers may only read"),
  allowedJobs: z.array(z.string()).nullable().describe("Names of the job types it may use, and kinds; null: all"),
  outbound: outboundRulesSchema
    .nullable()
    .describe("Where its HTTP jobs, webhooks and brokers may be; null: any host and port at a public address"),
  createdAt: shownInstant,
});
export const tenantSchema = fields.meta({ id: "Tenant", example: TENANT });

export function presentTenant({
  id,
  name,
  status,
  allowedJobs,
  outbound,
  createdAt,
}: TenantView): z.output<typeof fields> {
  return {
    tenantId: showId("ten", id),
    name,
    status,
    allowedJobs: allowedJobs && [...allowedJobs],
    outbound,
    createdAt: showInstant(createdAt),
  };
}
