import type { EmailContent } from "../../../domain/effects/email-content.ts";
import type { Instant } from "../../../kernel/clock.ts";
import type { Uuid } from "../../../kernel/ids.ts";
import { type Queryable, sql } from "../../database.ts";

export type EmailTemplateView = EmailContent & { name: string; version: number; updatedAt: Instant; updatedBy: string };

const COLUMNS = `name, version, subject, text, html, updated_at as "updatedAt", updated_by as "updatedBy"`;
const READ = sql("read_email_template", `select ${COLUMNS} from email_template where tenant_id = $1 and name = $2`);
const NAMES = sql("list_email_template_names", "select name from email_template where tenant_id = $1 order by name");
const LIST = sql("list_email_templates", `select ${COLUMNS} from email_template where tenant_id = $1 order by name`);

export async function readEmailTemplate(
  db: Queryable,
  tenantId: Uuid,
  name: string,
): Promise<EmailTemplateView | undefined> {
  return (await db.query<EmailTemplateView>(READ, [tenantId, name]))[0];
}

/** Without their words, which are long. */
export async function listEmailTemplateNames(db: Queryable, tenantId: Uuid): Promise<string[]> {
  return (await db.query<{ name: string }>(NAMES, [tenantId])).map((row) => row.name);
}

/** All of them: there are few. */
export function listEmailTemplates(db: Queryable, tenantId: Uuid): Promise<EmailTemplateView[]> {
  return db.query<EmailTemplateView>(LIST, [tenantId]);
}
