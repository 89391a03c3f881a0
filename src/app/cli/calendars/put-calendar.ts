import { basename } from "node:path";
import type { Command } from "commander";
import type { Client } from "../../../client/client.ts";
import { ApiProblem } from "../../../client/errors.ts";
import { messageOf } from "../../../kernel/errors.ts";
import type { Act } from "../act.ts";
import { printJson, printLine } from "../print.ts";
import { readTextFile } from "../read-file.ts";
import { type ClientOptions, clientFor, withClientOptions } from "../target.ts";
import { UsageError } from "../usage.ts";

type PutOptions = ClientOptions & { name?: string; expectedVersion?: string };

export function putCalendarCommand(group: Command, act: Act): void {
  withClientOptions(group.command("put <file>").description("make a calendar from a JSON file, or its next version"))
    .option("--name <name>", "its name (default: the one in the file, else the file's own)")
    .option(
      "--expected-version <n>",
      "refuse if another version is in force (default: the one in the file, else whatever is in force)",
    )
    .addHelpText(
      "after",
      `
The file says which days are excluded; what \`calendars get --json\` prints is accepted as it is:
  { "weekend": ["saturday", "sunday"],
    "dates":  [{ "date": "2026-11-27", "name": "Day after Thanksgiving" }],
    "ranges": [{ "from": "2026-12-28", "to": "2026-12-31" }],
    "yearly": [{ "date": "12-25", "name": "Christmas" }] }`,
    )
    .action(
      act(async (config, options: PutOptions, file: string) => {
        const read = readCalendar(file);
        const name = options.name ?? read.name ?? basename(file).replace(/\.json$/, "");
        const client = clientFor(options, config);
        const expectedVersion = readVersion(options) ?? read.version ?? (await versionInForce(client, name));
        const calendar = await client.calendars.put(name, { ...read.definition, expectedVersion });
        if (options.json) return printJson(calendar);
        printLine(`${calendar.name} is at version ${calendar.version}`);
      }),
    );
}

type ReadCalendar = { name?: string; version?: number; definition: Record<string, unknown> };

/** What the API adds to a calendar goes to its place, or is left out; everything else is for the API to judge. */
function readCalendar(file: string): ReadCalendar {
  const text = readTextFile(file);
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new UsageError(`${file} is not JSON (${messageOf(error)})`);
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw new UsageError(`${file} is no JSON object; allowed: an object such as {"dates":[{"date":"2026-12-25"}]}`);
  }
  const {
    name,
    version,
    actor: _actor,
    createdAt: _createdAt,
    source: _source,
    ...definition
  } = value as Record<string, unknown>;
  return {
    ...(typeof name === "string" ? { name } : {}),
    ...(typeof version === "number" ? { version } : {}),
    definition,
  };
}

function readVersion({ expectedVersion }: PutOptions): number | undefined {
  if (expectedVersion === undefined || /^\d{1,9}$/.test(expectedVersion)) {
    return expectedVersion === undefined ? undefined : Number(expectedVersion);
  }
  throw new UsageError(`--expected-version: found "${expectedVersion}"; allowed: a version, or 0 for none yet`);
}

async function versionInForce(client: Client, name: string): Promise<number> {
  try {
    return (await client.calendars.get(name)).version;
  } catch (error) {
    if (error instanceof ApiProblem && error.code === "not-found") return 0;
    throw error;
  }
}
