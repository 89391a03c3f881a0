import { type EmailContent, MOST_EMAIL_TEMPLATES } from "../../domain/effects/email-content.ts";
import type { Uuid } from "../../kernel/ids.ts";
import { type EmailTemplateView, readEmailTemplate } from "../../store/reads/tenants/email-templates.ts";
import { writeAudit } from "../../store/rows/audit.ts";
import {
  countEmailTemplates,
  deleteEmailTemplate as deleteTemplate,
  writeEmailTemplate,
} from "../../store/rows/tenants/email-templates.ts";
import { lockTenant } from "../../store/rows/tenants/tenants.ts";
import type { Authority } from "../authority.ts";

type Of = { tenantId: Uuid; actor: string; name: string };

export type PutEmailTemplateOutcome =
  | { kind: "created" | "changed" | "unchanged"; template: EmailTemplateView }
  /** Somebody else has changed it meanwhile (undefined: there is none). */
  | { kind: "conflict"; current: EmailTemplateView | undefined }
  | { kind: "too-many"; used: number }
  | { kind: "no-tenant" };

/**
 * Makes an email template, or says what it says from now on. Emails of results that are accepted already stay as they are.
 * `expectedVersion`: the version it was made for; 0: there must be none yet.
 * Locks   the tenant for no key update: its templates change one at a time.
 * Time    authority time, after the lock.
 * Writes  email_template, an audit event.
 * Replay  `unchanged`, whatever version was expected.
 */
export function putEmailTemplate(
  authority: Authority,
  request: Of & { content: EmailContent; expectedVersion?: number | undefined },
): Promise<PutEmailTemplateOutcome> {
  const { tenantId, actor, name, content, expectedVersion } = request;
  return authority.transact("put-email-template", async (tx): Promise<PutEmailTemplateOutcome> => {
    if (!(await lockTenant(tx, tenantId))) return { kind: "no-tenant" };
    const before = await readEmailTemplate(tx, tenantId, name);
    const fields = (["subject", "text", "html"] as const).filter((field) => before?.[field] !== content[field]);
    if (before !== undefined && fields.length === 0) return { kind: "unchanged", template: before };
    if (expectedVersion !== undefined && expectedVersion !== (before?.version ?? 0)) {
      return { kind: "conflict", current: before };
    }
    const used = before === undefined ? await countEmailTemplates(tx, tenantId) : 0;
    if (used >= MOST_EMAIL_TEMPLATES) return { kind: "too-many", used };
    await writeEmailTemplate(tx, { tenantId, name, ...content, updatedAt: await tx.authorityNow(), updatedBy: actor });
    const template = (await readEmailTemplate(tx, tenantId, name))!;
    const of = (said: EmailTemplateView) => ({
      version: said.version,
      ...Object.fromEntries(fields.map((field) => [field, said[field]])),
    });
    await writeAudit(tx, {
      tenantId,
      actor,
      action: before === undefined ? "email-template.create" : "email-template.change",
      subject: name,
      ...(before === undefined ? {} : { before: of(before) }),
      after: of(template),
    });
    return { kind: before === undefined ? "created" : "changed", template };
  });
}

export type DeleteEmailTemplateOutcome = { kind: "deleted"; template: EmailTemplateView } | { kind: "not-found" };

/**
 * Takes an email template away. Emails that still name it say the built-in words from then on.
 * Locks   the tenant for no key update.
 * Time    none.
 * Writes  email_template, an audit event.
 * Replay  `not-found`.
 */
export function deleteEmailTemplate(authority: Authority, request: Of): Promise<DeleteEmailTemplateOutcome> {
  const { tenantId, actor, name } = request;
  return authority.transact("delete-email-template", async (tx): Promise<DeleteEmailTemplateOutcome> => {
    const template = (await lockTenant(tx, tenantId)) ? await readEmailTemplate(tx, tenantId, name) : undefined;
    if (template === undefined) return { kind: "not-found" };
    await deleteTemplate(tx, { tenantId, name });
    const { version, subject, text, html } = template;
    const before = { version, subject, text, html };
    await writeAudit(tx, { tenantId, actor, action: "email-template.delete", subject: name, before });
    return { kind: "deleted", template };
  });
}
