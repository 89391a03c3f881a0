import { type Job, jobTypeOf } from "../../domain/jobs/job.ts";
import type { TenantView } from "../../store/reads/tenants/tenants.ts";
import type { Caller } from "../context.ts";
import { Problem } from "../problems/problem.ts";
import type { Route } from "../route.ts";

/** What a tenant may do at all, whoever asks in it: nothing but read while it is suspended, and only the jobs it is held to. */

/** What of a caller is its tenant's. */
export function boundsOf({ id, name, status, allowedJobs, outbound }: TenantView) {
  return { tenantId: id, tenantName: name, tenantStatus: status, allowedJobs, outbound };
}

/** Throws `tenant-suspended` where the call would change something of a suspended tenant; an admin still may. */
export function refuseWhileSuspended(
  route: Pick<Route, "method" | "onlyReads" | "whileSuspended">,
  caller: Caller,
): void {
  if (caller.tenantStatus !== "suspended" || caller.role === "admin") return;
  if (route.method === "get" || route.onlyReads === true || route.whileSuspended === true) return;
  throw new Problem(
    "tenant-suspended",
    `The tenant ${JSON.stringify(caller.tenantName)} is suspended: it may only read`,
  );
}

/** By its name; what a tenant brings itself by its kind as well. */
export function isJobAllowed({ allowedJobs }: Pick<Caller, "allowedJobs">, job: Job): boolean {
  if (allowedJobs === null || allowedJobs.includes(jobTypeOf(job))) return true;
  return job.kind !== "function" && allowedJobs.includes(job.kind);
}

/** Throws `job-not-allowed` where the tenant is held to other job types. */
export function checkJobAllowed(caller: Pick<Caller, "allowedJobs">, job: Job): void {
  if (isJobAllowed(caller, job)) return;
  const allowedJobs = caller.allowedJobs ?? [];
  const allowed = allowedJobs.length === 0 ? "none" : allowedJobs.join(", ");
  throw new Problem(
    "job-not-allowed",
    `job: found ${JSON.stringify(jobTypeOf(job))}; allowed for this tenant: ${allowed}`,
    {
      more: { job: jobTypeOf(job), allowedJobs },
    },
  );
}
