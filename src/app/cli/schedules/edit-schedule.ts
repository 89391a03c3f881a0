import type { Command } from "commander";
import type { Act } from "../act.ts";
import { printJson, printLine, printTable } from "../print.ts";
import { clientFor, withClientOptions } from "../target.ts";
import { UsageError } from "../usage.ts";
import { showLocal } from "../words.ts";
import { type FieldOptions, readFields, withFieldOptions } from "./field-options.ts";
import { readScheduleRef } from "./schedule-ref.ts";
import { withCurrentPayload } from "./secret-options.ts";

type EditOptions = FieldOptions & { revision?: string; dryRun?: boolean };

export function editScheduleCommand(group: Command, act: Act): void {
  withFieldOptions(
    withClientOptions(group.command("edit <schedule>").description("change fields of a schedule: a new revision")),
  )
    .option("--revision <n>", "refuse if the schedule is at another revision by now (default: the one just read)")
    .option("--dry-run", "only say which fields would differ, and which of the next instants stay, vanish and appear")
    .addHelpText(
      "after",
      `
A field that is given replaces that whole field; null in --set takes an optional one away.

Examples:
  punctual schedules edit key:daily-summary --cron "30 8 * * 1-5" --dry-run
  punctual schedules edit key:daily-summary --set '{"pauseOnFailure":true,"notes":null}'`,
    )
    .action(
      act(async (config, options: EditOptions, ref: string) => {
        const { schedules } = clientFor(options, config);
        const schedule = readScheduleRef(ref);
        const current = await schedules.get(schedule);
        const fields = readFields(withCurrentPayload(options, current.payload), current.rule);
        if (Object.keys(fields).length === 0) throw new UsageError("nothing to change: no field is given");
        if (options.dryRun) {
          const preview = await schedules.previewChange(schedule, fields);
          if (options.json) return printJson(preview);
          const { printFieldChanges } = await import("./show-schedule.ts");
          printFieldChanges(preview.diff);
          const { stay, vanish, appear } = preview.diff;
          const rows = [
            ...stay.map((one) => ["stays", showLocal(one.local)]),
            ...vanish.map((one) => ["vanishes", showLocal(one.local)]),
            ...appear.map((one) => ["appears", showLocal(one.local)]),
          ];
          if (rows.length > 0) printTable(["INSTANT", "LOCAL"], rows);
          return printLine("Nothing was changed.");
        }
        const expectedRevision = options.revision === undefined ? current.revision : readRevision(options.revision);
        const revised = await schedules.edit(schedule, { ...fields, expectedRevision });
        if (options.json) return printJson(revised);
        if (revised.revision === current.revision)
          return printLine(`${ref} was so already (revision ${revised.revision})`);
        printLine(`Changed ${ref}: revision ${revised.revision}`);
        const { printChanges } = await import("./show-schedule.ts");
        printChanges(current, revised);
      }),
    );
}

function readRevision(text: string): number {
  if (/^[1-9]\d{0,9}$/.test(text)) return Number(text);
  throw new UsageError(`--revision: found "${text}"; allowed: a whole number from 1`);
}
