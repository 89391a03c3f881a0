import type { Command } from "commander";
import type { ClassQuota, Quotas, TenantQuotas } from "../../../client/quotas.ts";
import type { Act } from "../act.ts";
import { printFields, printJson, printLine, printTable } from "../print.ts";
import { type ClientOptions, clientFor, withClientOptions } from "../target.ts";
import { showBytes, showDuration } from "../words.ts";
import { setQuotasCommand } from "./set-quotas.ts";

/** What the tenant may have and use. */
export function quotasCommand(group: Command, act: Act): void {
  group.addHelpText(
    "after",
    `
Examples:
  punctual quotas show
  punctual quotas set --schedules 1000 --min-interval 60000 --payload-bytes 16384
  punctual quotas set --class long --max-running 20 --on-infeasible refuse
  punctual quotas set --schedules none`,
  );

  withClientOptions(group.command("show").description("show what the tenant may have and use")).action(
    act(async (config, options: ClientOptions) => {
      const quotas = await clientFor(options, config).quotas.get();
      if (options.json) return printJson(quotas);
      printQuotas(quotas);
    }),
  );

  setQuotasCommand(group, act);
}

const orNone = (value: number | null, show: (value: number) => string = String) =>
  value === null ? "no limit" : show(value);

export function printTenantQuotas(quotas: TenantQuotas): void {
  printFields({
    schedules: orNone(quotas.schedules),
    "least interval": orNone(quotas.minIntervalMs, showDuration),
    "payload at most": orNone(quotas.payloadBytes, showBytes),
    "queued runs": orNone(quotas.queuedRuns),
    "requested runs a day": orNone(quotas.requestedRunsPerDay),
    "calls a second": orNone(quotas.apiRatePerSecond),
    "more calls a minute": quotas.apiRatePerSecond === null ? null : String(quotas.apiBurst),
    version: String(quotas.version),
  });
}

export function printClassQuotas(classes: Readonly<Record<string, ClassQuota>>): void {
  printTable(
    ["CLASS", "RUNNING", "STARTS A SECOND", "WEIGHT", "INFEASIBLE", "VERSION"],
    Object.entries(classes).map(([name, one]) => [
      name,
      orNone(one.maxRunning),
      orNone(one.startRatePerSecond),
      String(one.weight),
      one.onInfeasible,
      String(one.version),
    ]),
  );
}

function printQuotas(quotas: Quotas): void {
  printTenantQuotas(quotas);
  printLine("");
  printClassQuotas(quotas.classes);
}
