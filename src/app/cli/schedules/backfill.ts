import type { Command } from "commander";
import type { BackfillPlan, BackfillRequest } from "../../../client/operations.ts";
import type { Act } from "../act.ts";
import { readWhole } from "../deadline.ts";
import { showCounts } from "../operations/operations.ts";
import { printFields, printJson, printLine, printTable } from "../print.ts";
import { type ClientOptions, clientFor, withClientOptions } from "../target.ts";
import { showCount, showUtc } from "../words.ts";
import { readScheduleRef } from "./schedule-ref.ts";

type Options = ClientOptions & {
  from: string;
  to: string;
  policy?: string;
  pace?: string;
  reason?: string;
  run?: boolean;
  idempotencyKey?: string;
};

const MOST_PACE = 1_000;

/** Past instants of a schedule: what would run, and with --run the operation that runs them. */
export function backfillCommand(group: Command, act: Act): void {
  withClientOptions(
    group
      .command("backfill <schedule>")
      .description("say which past instants would run; with --run, run them")
      .requiredOption("--from <instant>", "first nominal instant, such as 2026-10-01T09:00:00Z")
      .requiredOption("--to <instant>", "nominal instants before this"),
  )
    .option("--policy <policy>", "missing (default): what nobody skipped on purpose; or all-skipped")
    .option("--pace <n>", "most runs a second, 1 to 1000 (default: 10)")
    .option("--reason <text>", "why, for the history")
    .option("--run", "not only say it: do it")
    .option("--idempotency-key <key>", "a second call with this key answers the operation that the first one began")
    .addHelpText(
      "after",
      `
Examples:
  punctual schedules backfill key:sales-report --from 2026-10-01T00:00:00Z --to 2026-10-08T00:00:00Z
  punctual schedules backfill key:sales-report --from 2026-10-01T00:00:00Z --to 2026-10-08T00:00:00Z --pace 2 --run`,
    )
    .action(
      act(async (config, { from, to, policy, pace, reason, run, idempotencyKey, ...options }: Options, ref: string) => {
        const request: BackfillRequest = {
          from,
          to,
          dryRun: run !== true,
          ...(policy === undefined ? {} : { policy }),
          ...(pace === undefined ? {} : { pacePerSecond: readWhole("--pace", pace, MOST_PACE) }),
          ...(reason === undefined ? {} : { reason }),
        };
        const schedule = readScheduleRef(ref);
        const { plan, operation } = await clientFor(options, config).schedules.backfill(
          schedule,
          request,
          idempotencyKey,
        );
        if (options.json) return printJson({ dryRun: request.dryRun, plan, operation });
        if (plan !== null) printPlan(plan);
        if (operation === null) return printLine("Nothing was changed; --run does it.");
        const { operationId } = operation;
        printLine(`Began ${operationId}; follow it: punctual operations watch ${operationId}`);
      }),
    );
}

function printPlan(plan: BackfillPlan): void {
  printFields({
    instants: showCount(plan.instants),
    "become runs": showCount(plan.runs),
    found: showCounts(plan.counts),
    first: showUtc(plan.firstAt),
    last: showUtc(plan.lastAt),
    takes: `${plan.estimatedSeconds} s at this pace${plan.runs.capped ? ", at least" : ""}`,
  });
  if (plan.sample.length === 0) return;
  printLine("");
  printTable(
    ["INSTANT (UTC)", "WAS", "REASON"],
    plan.sample.map((one) => [showUtc(one.at), one.was, one.reason ?? ""]),
  );
}
