import type { ClassQuota, TenantQuotas } from "../../../client/quotas.ts";
import { printFields, printTable } from "../print.ts";
import { showBytes, showDuration } from "../words.ts";

export function showLimit(value: number | null, show: (value: number) => string = String): string {
  return value === null ? "no limit" : show(value);
}

export function printTenantQuotas(quotas: TenantQuotas): void {
  printFields({
    schedules: showLimit(quotas.schedules),
    "least interval": showLimit(quotas.minIntervalMs, showDuration),
    "payload at most": showLimit(quotas.payloadBytes, showBytes),
    "queued runs": showLimit(quotas.queuedRuns),
    "requested runs a day": showLimit(quotas.requestedRunsPerDay),
    "calls a second": showLimit(quotas.apiRatePerSecond),
    "more calls a minute": quotas.apiRatePerSecond === null ? null : String(quotas.apiBurst),
    version: String(quotas.version),
  });
}

export function printClassQuotas(classes: Readonly<Record<string, ClassQuota>>): void {
  printTable(
    ["CLASS", "RUNNING", "STARTS A SECOND", "WEIGHT", "INFEASIBLE", "VERSION"],
    Object.entries(classes).map(([name, one]) => [
      name,
      showLimit(one.maxRunning),
      showLimit(one.startRatePerSecond),
      String(one.weight),
      one.onInfeasible,
      String(one.version),
    ]),
  );
}
