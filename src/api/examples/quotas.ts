export const QUOTAS_BODY = {
  schedules: 1_000,
  minIntervalMs: 60_000,
  payloadBytes: 16_384,
  queuedRuns: 5_000,
  requestedRunsPerDay: 10_000,
  apiRatePerSecond: 100,
  apiBurst: 1_000,
};
export const CLASS_QUOTA_BODY = { maxRunning: 50, startRatePerSecond: null, weight: 1, onInfeasible: "warn" } as const;
