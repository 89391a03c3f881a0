import type { Command } from "commander";
import type { Effect, RunEffect } from "../../../client/effects.ts";
import type { Act } from "../act.ts";
import { pageOptions, readLimit } from "../page.ts";
import { printFields, printJson, printLine, printNote, printTable } from "../print.ts";
import { readScheduleRef } from "../schedules/schedule-ref.ts";
import { type ClientOptions, clientFor, withClientOptions } from "../target.ts";
import { UsageError } from "../usage.ts";
import { showUtc } from "../words.ts";

type ListOptions = ClientOptions & { state?: string; kind?: string; schedule?: string; limit: string; after?: string };
type ResolveOptions = ClientOptions & { outcome?: string; reason?: string };

/** Emails and webhooks of accepted results. */
export function effectsCommand(group: Command, act: Act): void {
  group.addHelpText(
    "after",
    `
Examples:
  punctual effects list --state uncertain
  punctual effects show eff_01jd…
  punctual effects resolve eff_01jd… --outcome sent --reason "the customer has the email"`,
  );

  withClientOptions(pageOptions(group.command("list").description("list effects, newest first")))
    .option("--state <state>", "only these: pending, sending, sent, uncertain, failed or resolved")
    .option("--kind <kind>", "only these: email or webhook")
    .option("--schedule <schedule>", "only effects of this schedule's runs (id or key:<key>)")
    .action(
      act(async (config, { state, kind, schedule, limit, after, ...options }: ListOptions) => {
        const page = await clientFor(options, config).effects.list({
          limit: readLimit(limit),
          ...(state === undefined ? {} : { state }),
          ...(kind === undefined ? {} : { kind }),
          ...(schedule === undefined ? {} : { scheduleId: readScheduleRef(schedule) }),
          ...(after === undefined ? {} : { after }),
        });
        if (options.json) return printJson(page);
        if (page.items.length === 0) return printNote("No effects here.");
        printTable(
          ["EFFECT", "NAME", "KIND", "STATE", "ATTEMPTS", "CREATED (UTC)", "RUN"],
          page.items.map((one) => [
            one.effectId,
            one.name,
            one.kind,
            showEffectState(one),
            String(one.attempts),
            showUtc(one.createdAt),
            one.runId,
          ]),
        );
        if (page.next !== null) printLine(`More: --after ${page.next}`);
      }),
    );

  withClientOptions(group.command("show <effect>").description("show one effect and every attempt to send it")).action(
    act(async (config, options: ClientOptions, id: string) => {
      const found = await clientFor(options, config).effects.get(id);
      if (options.json) return printJson(found);
      printEffect(found);
    }),
  );

  withClientOptions(
    group
      .command("resolve <effect>")
      .usage("<effect> --outcome <outcome> --reason <text> [options]")
      .description("decide what is to become of an uncertain or failed effect"),
  )
    .option("--outcome <outcome>", "sent (it did happen), resend (it may happen twice) or drop")
    .option("--reason <text>", "why, for the history")
    .action(
      act(async (config, { outcome, reason, ...options }: ResolveOptions, id: string) => {
        if (outcome === undefined || reason === undefined) {
          const missing = outcome === undefined ? "--outcome <outcome>" : "--reason <text>";
          throw new UsageError(`${missing}: not given, and required (--help says more)`);
        }
        const answer = await clientFor(options, config).effects.resolve(id, { outcome, reason });
        if (options.json) return printJson(answer);
        const what = decidedAs(answer.effect);
        printLine(answer.changed ? `${id}: ${what}` : `${id} was decided so already: ${what}`);
      }),
    );
}

function decidedAs({ state, resolution }: Pick<Effect, "state" | "resolution">): string {
  if (resolution === "sent") return "counts as sent; it is not sent again";
  if (resolution === "dropped") return "dropped; it is not sent again";
  return `to be sent again (${state}); it may happen twice`;
}

/** How it was resolved says more than that it was. */
export function showEffectState({ state, resolution }: Pick<RunEffect, "state" | "resolution">): string {
  return resolution === null ? state : `${state}: ${resolution}`;
}

function printEffect(effect: Effect): void {
  printFields({
    effect: effect.effectId,
    name: effect.name,
    kind: effect.kind,
    state: effect.state,
    resolution: effect.resolution && `${effect.resolution}, by ${effect.resolvedBy ?? "its onUncertain"}`,
    "action id": effect.actionId,
    run: effect.runId,
    schedule: effect.scheduleId,
    message: effect.message,
    "external id": effect.externalId,
    created: showUtc(effect.createdAt),
    next: showUtc(effect.nextAttemptAt),
    settled: showUtc(effect.settledAt),
    declared: JSON.stringify(effect.effect),
  });
  if (effect.tries.length === 0) return;
  printLine("");
  printTable(
    ["ATTEMPT", "OUTCOME", "STARTED (UTC)", "ENDED", "SENDER", "MESSAGE"],
    effect.tries.map((one) => [
      String(one.attempt),
      one.outcome,
      showUtc(one.startedAt),
      showUtc(one.endedAt),
      one.sender,
      one.message ?? one.externalId ?? "",
    ]),
  );
}
