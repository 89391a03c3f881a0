import { readFileSync } from "node:fs";
import type { Command } from "commander";
import type { CalendarUse, Rule, ScheduleDraft } from "../../../client/types.ts";
import { messageOf } from "../../../kernel/errors.ts";
import type { Act } from "../act.ts";
import { printJson, printLine, printTable } from "../print.ts";
import { type ClientOptions, clientFor, withClientOptions } from "../target.ts";
import { UsageError } from "../usage.ts";
import { showNext, showRule } from "../words.ts";

type CreateOptions = ClientOptions & {
  name: string;
  cron: string;
  tz: string;
  job: string;
  payload?: string;
  scheduleKey?: string;
  class?: string;
  label?: string[];
  calendar?: string[];
};

// Not Commander's required options: it would complain of a missing one before naming the misspelt one that was meant.
const REQUIRED = {
  name: "--name <name>",
  cron: "--cron <expression>",
  tz: "--tz <zone>",
  job: "--job <name@version>",
} as const;

export function createScheduleCommand(group: Command, act: Act): void {
  withClientOptions(group.command("create").description("create a schedule"))
    .usage("--name <name> --cron <expression> --tz <zone> --job <name@version> [options]")
    .option(REQUIRED.name, "for people")
    .option(REQUIRED.cron, 'when: five fields, such as "0 9 * * 1-5", or a macro such as @daily')
    .option(REQUIRED.tz, "whose clock: an IANA zone, such as America/New_York or Etc/UTC")
    .option(REQUIRED.job, "what: a registered job, such as report.run-summary@1")
    .option("--payload <json>", "what the job is given: a JSON object, or @file")
    .option("--schedule-key <key>", "a name of yours for it: key:<key> then stands for the id")
    .option("--class <class>", "short, long or memory")
    .option("--label <name=value...>", "to find it by; may be repeated")
    .option("--calendar <name=choice...>", "on days that calendar excludes: exclude or shift; the first one decides")
    .addHelpText(
      "after",
      `
Example:
  punctual schedules create --name "Daily summary" --cron "0 9 * * 1-5" --tz America/New_York \\
    --job report.run-summary@1 --payload '{"period":"last-day"}' --schedule-key daily-summary`,
    )
    .action(
      act(async (config, options: CreateOptions) => {
        refuseMissing(options);
        const draft = draftOf(options);
        const made = await clientFor(options, config).schedules.create(draft);
        if (options.json) return printJson(made);
        printLine(`Created ${made.scheduleId}`);
        printTable(["NAME", "RULE", "NEXT RUN"], [[made.name, showRule(made.rule), showNext(made)]]);
      }),
    );
}

function draftOf(options: CreateOptions): ScheduleDraft {
  refuseMixedUpKeys(options);
  const rule: Rule = { kind: "cron", expression: options.cron, zone: options.tz };
  return {
    name: options.name,
    rule,
    job: readJob(options.job),
    ...(options.scheduleKey === undefined ? {} : { key: options.scheduleKey }),
    ...(options.class === undefined ? {} : { class: options.class }),
    ...(options.label === undefined ? {} : { labels: readLabels(options.label) }),
    ...(options.calendar === undefined ? {} : { calendars: readCalendars(options.calendar) }),
    ...(options.payload === undefined ? {} : { payloadJson: readPayload(options.payload) }),
  };
}

function refuseMissing(options: Partial<CreateOptions>): void {
  const missing = Object.entries(REQUIRED).filter(([name]) => options[name as keyof typeof REQUIRED] === undefined);
  if (missing.length === 0) return;
  throw new UsageError(`${missing.map(([, flags]) => flags).join(", ")}: not given, and required (--help says more)`);
}

/** An API key in the wrong place would be stored and shown as a name. */
function refuseMixedUpKeys({ key, scheduleKey }: CreateOptions): void {
  if (key !== undefined && !key.startsWith("pk_")) {
    throw new UsageError(`--key: is the API key (pk_…); a schedule's own key is given with --schedule-key`);
  }
  if (scheduleKey?.startsWith("pk_")) {
    throw new UsageError("--schedule-key: found an API key; that one is given with --key");
  }
}

function readJob(text: string): ScheduleDraft["job"] {
  const parts = /^([^@]+)(?:@([1-9]\d{0,6}))?$/.exec(text);
  if (parts === null)
    throw new UsageError(`--job: found "${text}"; allowed: name@version, such as report.run-summary@1`);
  return { kind: "function", name: parts[1]!, version: Number(parts[2] ?? 1) };
}

function readLabels(texts: readonly string[]): Record<string, string> {
  return Object.fromEntries(
    texts.map((text) => {
      const equals = text.indexOf("=");
      if (equals < 1) throw new UsageError(`--label: found "${text}"; allowed: name=value`);
      return [text.slice(0, equals), text.slice(equals + 1)];
    }),
  );
}

function readCalendars(texts: readonly string[]): CalendarUse[] {
  return texts.map((text) => {
    const [, name, onExcluded] = /^([^=]+)=(exclude|shift)$/.exec(text) ?? [];
    if (name === undefined) {
      throw new UsageError(`--calendar: found "${text}"; allowed: name=exclude or name=shift`);
    }
    return { name, onExcluded: onExcluded as CalendarUse["onExcluded"] };
  });
}

/** The text is checked and sent as it is: writing it anew would round large numbers before the API could refuse them. */
function readPayload(text: string): string {
  const json = text.startsWith("@") ? readFile(text.slice(1)) : text;
  try {
    const value: unknown = JSON.parse(json);
    if (typeof value === "object" && value !== null && !Array.isArray(value)) return json;
  } catch (error) {
    throw new UsageError(
      `--payload: is not JSON (${messageOf(error)}); allowed: an object such as '{"period":"last-day"}'`,
    );
  }
  throw new UsageError(`--payload: is no JSON object; allowed: an object such as '{"period":"last-day"}'`);
}

function readFile(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    throw new UsageError(`--payload: ${path} cannot be read (${messageOf(error)})`);
  }
}
