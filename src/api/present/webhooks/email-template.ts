import { z } from "zod";
import type { EmailTemplateView } from "../../../store/reads/tenants/email-templates.ts";
import { EMAIL_TEMPLATE } from "../../examples/webhooks.ts";
import { shownInstant } from "../../input/fields.ts";
import { showInstant } from "../instant.ts";

const fields = z.strictObject({
  name: z.string(),
  version: z.int().describe("Counts its changes"),
  subject: z.string(),
  text: z.string(),
  html: z.string().nullable(),
  updatedAt: shownInstant,
  updatedBy: z.string(),
});
export const emailTemplateSchema = fields.meta({ id: "EmailTemplate", example: EMAIL_TEMPLATE });

export function presentEmailTemplate(view: EmailTemplateView): z.output<typeof fields> {
  return { ...view, updatedAt: showInstant(view.updatedAt) };
}
