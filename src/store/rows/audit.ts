import type { Uuid } from "../../kernel/ids.ts";
import { type Queryable, sql } from "../database.ts";

const INSERT = sql(
  "audit_insert",
  "insert into audit_event (tenant_id, actor, action, subject, before, after) values ($1, $2, $3, $4, $5, $6)",
);

/** Who did what, in the transaction that did it. */
export async function writeAudit(
  tx: Queryable,
  event: { tenantId: Uuid; actor: string; action: string; subject: string; before?: unknown; after?: unknown },
): Promise<void> {
  const json = (value: unknown) => (value === undefined ? null : JSON.stringify(value));
  await tx.query(INSERT, [
    event.tenantId,
    event.actor,
    event.action,
    event.subject,
    json(event.before),
    json(event.after),
  ]);
}
