import type { Command } from "commander";
import type { Usage } from "../../../client/quotas.ts";
import type { Act } from "../act.ts";
import { printJson, printLine, printTable } from "../print.ts";
import { type ClientOptions, clientFor, withClientOptions } from "../target.ts";
import { showCount, showUtc } from "../words.ts";
import { showLimit } from "./print-quotas.ts";

export function usageCommand(program: Command, act: Act): void {
  withClientOptions(program.command("usage").description("say how much of its quotas the tenant uses")).action(
    act(async (config, options: ClientOptions) => {
      const usage = await clientFor(options, config).usage();
      if (options.json) return printJson(usage);
      printUsage(usage);
    }),
  );
}

function printUsage(usage: Usage): void {
  const { schedules, queuedRuns, requestedRunsPerDay: requested, runsToday } = usage;
  printTable(
    ["QUOTA", "USED", "LIMIT"],
    [
      ["schedules", showCount(schedules.used), showLimit(schedules.limit)],
      ["queued runs", showCount(queuedRuns.used), showLimit(queuedRuns.limit)],
      [
        "requested runs today",
        requested.used === null ? "not counted" : String(requested.used),
        showLimit(requested.limit),
      ],
      ["calls a second", "", showLimit(usage.apiRatePerSecond.limit)],
    ],
  );
  printLine("");
  printTable(
    ["CLASS", "RUNNING", "AT MOST", "WAITING", "STARTED LAST MINUTE", "STARTS A SECOND"],
    Object.entries(usage.classes).map(([name, lane]) => [
      name,
      String(lane.running),
      showLimit(lane.maxRunning),
      showCount(lane.waiting),
      String(lane.startedLastMinute),
      showLimit(lane.startRatePerSecond),
    ]),
  );
  printLine(`Started today (UTC): ${runsToday.started}, as of ${showUtc(runsToday.asOf)}`);
}
