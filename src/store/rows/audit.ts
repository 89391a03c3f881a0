import type { Uuid } from "../../kernel/ids.ts";
import { sql, type Transaction } from "../database.ts";

// Time is read once the transaction has its number: readWatermark counts on it.
const INSERT = sql(
  "audit_insert",
  `insert into audit_event
     (tenant_id, actor, action, subject, before, after, request_id, key_id, address, acting_for, at)
   values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10,
           case when pg_current_xact_id() is not null then clock_timestamp() end)`,
);

/** Of one field, and of all that stands on one side, as JSON. What is longer is kept where it belongs: in a revision. */
const LONGEST_FIELD = 2_048;
const LONGEST_SIDE = 8_192;

export type AuditEvent = {
  tenantId: Uuid;
  actor: string;
  action: string;
  subject: string;
  before?: unknown;
  after?: unknown;
};

/** Who did what, and in which call, in the transaction that did it. Never give it a secret. */
export async function writeAudit(tx: Pick<Transaction, "query" | "origin">, event: AuditEvent): Promise<void> {
  const { origin } = tx;
  await tx.query(INSERT, [
    event.tenantId,
    event.actor,
    event.action,
    event.subject,
    boundedJson(event.before),
    boundedJson(event.after),
    origin?.requestId ?? null,
    origin?.keyId ?? null,
    origin?.address ?? null,
    typeof origin?.homeTenantId === "string" && origin.homeTenantId !== event.tenantId,
  ]);
}

/** A field that is too long says how long it is instead; of too many, the first are kept and the others counted. */
export function boundedJson(value: unknown): string | null {
  if (value === undefined) return null;
  const text = JSON.stringify(value);
  if (text.length <= LONGEST_FIELD) return text;
  if (typeof value !== "object" || value === null || Array.isArray(value)) return omitted(text);
  let left = LONGEST_SIDE;
  let dropped = 0;
  const kept = Object.entries(value).flatMap(([name, field]) => {
    const json = JSON.stringify(field) as string | undefined;
    if (json === undefined) return [];
    const shown = `${JSON.stringify(name)}:${json.length <= LONGEST_FIELD ? json : omitted(json)}`;
    left -= shown.length + 1;
    if (left >= 0) return [shown];
    dropped++;
    return [];
  });
  return `{${(dropped === 0 ? kept : [...kept, `"omittedFields":${dropped}`]).join(",")}}`;
}

function omitted(json: string): string {
  return JSON.stringify({ omittedCharacters: json.length });
}
