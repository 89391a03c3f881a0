import { z } from "zod";
import { putEmailTemplate } from "../../../authority/tenants/email-templates.ts";
import {
  emailTemplateFields,
  emailTemplateNameSchema,
  MOST_EMAIL_TEMPLATES,
} from "../../../domain/effects/email-content.ts";
import { showId } from "../../../kernel/ids.ts";
import { WRITERS } from "../../context.ts";
import { EMAIL_TEMPLATE_BODY } from "../../examples/webhooks.ts";
import { noSuchTenant } from "../../identity/acting.ts";
import { readIfMatch } from "../../input/if-match.ts";
import { parseWith } from "../../input/issues.ts";
import { noFields } from "../../input/no-fields.ts";
import { emailTemplateSchema, presentEmailTemplate } from "../../present/webhooks/email-template.ts";
import { Problem } from "../../problems/problem.ts";
import { defineRoute } from "../../route.ts";
import { templateParams } from "./params.ts";

export const putEmailTemplateRoute = defineRoute({
  method: "put",
  path: "/v1/email-templates/{template}",
  tag: "effects",
  summary: "Make an email template, or change what it says",
  description:
    "Emails of results that are accepted from now on say it; those that wait to be sent stay as they are. A repeat with the same words changes nothing.",
  roles: WRITERS,
  params: templateParams,
  query: noFields,
  headers: z.object({
    "if-match": z.string().optional().describe('The template\'s ETag, such as `"3"`, in place of `expectedVersion`'),
  }),
  body: emailTemplateFields.safeExtend({
    expectedVersion: z
      .int()
      .min(0)
      .optional()
      .describe(
        "The version this change was made for, 0: there must be none yet; or send `If-Match`. Neither: whatever is there",
      ),
  }),
  example: EMAIL_TEMPLATE_BODY,
  answer: { kind: "ok", description: "The template as it is from now on", schema: emailTemplateSchema },
  problems: ["too-many-email-templates", "email-template-conflict"],
  async handle({ params, body: { expectedVersion: inBody, ...content }, header }, context, { tenantId, actor }) {
    const { template: name } = parseWith(z.strictObject({ template: emailTemplateNameSchema }), params, "path");
    const expectedVersion = inBody ?? readIfMatch(header("if-match"), { number: "version", of: "email template" });
    const outcome = await putEmailTemplate(context.authority, { tenantId, actor, name, content, expectedVersion });
    if (outcome.kind === "no-tenant") throw noSuchTenant(showId("ten", tenantId));
    if (outcome.kind === "too-many") {
      const { used } = outcome;
      throw new Problem(
        "too-many-email-templates",
        `The tenant has ${used} email templates; ${MOST_EMAIL_TEMPLATES} are allowed`,
        { more: { limit: MOST_EMAIL_TEMPLATES, used } },
      );
    }
    if (outcome.kind === "conflict") {
      const { current } = outcome;
      const is = current === undefined ? "there is no such template" : `the template is at version ${current.version}`;
      throw new Problem("email-template-conflict", `expectedVersion: found ${expectedVersion}; ${is}`, {
        more: { current: current === undefined ? null : presentEmailTemplate(current) },
      });
    }
    const { template } = outcome;
    return { kind: "ok", headers: { etag: `"${template.version}"` }, body: presentEmailTemplate(template) };
  },
});
