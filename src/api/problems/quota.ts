import type { QuotaRefusal } from "../../authority/tenants/admit.ts";
import type { ApiContext } from "../context.ts";
import type { ProblemCode } from "./catalogue.ts";
import { Problem } from "./problem.ts";

/** The problems of whoever asks for more than a quota allows; those of a schedule, of a run. */
export const SCHEDULE_QUOTA_PROBLEMS: readonly ProblemCode[] = ["quota-exceeded", "interval-below-quota", "infeasible"];

const WHAT = {
  schedules: "schedules that are not deleted",
  queuedRuns: "runs that wait to be started",
  requestedRunsPerDay: "runs that were asked for since midnight UTC",
} as const;

/** Counts the refusal, and says which quota it was. */
export function quotaProblem({ metrics }: Pick<ApiContext, "metrics">, refusal: QuotaRefusal): Problem {
  const { quota } = refusal.kind === "quota" ? refusal.excess : refusal.unfit;
  metrics.quotaRefusals.inc({ quota });
  if (refusal.kind === "quota") {
    const { limit, used, retryAfterMs } = refusal.excess;
    return new Problem("quota-exceeded", `The tenant has ${used} ${WHAT[refusal.excess.quota]}; allowed: ${limit}`, {
      more: { quota, limit, used },
      headers: retryAfter(retryAfterMs),
    });
  }
  const { limit, found } = refusal.unfit;
  if (quota === "payloadBytes") {
    return new Problem("payload-too-large", `payload: found ${found} bytes; the tenant's quota allows ${limit}`, {
      more: { quota, limit, found },
    });
  }
  return new Problem(
    "interval-below-quota",
    `rule: found instants ${found} ms apart; the tenant's quota allows no less than ${limit}`,
    { more: { quota, limit, found } },
  );
}

/** In whole seconds, never before the time has come. */
export function retryAfter(ms: number): { "retry-after": string } {
  return { "retry-after": String(Math.max(1, Math.ceil(ms / 1000))) };
}
