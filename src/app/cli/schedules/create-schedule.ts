import type { Command } from "commander";
import type { ScheduleDraft } from "../../../client/types.ts";
import type { Act } from "../act.ts";
import { printJson, printLine, printTable } from "../print.ts";
import { clientFor, withClientOptions } from "../target.ts";
import { UsageError } from "../usage.ts";
import { showNext, showRule } from "../words.ts";
import { type FieldOptions, readFields, withFieldOptions } from "./field-options.ts";
import { JOB_OPTION } from "./job-option.ts";

const OTHER_RULES = "--every, --at, --after-completion or --rule";

type CreateOptions = FieldOptions & { scheduleKey?: string; idempotencyKey?: string };

export function createScheduleCommand(group: Command, act: Act): void {
  withFieldOptions(withClientOptions(group.command("create").description("create a schedule")))
    .usage("--name <name> --job <job> --cron <expression> --tz <zone> [options]")
    .option("--schedule-key <key>", "a name of yours for it: key:<key> then stands for the id")
    .option("--idempotency-key <key>", "a second call with this key answers what the first one made")
    .addHelpText(
      "after",
      `
Examples:
  punctual schedules create --name "Daily summary" --cron "0 9 * * 1-5" --tz America/New_York \\
    --job report.run-summary@1 --payload '{"period":"last-day"}' --schedule-key daily-summary
  punctual schedules create --name "Sync" --every 15m --job report.run-summary@1 --set '{"overlap":{"policy":"skip"}}'
  punctual schedules create --name "Ping" --every 5m --job https://api.example.com/ping
  punctual schedules create --name "Told" --every 6h --job report.run-summary@1 \\
    --set '{"effects":[{"name":"crm","kind":"webhook","url":"https://crm.example.com/hooks"}]}'`,
    )
    .action(
      act(async (config, options: CreateOptions) => {
        refuseMissing(options);
        const made = await clientFor(options, config).schedules.create(draftOf(options), options.idempotencyKey);
        if (options.json) return printJson(made);
        printLine(`Created ${made.scheduleId}`);
        printTable(["NAME", "RULE", "NEXT RUN"], [[made.name, showRule(made.rule), showNext(made)]]);
      }),
    );
}

function draftOf(options: CreateOptions): ScheduleDraft {
  refuseMixedUpKeys(options);
  const key = options.scheduleKey === undefined ? {} : { key: options.scheduleKey };
  return { ...readFields(options), ...key } as ScheduleDraft;
}

/** Not by Commander's required options: it would complain of a missing one before naming the misspelt one that was meant. */
function refuseMissing(options: CreateOptions): void {
  const { name, job, tz, cron, every, at, afterCompletion, rule } = options;
  const isWithoutRule = [cron, every, at, afterCompletion, rule].every((one) => one === undefined);
  const missing = [
    ...(name === undefined ? ["--name <name>"] : []),
    ...(isWithoutRule ? [`a rule (${tz === undefined ? "--cron with --tz" : "--cron"}, ${OTHER_RULES})`] : []),
    ...(tz === undefined && cron !== undefined ? ["--tz <zone>"] : []),
    ...(job === undefined ? [JOB_OPTION] : []),
  ];
  if (missing.length === 0) return;
  throw new UsageError(`${missing.join(", ")}: not given, and required (--help says more)`);
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
