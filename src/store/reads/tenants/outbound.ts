import type { OutboundRules } from "../../../domain/outbound/rules.ts";
import type { Uuid } from "../../../kernel/ids.ts";
import { type Queryable, sql } from "../../database.ts";

const FIND = sql("read_tenant_outbound", "select outbound from tenant where id = $1");

/** Where the tenant's calls may lead; undefined: there is no such tenant. */
export async function findOutboundRules(
  db: Queryable,
  tenantId: Uuid,
): Promise<{ outbound: OutboundRules | null } | undefined> {
  return (await db.query<{ outbound: OutboundRules | null }>(FIND, [tenantId]))[0];
}
