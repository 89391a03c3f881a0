import type { Command } from "commander";
import type { Act } from "../act.ts";
import { printJson, printNote, printTable } from "../print.ts";
import { type ClientOptions, clientFor, withClientOptions } from "../target.ts";
import { showUtc } from "../words.ts";

/** Who does the work. The role is another command: `punctual worker`. */
export function workersCommand(group: Command, act: Act): void {
  group.addHelpText(
    "after",
    `
Who was not heard of for 45 seconds is not there. To start a worker of this installation: punctual worker

Example:
  punctual workers list`,
  );

  withClientOptions(group.command("list").description("list workers that are alive, the tenant's own first")).action(
    act(async (config, options: ClientOptions) => {
      const { items } = await clientFor(options, config).workers.list();
      if (options.json) return printJson({ items });
      if (items.length === 0) return printNote("No worker was heard of lately.");
      printTable(
        ["WORKER", "KIND", "SLOTS", "VERSION", "STARTED (UTC)", "LAST HEARD OF", "JOBS"],
        items.map((one) => [
          one.name,
          one.kind,
          Object.entries(one.slots)
            .map(([name, slots]) => `${name}=${slots}`)
            .join(" "),
          one.version,
          showUtc(one.startedAt),
          showUtc(one.seenAt),
          one.jobs.map((job) => `remote:${job}`).join(" "),
        ]),
      );
    }),
  );
}
