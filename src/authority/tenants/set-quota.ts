import type { CLASSES } from "../../domain/definition.ts";
import type { Uuid } from "../../kernel/ids.ts";
import { sql } from "../../store/database.ts";
import { writeAudit } from "../../store/rows/audit.ts";
import { applyLimits } from "../../store/rows/tenants/limits.ts";
import type { Authority } from "../authority.ts";

const LOCK_TENANT = sql("set_quota_tenant", "select id from tenant where id = $1 for no key update");
const LOCK = sql(
  "set_quota_lock",
  `select max_running as "maxRunning", start_rate_per_second as "startRatePerSecond", weight
     from quota where tenant_id = $1 and class = $2 for update`,
);
const WRITE = sql(
  "set_quota_write",
  `insert into quota (tenant_id, class, max_running, start_rate_per_second, weight) values ($1, $2, $3, $4, $5)
   on conflict (tenant_id, class) do update
     set max_running = excluded.max_running, start_rate_per_second = excluded.start_rate_per_second,
         weight = excluded.weight, version = quota.version + 1`,
);

export type Quota = {
  /** Most attempts of the tenant and class at once; null: as many as there are slots. */
  maxRunning: number | null;
  /** Most starts per second; null: as many as there are. */
  startRatePerSecond: number | null;
  /** Share of the slots beside other tenants, 1 to 1000. */
  weight: number;
};

export type QuotaOutcome = { kind: "set"; before: Quota | undefined } | { kind: "no-tenant" };

/**
 * Sets what a tenant may use of a class of work. It holds from the next start on: attempts above a lowered limit run
 * to their end, and none starts until enough of them have.
 * Locks   the tenant (no suspension and no other quota meanwhile), the quota, the lane's usage last.
 * Writes  quota, usage (made where it is missing), an audit event. Numbers outside the table's checks are refused.
 * Replay  the same quota; one more audit event.
 */
export async function setQuota(
  authority: Authority,
  request: { tenantId: Uuid; actor: string; class: (typeof CLASSES)[number]; quota: Quota },
): Promise<QuotaOutcome> {
  const { tenantId, actor, class: class_, quota } = request;
  const outcome = await authority.transact("set-quota", async (tx): Promise<QuotaOutcome> => {
    const [tenant] = await tx.query(LOCK_TENANT, [tenantId]);
    if (tenant === undefined) return { kind: "no-tenant" };
    const [before] = await tx.query<Quota>(LOCK, [tenantId, class_]);
    const { maxRunning, startRatePerSecond, weight } = quota;
    await tx.query(WRITE, [tenantId, class_, maxRunning, startRatePerSecond, weight]);
    await writeAudit(tx, { tenantId, actor, action: "tenant.set-quota", subject: class_, before, after: quota });
    // Claims decide under this row's lock, by what it says.
    await applyLimits(tx, tenantId, [class_]);
    return { kind: "set", before };
  });
  // What was parked at a lower limit may go on.
  if (outcome.kind === "set") authority.signals.outboxGrew(0);
  return outcome;
}
