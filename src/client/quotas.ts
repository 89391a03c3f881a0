import { type Http, pathOf } from "./http.ts";
import type { Count } from "./types.ts";

/** What a tenant may have and use. null is no limit. Instants are RFC 3339 in UTC. */

export type ClassQuota = {
  maxRunning: number | null;
  startRatePerSecond: number | null;
  weight: number;
  /** Of schedules whose runs could not start in time. */
  onInfeasible: "accept" | "warn" | "refuse";
  version: number;
};

export type TenantQuotas = {
  schedules: number | null;
  minIntervalMs: number | null;
  payloadBytes: number | null;
  queuedRuns: number | null;
  requestedRunsPerDay: number | null;
  apiRatePerSecond: number | null;
  apiBurst: number;
  /** 0: nobody has set any. */
  version: number;
};

export type Quotas = TenantQuotas & { classes: Record<string, ClassQuota> };

type Lane = {
  running: number;
  maxRunning: number | null;
  waiting: Count;
  startedLastMinute: number;
  startRatePerSecond: number | null;
};

export type Usage = {
  schedules: { used: Count; limit: number | null };
  queuedRuns: { used: Count; limit: number | null };
  /** `used` is null where there is no limit. */
  requestedRunsPerDay: { used: number | null; limit: number | null; resetsAt: string };
  payloadBytes: { limit: number | null };
  minIntervalMs: { limit: number | null };
  apiRatePerSecond: { limit: number | null; burst: number };
  runsToday: { started: number; asOf: string };
  classes: Record<string, Lane>;
  asOf: string;
};

/** Without `expectedVersion` there must be none yet. Safe to call again: the same quotas change nothing. */
type Change<T extends { version: number }> = Partial<Omit<T, "version">> & { expectedVersion?: number };

export type QuotasClient = {
  get(): Promise<Quotas>;
  /** Fields that are left out go back to their defaults. */
  set(quotas: Change<TenantQuotas>): Promise<TenantQuotas>;
  setClass(class_: string, quota: Change<ClassQuota>): Promise<ClassQuota>;
};

export function quotasOf(http: Http): QuotasClient {
  return {
    get: () => http.call({ path: "/v1/quotas" }),
    set: (quotas) => http.call({ method: "PUT", path: "/v1/quotas", body: JSON.stringify(quotas) }),
    setClass: (class_, quota) =>
      http.call({ method: "PUT", path: pathOf`/v1/quotas/${class_}`, body: JSON.stringify(quota) }),
  };
}
