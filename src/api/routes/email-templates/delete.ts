import { z } from "zod";
import { deleteEmailTemplate } from "../../../authority/tenants/email-templates.ts";
import { WRITERS } from "../../context.ts";
import { noFields } from "../../input/no-fields.ts";
import { defineRoute } from "../../route.ts";
import { noSuchTemplate, templateParams } from "./params.ts";

export const deleteEmailTemplateRoute = defineRoute({
  method: "delete",
  path: "/v1/email-templates/{template}",
  tag: "effects",
  summary: "Take an email template away; emails that name it say the built-in words from then on",
  roles: WRITERS,
  params: templateParams,
  query: noFields,
  answer: { kind: "ok", description: "It is gone", schema: z.strictObject({ name: z.string(), version: z.int() }) },
  problems: ["not-found"],
  async handle({ params: { template: name } }, context, { tenantId, actor }) {
    const outcome = await deleteEmailTemplate(context.authority, { tenantId, actor, name });
    if (outcome.kind === "not-found") throw noSuchTemplate(name);
    return { kind: "ok", body: { name, version: outcome.template.version } };
  },
});
