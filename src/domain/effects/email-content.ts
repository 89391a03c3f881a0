import { z } from "zod";
import type { EmailEffect } from "./definition.ts";
import { EMAIL_NAME, EMAIL_TEXT, placeholderText } from "./template.ts";

/** What an email says, before its placeholders are filled in. Fixed when its run's result is accepted. */
export type EmailContent = { subject: string; text: string; html: string | null };

export const MOST_EMAIL_TEMPLATES = 100;

/** A tenant's own, by name. Names are those of effects. */
export const emailTemplateNameSchema = z
  .string()
  .regex(EMAIL_NAME, "a name has 1 to 40 lower case letters, digits or -, and begins with no -");

export const emailTemplateFields = z.strictObject({
  subject: placeholderText(500).refine((text) => !/[\r\n]/.test(text), "must be one line"),
  text: placeholderText(20_000).describe("For readers that show no HTML; every template has one"),
  html: placeholderText(100_000)
    .nullable()
    .default(null)
    .describe("What is filled in is escaped: it can add no markup. null: the email is plain text"),
});

const SUBJECT = "{{job.name}} of {{run.scheduledAt}}";
const TEXT_WITHOUT_RESULT = "{{job.name}} of {{run.scheduledAt}} has succeeded.\n";

const row = (name: string, value: string) =>
  `<tr><td style="padding:2px 16px 2px 0;color:#666">${name}</td><td style="padding:2px 0">${value}</td></tr>`;
const page = (more: string) => `<!doctype html>
<html lang="en"><body style="margin:0;padding:24px;font:15px/1.5 system-ui,sans-serif;color:#222;background:#fff">
<h1 style="margin:0 0 12px;font-size:18px">{{job.name}} has succeeded</h1>
<table style="border-collapse:collapse;font-size:14px">
${row("Schedule", "{{schedule.name}}")}
${row("Scheduled", "{{run.scheduledAt}}")}
${row("Finished", "{{run.finishedAt}}")}
${row("Run", "{{run.id}}")}
</table>
${more}</body></html>
`;
const RESULT = `<p style="margin:16px 0 0"><a href="{{result.url}}">Open the result</a>
<span style="color:#666">{{result.mediaType}}, {{result.size}} bytes</span></p>
`;

/**
 * What an effect says: its own words, else those of the template that it names, else the built-in ones. A template that
 * is not there any more is no reason not to write: then it is the built-in words.
 */
export function contentOf(
  { subject, text, template: name }: Pick<EmailEffect, "subject" | "text" | "template">,
  template: EmailContent | undefined,
  hasResult: boolean,
): EmailContent {
  if (name !== undefined && template !== undefined) return { ...template, subject: subject ?? template.subject };
  if (text !== undefined) return { subject: subject ?? SUBJECT, text, html: null };
  return {
    subject: subject ?? SUBJECT,
    text: hasResult ? EMAIL_TEXT : TEXT_WITHOUT_RESULT,
    html: page(hasResult ? RESULT : ""),
  };
}
