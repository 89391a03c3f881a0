/** What a tenant may have, beside what each class of its work may use. Null: as much as there is. */

export const QUOTA_NAMES = [
  "schedules",
  "minIntervalMs",
  "payloadBytes",
  "queuedRuns",
  "requestedRunsPerDay",
  "apiRatePerSecond",
  "apiBurst",
] as const;
export type QuotaName = (typeof QUOTA_NAMES)[number];

/** `apiBurst` is never null: calls beyond the rate, in a minute. */
export type TenantQuotas = Readonly<Record<Exclude<QuotaName, "apiBurst">, number | null> & { apiBurst: number }>;

/** Of a tenant for which nobody has set any, and of every field that a PUT leaves out. */
export const DEFAULT_QUOTAS: TenantQuotas = {
  schedules: null,
  minIntervalMs: null,
  payloadBytes: null,
  queuedRuns: null,
  requestedRunsPerDay: null,
  apiRatePerSecond: 200,
  apiBurst: 2_000,
};

/** The most anybody can set: what is counted is counted up to the limit, so a limit has an end. */
export const MOST_SCHEDULES = 1_000_000;
export const MOST_QUEUED_RUNS = 100_000;
export const MOST_PER_DAY = 1_000_000_000;
export const MOST_INTERVAL_MS = 366 * 86_400_000;
export const MOST_API_RATE = 100_000;
export const MOST_API_BURST = 10_000_000;

/** Quotas of what there is of something; `apiRatePerSecond` is one of time alone. */
type CountedQuota = "schedules" | "queuedRuns" | "requestedRunsPerDay";

/** A quota that one more would exceed. */
export type Excess = {
  readonly quota: CountedQuota;
  readonly limit: number;
  readonly used: number;
  /** When to ask again, from now (ms): exact where the quota is one of time, else when it is worth asking. */
  readonly retryAfterMs: number;
};

/** What is asked for is more than a quota allows, whatever is used of it: no waiting helps. */
export type Unfit = {
  readonly quota: "minIntervalMs" | "payloadBytes";
  readonly limit: number;
  /** Of what was asked for. */
  readonly found: number;
};

/** Nobody knows when a schedule is deleted or a run starts: after so long it is worth asking. */
export const RETRY_SCHEDULES_MS = 60_000;
export const RETRY_QUEUED_MS = 5_000;

const DAY_MS = 86_400_000;

/** The UTC day of an instant, as PostgreSQL writes a date. */
export function dayOf(at: number): string {
  return new Date(at).toISOString().slice(0, 10);
}

/** How long until the next UTC day begins. */
export function untilNextDay(at: number): number {
  return DAY_MS - (at % DAY_MS);
}
