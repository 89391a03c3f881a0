import { z } from "zod";
import { createTenant } from "../../../authority/tenants/create-tenant.ts";
import { showId } from "../../../kernel/ids.ts";
import { TENANT_BODY } from "../../examples/identity.ts";
import { noFields } from "../../input/no-fields.ts";
import { presentTenant, tenantSchema } from "../../present/tenant.ts";
import { defineRoute } from "../../route.ts";
import { checkAllowedJobs, nameTaken, PLATFORM, tenantFields } from "./tenant-fields.ts";

export const createTenantRoute = defineRoute({
  method: "post",
  path: "/v1/tenants",
  tag: "tenants",
  summary: "Make a tenant",
  description:
    "The name is what makes the call safe to repeat: the second one is `tenant-name-taken`, with the id. Its first key comes from `POST /v1/api-keys` with `Punctual-Tenant`.",
  roles: PLATFORM,
  sees: "every-tenant",
  params: noFields,
  query: noFields,
  body: z.strictObject({ name: tenantFields.name, allowedJobs: tenantFields.allowedJobs.optional() }),
  example: TENANT_BODY,
  answer: { kind: "created", description: "The tenant", schema: tenantSchema },
  problems: ["tenant-name-taken"],
  async handle({ body }, context, caller) {
    const { name } = body;
    const allowedJobs = checkAllowedJobs(context, body.allowedJobs);
    const outcome = await createTenant(context.authority, { name, allowedJobs, actor: caller.actor });
    const tenantId = showId("ten", outcome.tenantId);
    if (outcome.kind === "exists") throw nameTaken(name, tenantId);
    return {
      kind: "created",
      headers: { location: `/v1/tenants/${tenantId}` },
      body: presentTenant(outcome.tenant),
    };
  },
});
