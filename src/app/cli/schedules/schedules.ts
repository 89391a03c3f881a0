import type { Command } from "commander";
import type { Schedule } from "../../../client/types.ts";
import type { Act } from "../act.ts";
import { pageOptions, readLimit } from "../page.ts";
import { printJson, printLine, printNote, printTable } from "../print.ts";
import { type ClientOptions, clientFor, withClientOptions } from "../target.ts";
import { showJobShort, showNext, showRule } from "../words.ts";
import { backfillCommand } from "./backfill.ts";
import { changeScheduleCommands } from "./change-schedule.ts";
import { createScheduleCommand } from "./create-schedule.ts";
import { editScheduleCommand } from "./edit-schedule.ts";
import { ledgerCommand } from "./ledger.ts";
import { readScheduleRef } from "./schedule-ref.ts";

type ListOptions = ClientOptions & {
  status?: string;
  fault?: boolean;
  label?: string;
  requestKey?: string;
  limit: string;
  after?: string;
};

export function schedulesCommand(group: Command, act: Act): void {
  group.addHelpText(
    "after",
    `
Examples:
  punctual schedules list --status paused
  punctual schedules get key:sales-report
  punctual schedules run key:sales-report
  punctual schedules ledger key:sales-report --from 2026-10-01T00:00:00Z
  punctual schedules create --name "Sales" --cron "0 9 * * 1-5" --tz America/New_York --job report.run-summary@1`,
  );

  withClientOptions(pageOptions(group.command("list").description("list schedules, newest first")))
    .option("--status <status>", "only these: active, paused, finished or deleted (default: all but deleted)")
    .option("--fault", "only those whose rule cannot be computed at the moment")
    .option("--label <name=value>", "only those with this label")
    .option("--request-key <key>", "what a call with this idempotency key made; an error says that it made nothing")
    .action(
      act(async (config, { status, fault, label, requestKey, limit, after, ...options }: ListOptions) => {
        const page = await clientFor(options, config).schedules.list({
          limit: readLimit(limit),
          ...(status === undefined ? {} : { status }),
          ...(fault === undefined ? {} : { fault }),
          ...(label === undefined ? {} : { label }),
          ...(requestKey === undefined ? {} : { requestKey }),
          ...(after === undefined ? {} : { after }),
        });
        if (options.json) return printJson(page);
        if (page.items.length === 0) return printNote("No schedules here.");
        printTable(
          ["SCHEDULE", "NAME", "STATUS", "RULE", "NEXT RUN", "JOB"],
          page.items.map((one) => [
            nameOf(one),
            one.name,
            one.status,
            showRule(one.rule),
            showNext(one),
            showJobShort(one.job),
          ]),
        );
        if (page.next !== null) printLine(`More: --after ${page.next}`);
      }),
    );

  withClientOptions(group.command("get <schedule>").description("show one schedule, by id or key:<key>")).action(
    act(async (config, options: ClientOptions, schedule: string) => {
      const found = await clientFor(options, config).schedules.get(readScheduleRef(schedule));
      if (options.json) return printJson(found);
      // Loaded when asked for: what a definition may say takes a while to load.
      const { printSchedule } = await import("./show-schedule.ts");
      printSchedule(found);
    }),
  );

  ledgerCommand(group, act);
  createScheduleCommand(group, act);
  editScheduleCommand(group, act);
  changeScheduleCommands(group, act);
  backfillCommand(group, act);
}

/** What can be typed back: the key where there is one, for it is shorter. A deleted schedule has given its key away. */
function nameOf(schedule: Schedule): string {
  return schedule.key === null || schedule.status === "deleted" ? schedule.scheduleId : `key:${schedule.key}`;
}
