import { readEmailTemplate } from "../../../store/reads/tenants/email-templates.ts";
import { READERS } from "../../context.ts";
import { noFields } from "../../input/no-fields.ts";
import { emailTemplateSchema, presentEmailTemplate } from "../../present/webhooks/email-template.ts";
import { defineRoute } from "../../route.ts";
import { noSuchTemplate, templateParams } from "./params.ts";

export const getEmailTemplateRoute = defineRoute({
  method: "get",
  path: "/v1/email-templates/{template}",
  tag: "effects",
  summary: "Show one email template",
  roles: READERS,
  params: templateParams,
  query: noFields,
  answer: { kind: "ok", description: "The template as it is now", schema: emailTemplateSchema },
  problems: ["not-found"],
  async handle({ params: { template: name } }, context, caller) {
    const found = await readEmailTemplate(context.db, caller.tenantId, name);
    if (found === undefined) throw noSuchTemplate(name);
    return { kind: "ok", headers: { etag: `"${found.version}"` }, body: presentEmailTemplate(found) };
  },
});
