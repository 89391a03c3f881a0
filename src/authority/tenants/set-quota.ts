import type { CLASSES } from "../../domain/definition.ts";
import type { AdmissionPolicy } from "../../domain/quotas/admission.ts";
import type { Uuid } from "../../kernel/ids.ts";
import { sql } from "../../store/database.ts";
import { writeAudit } from "../../store/rows/audit.ts";
import { applyLimits } from "../../store/rows/tenants/limits.ts";
import { lockTenant } from "../../store/rows/tenants/tenants.ts";
import type { Authority } from "../authority.ts";

const LOCK = sql(
  "set_quota_lock",
  `select max_running as "maxRunning", start_rate_per_second as "startRatePerSecond", weight,
          on_infeasible as "onInfeasible", version::int as version
     from quota where tenant_id = $1 and class = $2 for update`,
);
const WRITE = sql(
  "set_quota_write",
  `insert into quota (tenant_id, class, max_running, start_rate_per_second, weight, on_infeasible)
   values ($1, $2, $3, $4, $5, $6)
   on conflict (tenant_id, class) do update
     set max_running = excluded.max_running, start_rate_per_second = excluded.start_rate_per_second,
         weight = excluded.weight, on_infeasible = excluded.on_infeasible, version = quota.version + 1
   returning version::int as version`,
);

export type Quota = {
  /** Most attempts of the tenant and class at once; null: as many as there are slots. */
  maxRunning: number | null;
  /** Most starts per second; null: as many as there are. */
  startRatePerSecond: number | null;
  /** Share of the slots beside other tenants, 1 to 1000. */
  weight: number;
  /** What becomes of schedules whose runs could not start in time. */
  onInfeasible: AdmissionPolicy;
};
const NAMES = ["maxRunning", "startRatePerSecond", "weight", "onInfeasible"] as const;
export type KeptQuota = Quota & { version: number };

export type QuotaOutcome =
  | { kind: "set"; before: KeptQuota | undefined; version: number }
  | { kind: "conflict"; current: KeptQuota | undefined }
  | { kind: "no-tenant" };

/**
 * Sets what a tenant may use of a class of work. It holds from the next start on: attempts above a lowered limit run
 * to their end, and none starts until enough of them have.
 * Locks   the tenant (no suspension and no other quota meanwhile), the quota, the lane's usage last.
 * Time    the event's own: nothing is decided by it.
 * Writes  quota, usage (made where it is missing), an audit event. Numbers outside the table's checks are refused.
 * Replay  the same quota; one more audit event. With an expected version (0: there is none yet): `conflict`, unless it
 *         says the same.
 */
export async function setQuota(
  authority: Authority,
  request: { tenantId: Uuid; actor: string; class: (typeof CLASSES)[number]; quota: Quota; expectedVersion?: number },
): Promise<QuotaOutcome> {
  const { tenantId, actor, class: class_, quota, expectedVersion } = request;
  const outcome = await authority.transact("set-quota", async (tx): Promise<QuotaOutcome> => {
    if (!(await lockTenant(tx, tenantId))) return { kind: "no-tenant" };
    const [before] = await tx.query<KeptQuota>(LOCK, [tenantId, class_]);
    const { maxRunning, startRatePerSecond, weight, onInfeasible } = quota;
    if (expectedVersion !== undefined && expectedVersion !== (before?.version ?? 0)) {
      const isSaid = before !== undefined && NAMES.every((name) => before[name] === quota[name]);
      return isSaid ? { kind: "set", before, version: before.version } : { kind: "conflict", current: before };
    }
    const values = [tenantId, class_, maxRunning, startRatePerSecond, weight, onInfeasible];
    const { version } = (await tx.query<{ version: number }>(WRITE, values))[0]!;
    await writeAudit(tx, { tenantId, actor, action: "tenant.set-quota", subject: class_, before, after: quota });
    // Claims decide under this row's lock, by what it says.
    await applyLimits(tx, tenantId, [class_]);
    return { kind: "set", before, version };
  });
  // What was parked at a lower limit may go on.
  if (outcome.kind === "set") authority.signals.outboxGrew(0);
  return outcome;
}
