import type { Command } from "commander";
import type { Calendar } from "../../../client/types.ts";
import type { Act } from "../act.ts";
import { pageOptions, readLimit } from "../page.ts";
import { printFields, printJson, printLine, printNote, printTable } from "../print.ts";
import { type ClientOptions, clientFor, withClientOptions } from "../target.ts";
import { showUtc } from "../words.ts";
import { putCalendarCommand } from "./put-calendar.ts";

type ListOptions = ClientOptions & { limit: string; after?: string };

/** The tenant's business calendars: days on which schedules that name them do not run. */
export function calendarsCommand(group: Command, act: Act): void {
  group.addHelpText(
    "after",
    `
Examples:
  punctual calendars put company-holidays.json
  punctual calendars get company-holidays@2
  punctual calendars get company-holidays --json > company-holidays.json
  punctual calendars delete company-holidays`,
  );

  withClientOptions(pageOptions(group.command("list").description("list calendars by name"))).action(
    act(async (config, { limit, after, ...options }: ListOptions) => {
      const page = await clientFor(options, config).calendars.list({
        limit: readLimit(limit),
        ...(after === undefined ? {} : { after }),
      });
      if (options.json) return printJson(page);
      if (page.items.length === 0) return printNote("No calendars here.");
      printTable(
        ["CALENDAR", "VERSION", "ENTRIES", "CHANGED", "BY"],
        page.items.map((one) => [
          one.name,
          String(one.version),
          String(one.entries),
          showUtc(one.createdAt),
          one.actor,
        ]),
      );
      if (page.next !== null) printLine(`More: --after ${page.next}`);
    }),
  );

  withClientOptions(
    group
      .command("get <calendar>")
      .description("show one calendar, by its name; name@2 is an earlier version, of a deleted one too"),
  ).action(
    act(async (config, options: ClientOptions, ref: string) => {
      const [name = "", version] = ref.split("@");
      const found = await clientFor(options, config).calendars.get(name, version);
      if (options.json) return printJson(found);
      printCalendar(found);
    }),
  );

  putCalendarCommand(group, act);

  withClientOptions(
    group.command("delete <calendar>").description("delete it, if no schedule uses it; its versions stay"),
  ).action(
    act(async (config, options: ClientOptions, name: string) => {
      const deleted = await clientFor(options, config).calendars.delete(name);
      if (options.json) return printJson(deleted);
      printLine(`Deleted ${name}, which was at version ${deleted.version}`);
    }),
  );
}

function printCalendar(calendar: Calendar): void {
  const { dates, ranges, yearly } = calendar;
  printFields({
    calendar: calendar.name,
    version: String(calendar.version),
    weekend: calendar.weekend.join(", ") || "none",
    zone: calendar.zone,
    changed: showUtc(calendar.createdAt),
    by: calendar.actor,
  });
  const entries = [
    ...dates.map((one) => [one.date, one.name ?? ""]),
    ...ranges.map((one) => [`${one.from} to ${one.to}`, one.name ?? ""]),
    ...yearly.map((one) => [`every ${one.date}`, one.name ?? ""]),
  ];
  if (entries.length === 0) return;
  printLine("");
  printTable(
    ["EXCLUDED", "NAME"],
    entries.sort(([a], [b]) => (a! < b! ? -1 : 1)),
  );
}
