import type { Job } from "../../domain/definition.ts";
import type { Caller } from "../context.ts";
import { Problem } from "../problems/problem.ts";
import type { Route } from "../route.ts";

/** What a tenant may do at all, whoever asks in it: nothing but read while it is suspended, and only the jobs it is held to. */

/** Throws `tenant-suspended` where the call would change something of a suspended tenant; an admin still may. */
export function refuseWhileSuspended(route: Pick<Route, "method" | "onlyReads">, caller: Caller): void {
  if (caller.tenantStatus !== "suspended" || caller.role === "admin") return;
  if (route.method === "get" || route.onlyReads === true) return;
  throw new Problem(
    "tenant-suspended",
    `The tenant ${JSON.stringify(caller.tenantName)} is suspended: it may only read`,
  );
}

export function isJobAllowed({ allowedJobs }: Pick<Caller, "allowedJobs">, job: Pick<Job, "name">): boolean {
  return allowedJobs === null || allowedJobs.includes(job.name);
}

/** Throws `job-not-allowed` where the tenant is held to other job types. */
export function checkJobAllowed(caller: Pick<Caller, "allowedJobs">, job: Pick<Job, "name">): void {
  if (isJobAllowed(caller, job)) return;
  const allowedJobs = caller.allowedJobs ?? [];
  const allowed = allowedJobs.length === 0 ? "none" : allowedJobs.join(", ");
  throw new Problem("job-not-allowed", `job: found ${JSON.stringify(job.name)}; allowed for this tenant: ${allowed}`, {
    more: { job: job.name, allowedJobs },
  });
}
