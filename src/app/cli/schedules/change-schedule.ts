import type { Command } from "commander";
import type { Act } from "../act.ts";
import { printJson, printLine } from "../print.ts";
import { type ClientOptions, clientFor, withClientOptions } from "../target.ts";
import { showNext } from "../words.ts";
import { readScheduleRef } from "./schedule-ref.ts";

/** What is done to one schedule, named by id or key:<key>. */
export function changeScheduleCommands(group: Command, act: Act): void {
  withClientOptions(group.command("pause <schedule>").description("pause it: nothing new becomes due"))
    .option("--note <text>", "why, for whoever looks at it")
    .action(
      act(async (config, { note, ...options }: ClientOptions & { note?: string }, ref: string) => {
        const paused = await clientFor(options, config).schedules.pause(readScheduleRef(ref), note);
        if (options.json) return printJson(paused);
        printLine(paused.changed ? `Paused ${ref}` : `${ref} was paused already`);
      }),
    );

  withClientOptions(
    group.command("resume <schedule>").description("resume it; what was missed follows its misfire policy"),
  )
    .option("--misfire <policy>", "for what was missed, this once: latest, skip or all")
    .option("--note <text>", "in place of what was noted at the pause")
    .action(
      act(async (config, options: ClientOptions & { misfire?: string; note?: string }, ref: string) => {
        const { misfire, note, json } = options;
        const resumed = await clientFor(options, config).schedules.resume(readScheduleRef(ref), {
          ...(misfire === undefined ? {} : { misfire }),
          ...(note === undefined ? {} : { note }),
        });
        if (json) return printJson(resumed);
        const { schedule, changed, plan } = resumed;
        if (!changed) return printLine(`${ref} was active already`);
        printLine(`Resumed ${ref}; next run: ${showNext(schedule) || "none"}`);
        if (plan.runs > 0 || plan.skipped !== 0) {
          const skipped = plan.skipped ?? "too many to count";
          printLine(`Missed meanwhile: ${plan.runs} to be caught up, ${skipped} recorded as skipped`);
        }
      }),
    );

  withClientOptions(
    group.command("delete <schedule>").description("delete it: waiting runs are canceled, its history stays"),
  ).action(
    act(async (config, options: ClientOptions, ref: string) => {
      const deleted = await clientFor(options, config).schedules.delete(readScheduleRef(ref));
      if (options.json) return printJson(deleted);
      printLine(`Deleted ${ref}; waiting runs canceled: ${deleted.canceled}`);
    }),
  );

  withClientOptions(
    group
      .command("run <schedule>")
      .description("run it now, whatever its rule says")
      .option("--idempotency-key <key>", "a second call with this key answers the run that the first one made"),
  ).action(
    act(async (config, options: ClientOptions & { idempotencyKey?: string }, ref: string) => {
      const made = await clientFor(options, config).schedules.run(readScheduleRef(ref), options.idempotencyKey);
      if (options.json) return printJson(made);
      printLine(`Made ${made.runId} (${made.state}); follow it: punctual runs watch ${made.runId}`);
    }),
  );
}
