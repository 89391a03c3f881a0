import { mintId, randomBucket, type Uuid } from "../../kernel/ids.ts";
import { sql } from "../../store/database.ts";
import type { Authority } from "../authority.ts";

const INSERT = sql(
  "create_tenant",
  "insert into tenant (id, name, created_at) values ($1, $2, clock_timestamp()) on conflict (name) do nothing returning id",
);
const FIND = sql("find_tenant_by_name", "select id from tenant where name = $1");

export type TenantOutcome = { kind: "created"; tenantId: Uuid } | { kind: "exists"; tenantId: Uuid };

/**
 * Creates a tenant under a name nobody has yet.
 * Locks   none beyond the unique name.
 * Time    authority time, for the id.
 * Writes  tenant.
 * Replay  the name is the natural key: `exists` with the same id.
 */
export function createTenant(authority: Authority, request: { name: string }): Promise<TenantOutcome> {
  return authority.transact("create-tenant", async (tx) => {
    const id = mintId(await tx.authorityNow(), randomBucket());
    const [made] = await tx.query<{ id: Uuid }>(INSERT, [id, request.name]);
    if (made !== undefined) return { kind: "created", tenantId: made.id };
    const [found] = await tx.query<{ id: Uuid }>(FIND, [request.name]);
    return { kind: "exists", tenantId: found!.id };
  });
}
