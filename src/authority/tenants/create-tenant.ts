import { mintId, randomBucket, showId, type Uuid } from "../../kernel/ids.ts";
import { sql } from "../../store/database.ts";
import { findTenantByName, type TenantView } from "../../store/reads/tenants/tenants.ts";
import { writeAudit } from "../../store/rows/audit.ts";
import type { Authority } from "../authority.ts";

const INSERT = sql(
  "create_tenant",
  `insert into tenant (id, name, allowed_jobs, created_at) values ($1, $2, $3::text[], clock_timestamp())
   on conflict (name) do nothing returning id`,
);

export type TenantOutcome = { kind: "created" | "exists"; tenantId: Uuid; tenant: TenantView };

/**
 * Creates a tenant under a name nobody has yet.
 * Locks   none beyond the unique name.
 * Time    authority time, for the id.
 * Writes  tenant, an audit event.
 * Replay  the name is the natural key: `exists` with the same id.
 */
export function createTenant(
  authority: Authority,
  request: { name: string; actor?: string; allowedJobs?: readonly string[] | null },
): Promise<TenantOutcome> {
  return authority.transact("create-tenant", async (tx): Promise<TenantOutcome> => {
    const { name, actor = "punctual", allowedJobs = null } = request;
    const id = mintId(await tx.authorityNow(), randomBucket());
    const [made] = await tx.query<{ id: Uuid }>(INSERT, [id, name, allowedJobs]);
    const tenant = (await findTenantByName(tx, name))!;
    if (made === undefined) return { kind: "exists", tenantId: tenant.id, tenant };
    await writeAudit(tx, {
      tenantId: id,
      actor,
      action: "tenant.create",
      subject: showId("ten", id),
      after: { name, allowedJobs },
    });
    return { kind: "created", tenantId: id, tenant };
  });
}
