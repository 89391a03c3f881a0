import { z } from "zod";
import { updateTenant } from "../../../authority/tenants/update-tenant.ts";
import { outboundRulesSchema } from "../../../domain/outbound/rules.ts";
import { showId } from "../../../kernel/ids.ts";
import { findTenant, TENANT_STATUSES } from "../../../store/reads/tenants/tenants.ts";
import { TENANT_CHANGE_BODY } from "../../examples/identity.ts";
import { noSuchTenant } from "../../identity/acting.ts";
import { noFields } from "../../input/no-fields.ts";
import { presentTenant, tenantSchema } from "../../present/tenant.ts";
import { defineRoute } from "../../route.ts";
import { checkAllowedJobs, getTenantId, nameTaken, PLATFORM, tenantFields, tenantParams } from "./tenant-fields.ts";

export const patchTenantRoute = defineRoute({
  method: "patch",
  path: "/v1/tenants/{tenant}",
  tag: "tenants",
  summary: "Rename a tenant, say which jobs it may use and where its calls may lead, suspend or resume it",
  description:
    "While it is suspended nothing of it starts and its own callers may only read; what runs goes on, and what becomes due waits as runs. Resuming lets them start. Schedules whose job is not allowed any more go on. `outbound` takes the place of what was there as a whole, and is looked at by every call that is made.",
  roles: PLATFORM,
  sees: "every-tenant",
  params: tenantParams,
  query: noFields,
  body: z.strictObject({
    name: tenantFields.name.optional(),
    allowedJobs: tenantFields.allowedJobs.optional(),
    outbound: outboundRulesSchema
      .nullable()
      .optional()
      .describe("Where its HTTP jobs, webhooks and brokers may be; null: any host and port at a public address"),
    status: z.enum(TENANT_STATUSES).optional(),
  }),
  example: TENANT_CHANGE_BODY,
  answer: {
    kind: "ok",
    description: "The tenant after the change",
    schema: z.strictObject({ tenant: tenantSchema, changed: z.boolean() }),
  },
  problems: ["tenant-not-found", "tenant-name-taken"],
  async handle({ params, body }, context, caller) {
    const { name, status, allowedJobs, outbound } = body;
    const tenantId = getTenantId(params.tenant);
    const before = await findTenant(context.db, tenantId);
    if (before === undefined) throw noSuchTenant(params.tenant);
    const outcome = await updateTenant(context.authority, {
      tenantId,
      actor: caller.actor,
      change: {
        ...(name === undefined ? {} : { name }),
        ...(status === undefined ? {} : { status }),
        ...(outbound === undefined ? {} : { outbound }),
        ...(allowedJobs === undefined
          ? {}
          : { allowedJobs: checkAllowedJobs(context, allowedJobs, before.allowedJobs ?? []) }),
      },
    });
    if (outcome.kind === "not-found") throw noSuchTenant(params.tenant);
    if (outcome.kind === "name-taken") throw nameTaken(name ?? "", showId("ten", outcome.tenantId));
    return { kind: "ok", body: { tenant: presentTenant(outcome.tenant), changed: outcome.kind === "updated" } };
  },
});
