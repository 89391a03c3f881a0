import { CLASSES } from "../../../domain/definition.ts";
import { findClassQuotas, findTenantQuotas } from "../../../store/reads/tenants/quotas.ts";
import { READERS } from "../../context.ts";
import { noFields } from "../../input/no-fields.ts";
import { presentClassQuota, presentTenantQuotas, quotasSchema } from "../../present/quotas.ts";
import { defineRoute } from "../../route.ts";

export const getQuotasRoute = defineRoute({
  method: "get",
  path: "/v1/quotas",
  tag: "quotas",
  summary: "Read what the tenant may have and use",
  roles: READERS,
  params: noFields,
  query: noFields,
  answer: { kind: "ok", description: "The quotas in force; null is no limit", schema: quotasSchema },
  problems: [],
  async handle(_call, context, { tenantId }) {
    const [kept, ofClasses] = await Promise.all([
      findTenantQuotas(context.db, tenantId),
      findClassQuotas(context.db, tenantId),
    ]);
    const classes = CLASSES.map((name) => [name, presentClassQuota(ofClasses.find((one) => one.class === name))]);
    const body = presentTenantQuotas(kept);
    return {
      kind: "ok",
      headers: { etag: `"${body.version}"` },
      body: { ...body, classes: Object.fromEntries(classes) },
    };
  },
});
