import type { OutboundRules } from "../../domain/outbound/rules.ts";
import { showId, type Uuid } from "../../kernel/ids.ts";
import { sql, type Transaction } from "../../store/database.ts";
import { findTenant, findTenantByName, type TenantStatus, type TenantView } from "../../store/reads/tenants/tenants.ts";
import { writeAudit } from "../../store/rows/audit.ts";
import { applyLimits } from "../../store/rows/tenants/limits.ts";
import { lockTenant } from "../../store/rows/tenants/tenants.ts";
import { sqlStateOf } from "../../store/sql-errors.ts";
import type { Authority } from "../authority.ts";
import { markSuspended } from "./mark-suspended.ts";

const WRITE = sql(
  "update_tenant_write",
  "update tenant set name = $2, status = $3, allowed_jobs = $4::text[], outbound = $5::jsonb where id = $1",
);

export type TenantChange = {
  name?: string;
  status?: TenantStatus;
  allowedJobs?: readonly string[] | null;
  outbound?: OutboundRules | null;
};

export type UpdateTenantOutcome =
  | { kind: "updated" | "unchanged"; tenant: TenantView }
  | { kind: "not-found" }
  | { kind: "name-taken"; tenantId: Uuid };

/**
 * Renames a tenant, says what it may use and where its calls may lead, suspends or resumes it. While it is suspended nothing of it starts: its limit is
 * 0 in every class. What runs goes on, and what becomes due becomes runs that wait.
 * Locks   the tenant for no key update; when the status changes, its usage last. Before a resume: live runs, as
 *         mark-suspended.ts says.
 * Time    the event's own: nothing is decided by it.
 * Writes  tenant, an audit event; usage (made where it is missing).
 * Replay  `unchanged`.
 */
export async function updateTenant(
  authority: Authority,
  request: { tenantId: Uuid; actor: string; change: TenantChange },
): Promise<UpdateTenantOutcome> {
  const { tenantId, actor, change } = request;
  // What has waited was not late of our doing. Before the change, so that it is known by the time it starts.
  if (change.status === "active") await markSuspended(authority, tenantId);
  let resumed = false;
  const update = async (tx: Transaction): Promise<UpdateTenantOutcome> => {
    resumed = false;
    if (!(await lockTenant(tx, tenantId))) return { kind: "not-found" };
    const before = (await findTenant(tx, tenantId))!;
    const after = { ...before, ...change };
    const changed = FIELDS.filter((field) => JSON.stringify(before[field]) !== JSON.stringify(after[field]));
    if (changed.length === 0) return { kind: "unchanged", tenant: before };
    const namesake = changed.includes("name") ? await findTenantByName(tx, after.name) : undefined;
    if (namesake !== undefined) return { kind: "name-taken", tenantId: namesake.id };
    const outbound = after.outbound === null ? null : JSON.stringify(after.outbound);
    await tx.query(WRITE, [tenantId, after.name, after.status, after.allowedJobs, outbound]);
    const of = (tenant: TenantView) => Object.fromEntries(changed.map((field) => [field, tenant[field]]));
    const subject = showId("ten", tenantId);
    await writeAudit(tx, { tenantId, actor, action: "tenant.update", subject, before: of(before), after: of(after) });
    if (changed.includes("status")) {
      await applyLimits(tx, tenantId);
      resumed = after.status === "active";
    }
    return { kind: "updated", tenant: (await findTenant(tx, tenantId))! };
  };
  const outcome = await authority.transact("update-tenant", update).catch(async (error: unknown) => {
    // Somebody took the name while we waited.
    const namesake =
      sqlStateOf(error) === "23505" ? await findTenantByName(authority.db, change.name ?? "") : undefined;
    if (namesake === undefined) throw error;
    return { kind: "name-taken", tenantId: namesake.id } as const;
  });
  // What has waited may go on.
  if (outcome.kind === "updated" && resumed) authority.signals.outboxGrew(0);
  return outcome;
}

const FIELDS = ["name", "status", "allowedJobs", "outbound"] as const;
