import { pipeline } from "node:stream/promises";
import type { Command } from "commander";
import type { AuditEvent, AuditFilters } from "../../../client/audit.ts";
import type { Act } from "../act.ts";
import { pageOptions, readLimit } from "../page.ts";
import { printJson, printLine, printNote, printTable } from "../print.ts";
import { type ClientOptions, clientFor, withClientOptions } from "../target.ts";
import { showUtc } from "../words.ts";

type FilterOptions = ClientOptions & {
  actor?: string;
  action?: string;
  subject?: string;
  request?: string;
  from?: string;
  to?: string;
};

/** The audit trail of the key's tenant. */
export function auditCommand(group: Command, act: Act): void {
  group.addHelpText(
    "after",
    `
Examples:
  punctual audit list --subject sch_01jd…
  punctual audit export --from 2026-10-01T00:00:00Z > events.ndjson`,
  );

  filterOptions(withClientOptions(pageOptions(group.command("list").description("list events, newest first")))).action(
    act(async (config, { limit, after, ...options }: FilterOptions & { limit: string; after?: string }) => {
      const page = await clientFor(options, config).audit.list({
        ...filtersOf(options),
        limit: readLimit(limit),
        ...(after === undefined ? {} : { after }),
      });
      if (options.json) return printJson(page);
      if (page.items.length === 0) printNote("No events here.");
      else {
        printTable(
          ["AT (UTC)", "ACTION", "SUBJECT", "BY", "FROM", "REQUEST"],
          page.items.map((one) => [
            showUtc(one.at),
            one.action,
            one.subject,
            one.actorLabel || one.actor,
            one.address ?? "-",
            one.requestId ?? "-",
          ]),
        );
      }
      if (page.next !== null) printLine(`More: --after ${page.next}`);
    }),
  );

  filterOptions(
    withClientOptions(group.command("export").description("write every event as a line of JSON, oldest first")),
  ).action(
    act(async (config, options: FilterOptions) => {
      const { until, events } = await clientFor(options, config).audit.export(filtersOf(options));
      await pipeline(linesOf(events), process.stdout, { end: false });
      printNote(`Exported up to ${until}; the next export goes on with --from ${until}`);
    }),
  );
}

function filterOptions(command: Command): Command {
  return command
    .option("--actor <actor>", "only what this one did, such as key_01jd…")
    .option("--action <action>", "only this, such as schedule.revise")
    .option("--subject <id>", "only what was done to this: an id, or a name")
    .option("--request <id>", "only what this call did")
    .option("--from <instant>", "from here on, such as 2026-10-01T00:00:00Z")
    .option("--to <instant>", "before this");
}

function filtersOf({ actor, action, subject, request, from, to }: FilterOptions): AuditFilters {
  const given = { actor, action, subject, requestId: request, from, to };
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined));
}

async function* linesOf(events: AsyncIterable<AuditEvent>): AsyncGenerator<string> {
  for await (const event of events) yield `${JSON.stringify(event)}\n`;
}
