import { z } from "zod";
import { listTenants, TENANT_STATUSES } from "../../../store/reads/tenants/tenants.ts";
import { afterSchema, limitSchema } from "../../input/fields.ts";
import { noFields } from "../../input/no-fields.ts";
import { pageAnswer, replyWithPage } from "../../present/page.ts";
import { presentTenant, tenantSchema } from "../../present/tenant.ts";
import { defineRoute } from "../../route.ts";
import { PLATFORM } from "./tenant-fields.ts";

export const listTenantsRoute = defineRoute({
  method: "get",
  path: "/v1/tenants",
  tag: "tenants",
  summary: "List tenants, newest first",
  roles: PLATFORM,
  sees: "every-tenant",
  params: noFields,
  query: z.strictObject({ status: z.enum(TENANT_STATUSES).optional(), limit: limitSchema, after: afterSchema }),
  answer: pageAnswer(tenantSchema),
  problems: ["invalid-cursor"],
  async handle({ query }, context) {
    const { status, limit } = query;
    const list = JSON.stringify(["tenants", status]);
    const afterId = query.after === undefined ? undefined : String(context.cursors.read(list, query.after)[0]);
    const rows = await listTenants(context.db, {
      limit: limit + 1,
      ...(afterId === undefined ? {} : { afterId }),
      ...(status === undefined ? {} : { status }),
    });
    return replyWithPage(context, list, { rows, limit, positionOf: (row) => row.id, present: presentTenant });
  },
});
