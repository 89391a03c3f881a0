import type { Command } from "commander";
import type { Act } from "../act.ts";
import { pageOptions, readLimit } from "../page.ts";
import { printJson, printLine, printNote, printTable } from "../print.ts";
import { readScheduleRef } from "../schedules/schedule-ref.ts";
import { type ClientOptions, clientFor, withClientOptions } from "../target.ts";
import { showJobShort, showLateness, showScheduleOf, showUtc } from "../words.ts";
import { cancelCommand } from "./cancel-run.ts";
import { createRunCommand } from "./create-run.ts";
import { logsCommand } from "./run-logs.ts";
import { resultCommand } from "./run-result.ts";
import { sayAwaitedWorker } from "./waiting.ts";
import { watchCommand } from "./watch.ts";

type Filters = {
  state?: string;
  class?: string;
  trigger?: string;
  label?: string;
  order?: string;
  from?: string;
  to?: string;
  requestKey?: string;
  after?: string;
};
type ListOptions = ClientOptions & Filters & { schedule?: string; limit: string };

export function runsCommand(group: Command, act: Act): void {
  group.addHelpText(
    "after",
    `
Examples:
  punctual runs list --schedule key:sales-report --state failed
  punctual runs watch run_01jd…
  punctual runs result run_01jd… --output report.html`,
  );

  withClientOptions(pageOptions(group.command("list").description("list runs by nominal instant, latest first")))
    .option("--schedule <schedule>", "only runs of this schedule (id or key:<key>)")
    .option("--state <state>", "only runs in this state")
    .option("--class <class>", "only runs of this class")
    .option("--trigger <trigger>", "only runs with this cause: schedule, manual, backfill, catch-up or api")
    .option("--label <name=value>", "only runs of schedules that have this label now")
    .option("--order <order>", "newest or oldest nominal instants first")
    .option("--from <instant>", "nominal instants from here on, such as 2026-10-01T09:00:00Z")
    .option("--to <instant>", "nominal instants before this")
    .option("--request-key <key>", "what a call with this idempotency key made; an error says that it made nothing")
    .action(
      act(async (config, { json, url, key, schedule, limit, ...filters }: ListOptions) => {
        const client = clientFor({ ...(url && { url }), ...(key && { key }) }, config);
        const page = await client.runs.list({
          limit: readLimit(limit),
          ...(schedule === undefined ? {} : { scheduleId: readScheduleRef(schedule) }),
          ...filters,
        });
        if (json) return printJson(page);
        if (page.items.length === 0 && page.next !== null) {
          return printNote(`No runs match so far; more may: --after ${page.next}`);
        }
        if (page.items.length === 0) {
          const isNarrowed = schedule !== undefined || Object.keys(filters).length > 0;
          return printNote(isNarrowed ? "No runs match." : "No runs yet.");
        }
        printTable(
          ["RUN", "SCHEDULE", "TRIGGER", "STATE", "SCHEDULED (UTC)", "STARTED", "LATE", "FINISHED", "ATTEMPT", "JOB"],
          page.items.map((run) => [
            run.runId,
            showScheduleOf(run),
            run.trigger,
            run.state,
            showUtc(run.scheduledAt),
            showUtc(run.startedAt),
            showLateness(run),
            showUtc(run.finishedAt),
            String(run.attempt),
            showJobShort(run.job),
          ]),
        );
        if (page.next !== null) printLine(`More: --after ${page.next}`);
      }),
    );

  withClientOptions(group.command("get <run>").description("show one run and its attempts")).action(
    act(async (config, options: ClientOptions, id: string) => {
      const client = clientFor(options, config);
      const run = await client.runs.get(id);
      const attempts = await client.runs.attempts(id);
      if (options.json) return printJson({ ...run, attempts });
      // Loaded when asked for: what a job may say takes a while to load.
      const { printRun } = await import("./show-run.ts");
      printRun(run, attempts, await sayAwaitedWorker(client, run));
    }),
  );

  createRunCommand(group, act);
  cancelCommand(group, act);
  watchCommand(group, act);
  resultCommand(group, act);
  logsCommand(group, act);
}
