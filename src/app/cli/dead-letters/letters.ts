import type { Command } from "commander";
import type { DeadLetter, LetterFilter } from "../../../client/dead-letters.ts";
import { printTable } from "../print.ts";
import { readScheduleRef } from "../schedules/schedule-ref.ts";
import { showJobShort, showUtc } from "../words.ts";

/** Which dead letters are meant, and how a list of them looks. */

export type FilterOptions = {
  schedule?: string;
  class?: string;
  reason?: string;
  fingerprint?: string;
  from?: string;
  to?: string;
};
export function filterOptions(command: Command): Command {
  return command
    .option("--schedule <schedule>", "only runs of this schedule (id or key:<key>)")
    .option("--class <class>", "only runs of this class")
    .option("--reason <reason>", "only what was given up for this: permanent, attempts-exhausted, crash-loop …")
    .option("--fingerprint <fingerprint>", "only failures of this kind, as `groups` shows them")
    .option("--from <instant>", "given up from here on, such as 2026-10-01T09:00:00Z")
    .option("--to <instant>", "given up before this");
}

export function filterOf(options: FilterOptions): LetterFilter {
  const { schedule, class: class_, reason, fingerprint, from, to } = options;
  return {
    ...(schedule === undefined ? {} : { scheduleId: readScheduleRef(schedule) }),
    ...(class_ === undefined ? {} : { class: class_ }),
    ...(reason === undefined ? {} : { reason }),
    ...(fingerprint === undefined ? {} : { fingerprint }),
    ...(from === undefined ? {} : { from }),
    ...(to === undefined ? {} : { to }),
  };
}

export function printLetters(letters: readonly DeadLetter[]): void {
  printTable(
    ["RUN", "STATE", "FAILED (UTC)", "SCHEDULED", "ATTEMPTS", "REASON", "JOB", "ERROR"],
    letters.map((one) => [
      one.runId,
      one.state,
      showUtc(one.failedAt),
      showUtc(one.scheduledAt),
      String(one.attempts),
      one.reason,
      showJobShort(one.job),
      showError(one),
    ]),
  );
}

export function showError({ error }: Pick<DeadLetter, "error">): string {
  return error === null ? "" : `${error.code}: ${error.message.slice(0, 80)}`;
}
