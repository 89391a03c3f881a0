import { z } from "zod";
import { CLASSES, PAYLOAD_LIMIT_BYTES, type ResourceClass } from "../../domain/definition.ts";
import { ADMISSION_POLICIES } from "../../domain/quotas/admission.ts";
import {
  DEFAULT_QUOTAS,
  MOST_API_BURST,
  MOST_API_RATE,
  MOST_INTERVAL_MS,
  MOST_PER_DAY,
  MOST_QUEUED_RUNS,
  MOST_SCHEDULES,
} from "../../domain/quotas/tenant.ts";
import type { ClassQuota, KeptQuotas } from "../../store/reads/tenants/quotas.ts";

const limit = (min: number, max: number) => z.int().min(min).max(max).nullable();
const LEAST_PAYLOAD_BYTES = 2; // {}

/** What is set, field by field; null is no limit. */
export const tenantQuotaFields = {
  schedules: limit(0, MOST_SCHEDULES).describe(
    "Most schedules that are not deleted, finished and paused ones among them",
  ),
  minIntervalMs: limit(0, MOST_INTERVAL_MS).describe(
    "Least time between two nominal instants of a schedule. Where clocks change, a day has 23 hours once a year",
  ),
  payloadBytes: limit(LEAST_PAYLOAD_BYTES, PAYLOAD_LIMIT_BYTES).describe("Most bytes of a payload, as JSON in UTF-8"),
  queuedRuns: limit(0, MOST_QUEUED_RUNS).describe(
    "Most runs that wait, for a start or for their turn, when another is asked for",
  ),
  requestedRunsPerDay: limit(0, MOST_PER_DAY).describe(
    "Most runs of a UTC day that somebody asked for: run-now, ad hoc, replays, backfills. Scheduled ones do not count",
  ),
  apiRatePerSecond: limit(1, MOST_API_RATE).describe(
    "Most calls of the API a second; keys of workers have ten times that",
  ),
  apiBurst: z.int().min(0).max(MOST_API_BURST).describe("Most calls beyond the rate in a minute"),
};

export const classQuotaFields = {
  maxRunning: limit(0, 1_000_000).describe("Most attempts at once"),
  startRatePerSecond: limit(1, 1_000_000).describe("Most starts a second"),
  weight: z.int().min(1).max(1000).describe("Share of the slots beside other tenants"),
  onInfeasible: z
    .enum(ADMISSION_POLICIES)
    .describe("What becomes of a schedule whose runs could not start in time in its busiest minute"),
};

export const DEFAULT_CLASS_QUOTA = {
  maxRunning: null,
  startRatePerSecond: null,
  weight: 1,
  onInfeasible: "warn",
} as const;

const version = z.int().describe("Counts changes; 0: nobody has set any, and these are the defaults");
export const classQuotaSchema = z.strictObject({ ...classQuotaFields, version }).meta({ id: "ClassQuota" });
export const tenantQuotasSchema = z.strictObject({ ...tenantQuotaFields, version }).meta({ id: "TenantQuotas" });
export const quotasSchema = tenantQuotasSchema
  .extend({
    classes: z.strictObject(
      Object.fromEntries(CLASSES.map((one) => [one, classQuotaSchema])) as Record<
        ResourceClass,
        typeof classQuotaSchema
      >,
    ),
  })
  .meta({ id: "Quotas" });

export function presentTenantQuotas(kept: KeptQuotas | undefined): z.output<typeof tenantQuotasSchema> {
  return { ...(kept ?? DEFAULT_QUOTAS), version: kept?.version ?? 0 };
}

export function presentClassQuota(kept: Omit<ClassQuota, "class"> | undefined): z.output<typeof classQuotaSchema> {
  const { maxRunning, startRatePerSecond, weight, onInfeasible } = kept ?? DEFAULT_CLASS_QUOTA;
  return { maxRunning, startRatePerSecond, weight, onInfeasible, version: kept?.version ?? 0 };
}
