import type { Command } from "commander";
import type { Quotas } from "../../../client/quotas.ts";
import type { Act } from "../act.ts";
import { printJson, printLine } from "../print.ts";
import { type ClientOptions, clientFor, withClientOptions } from "../target.ts";
import { printClassQuotas, printTenantQuotas } from "./print-quotas.ts";
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

function printQuotas(quotas: Quotas): void {
  printTenantQuotas(quotas);
  printLine("");
  printClassQuotas(quotas.classes);
}
