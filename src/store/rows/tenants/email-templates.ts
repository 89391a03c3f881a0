import type { EmailContent } from "../../../domain/effects/email-content.ts";
import type { Instant } from "../../../kernel/clock.ts";
import type { Uuid } from "../../../kernel/ids.ts";
import { type Queryable, sql } from "../../database.ts";
import type { EmailTemplateView } from "../../reads/tenants/email-templates.ts";
import { instantText } from "../../values.ts";

type Key = { tenantId: Uuid; name: string };

const FIND = sql(
  "email_templates_find",
  `select t.tenant_id as "tenantId", t.name, t.subject, t.text, t.html
     from unnest($1::uuid[], $2::text[]) as k (tenant_id, name)
     join email_template t on t.tenant_id = k.tenant_id and t.name = k.name`,
);
const COUNT = sql("email_templates_count", "select count(*)::int as n from email_template where tenant_id = $1");
const PUT = sql(
  "email_templates_put",
  `insert into email_template as t (tenant_id, name, subject, text, html, updated_at, updated_by)
   values ($1, $2, $3, $4, $5, $6::timestamptz, $7)
   on conflict (tenant_id, name) do update
     set subject = excluded.subject, text = excluded.text, html = excluded.html, version = t.version + 1,
         updated_at = excluded.updated_at, updated_by = excluded.updated_by`,
);
const DELETE = sql("email_templates_delete", "delete from email_template where tenant_id = $1 and name = $2");

export function findEmailTemplates(db: Queryable, keys: readonly Key[]): Promise<(Key & EmailContent)[]> {
  return db.query(FIND, [keys.map((key) => key.tenantId), keys.map((key) => key.name)]);
}

export async function countEmailTemplates(tx: Queryable, tenantId: Uuid): Promise<number> {
  return (await tx.query<{ n: number }>(COUNT, [tenantId]))[0]!.n;
}

export async function writeEmailTemplate(
  tx: Queryable,
  template: Key & EmailContent & { updatedAt: Instant; updatedBy: EmailTemplateView["updatedBy"] },
): Promise<void> {
  const { tenantId, name, subject, text, html, updatedAt, updatedBy } = template;
  await tx.query(PUT, [tenantId, name, subject, text, html, instantText(updatedAt), updatedBy]);
}

export async function deleteEmailTemplate(tx: Queryable, { tenantId, name }: Key): Promise<void> {
  await tx.query(DELETE, [tenantId, name]);
}
