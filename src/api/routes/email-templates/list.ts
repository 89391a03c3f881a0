import { z } from "zod";
import { listEmailTemplates } from "../../../store/reads/tenants/email-templates.ts";
import { READERS } from "../../context.ts";
import { noFields } from "../../input/no-fields.ts";
import { emailTemplateSchema, presentEmailTemplate } from "../../present/webhooks/email-template.ts";
import { defineRoute } from "../../route.ts";

export const listEmailTemplatesRoute = defineRoute({
  method: "get",
  path: "/v1/email-templates",
  tag: "effects",
  summary: "List the tenant's email templates, by name",
  roles: READERS,
  params: noFields,
  query: noFields,
  answer: {
    kind: "ok",
    description: "All of them",
    schema: z.strictObject({ items: z.array(emailTemplateSchema), source: z.literal("authority") }),
  },
  problems: [],
  async handle(_call, context, caller) {
    const items = (await listEmailTemplates(context.db, caller.tenantId)).map(presentEmailTemplate);
    return { kind: "ok", body: { items, source: "authority" } };
  },
});
