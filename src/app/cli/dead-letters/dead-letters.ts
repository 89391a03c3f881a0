import type { Command } from "commander";
import type { DeadLetterDetail } from "../../../client/dead-letters.ts";
import type { Act } from "../act.ts";
import { pageOptions, readLimit } from "../page.ts";
import { printFields, printJson, printLine, printNote, printTable } from "../print.ts";
import { printAttempts } from "../runs/print-attempts.ts";
import { type ClientOptions, clientFor, withClientOptions } from "../target.ts";
import { showCount, showJob, showJobShort, showScheduleInFull, showUtc } from "../words.ts";
import { decideCommands } from "./decide.ts";
import { type FilterOptions, filterOf, filterOptions, printLetters, showError } from "./letters.ts";

type ListOptions = ClientOptions & FilterOptions & { state?: string; limit: string; after?: string };

/** Runs that were given up: what failed, and what is to become of them. */
export function deadLettersCommand(group: Command, act: Act): void {
  group.addHelpText(
    "after",
    `
Examples:
  punctual dead-letters groups
  punctual dead-letters list --schedule key:sales-report
  punctual dead-letters show run_01jd…
  punctual dead-letters replay run_01jd… --note "the warehouse is back"
  punctual dead-letters replay --all --fingerprint 5f0c1d7e2b9a4c36 --pace 5 --run --watch`,
  );

  withClientOptions(
    filterOptions(pageOptions(group.command("list").description("list runs that were given up, latest failure first"))),
  )
    .option("--state <state>", "open (default), replayed, dismissed or any")
    .action(
      act(async (config, { limit, state, after, ...options }: ListOptions) => {
        const page = await clientFor(options, config).deadLetters.list({
          ...filterOf(options),
          limit: readLimit(limit),
          ...(state === undefined ? {} : { state }),
          ...(after === undefined ? {} : { after }),
        });
        if (options.json) return printJson(page);
        if (page.items.length === 0) return printNote("No dead letters here.");
        printLetters(page.items);
        if (page.next !== null) printLine(`More: --after ${page.next}`);
      }),
    );

  withClientOptions(filterOptions(group.command("groups").description("open ones by what failed, most first"))).action(
    act(async (config, options: ClientOptions & FilterOptions) => {
      const groups = await clientFor(options, config).deadLetters.groups(filterOf(options));
      if (options.json) return printJson({ items: groups });
      if (groups.length === 0) return printNote("No dead letters here.");
      printTable(
        ["FINGERPRINT", "COUNT", "SCHEDULES", "FIRST (UTC)", "LAST", "SAMPLE", "JOB", "ERROR"],
        groups.map((one) => [
          one.fingerprint,
          showCount(one.count),
          String(one.schedules),
          showUtc(one.firstAt),
          showUtc(one.lastAt),
          one.sampleRunId,
          showJobShort(one.job),
          showError(one),
        ]),
      );
    }),
  );

  withClientOptions(
    group.command("show <run>").description("show one: why, its attempts, and what was decided about it"),
  ).action(
    act(async (config, options: ClientOptions, id: string) => {
      const { deadLetters, runs } = clientFor(options, config);
      const found = await deadLetters.get(id);
      if (options.json) return printJson(found);
      // The letter only says where what the run was given stands.
      const given = found.run === null ? null : (await runs.get(id)).payload;
      // Loaded when asked for: what a job may say takes a while to load.
      const { showJobFields } = await import("../schedules/job-fields.ts");
      printDetail(found, given, showJobFields(found.letter.job));
    }),
  );

  decideCommands(group, act);
}

function printDetail(
  { letter, run, payload, attempts, history }: DeadLetterDetail,
  given: object | null,
  job: Record<string, string>,
): void {
  printFields({
    run: letter.runId,
    schedule: run === null ? letter.scheduleId : showScheduleInFull(run),
    state: letter.state,
    "run is": run === null ? "not on record any more" : run.state,
    reason: letter.reason,
    error: letter.error && `${letter.error.code}: ${letter.error.message}`,
    fingerprint: letter.fingerprint,
    job: showJob(letter.job),
    ...job,
    failed: showUtc(letter.failedAt),
    scheduled: showUtc(letter.scheduledAt),
    payload: given && JSON.stringify(given),
    "payload is": payload && (payload.kind === "own" ? "its own" : `of revision ${payload.revision}`),
    replays: String(letter.replays),
  });
  printAttempts(attempts);
  if (history.length === 0) return;
  printLine("");
  printTable(
    ["DECISION", "AT (UTC)", "BY", "WHY", "AFTER"],
    history.map((one) => [
      one.resolution,
      showUtc(one.resolvedAt),
      one.resolvedByLabel ?? one.resolvedBy,
      one.reason ?? "",
      one.failure,
    ]),
  );
}
