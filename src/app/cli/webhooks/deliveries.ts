import type { Command } from "commander";
import type { Act } from "../act.ts";
import { pageOptions, readLimit } from "../page.ts";
import { printJson, printLine, printNote, printTable } from "../print.ts";
import { type ClientOptions, clientFor, withClientOptions } from "../target.ts";
import { UsageError } from "../usage.ts";
import { showUtc } from "../words.ts";

type ListOptions = ClientOptions & { state?: string; limit: string; after?: string };

/** What a webhook was told. */
export function deliveriesCommands(group: Command, act: Act): void {
  withClientOptions(
    pageOptions(group.command("deliveries <webhook>").description("list what a webhook was told, newest first")),
  )
    .option("--state <state>", "only these: pending, sending, delivered or failed")
    .action(
      act(async (config, { state, limit, after, ...options }: ListOptions, id: string) => {
        const page = await clientFor(options, config).webhooks.deliveries.list(id, {
          limit: readLimit(limit),
          ...(state === undefined ? {} : { state }),
          ...(after === undefined ? {} : { after }),
        });
        if (options.json) return printJson(page);
        if (page.items.length === 0 && page.next !== null) {
          return printNote(`No deliveries match so far; more may: --after ${page.next}`);
        }
        if (page.items.length === 0) return printNote("No deliveries here.");
        printTable(
          ["DELIVERY", "TYPE", "STATE", "ATTEMPTS", "ANSWER", "OCCURRED (UTC)", "RUN", "MESSAGE"],
          page.items.map((one) => [
            one.deliveryId,
            one.type,
            one.state,
            String(one.attempts),
            one.answerStatus === null ? "" : String(one.answerStatus),
            showUtc(one.occurredAt),
            one.runId ?? "",
            one.message ?? "",
          ]),
        );
        if (page.next !== null) printLine(`More: --after ${page.next}`);
      }),
    );

  withClientOptions(
    group
      .command("redeliver <webhook>")
      .usage("<webhook> --delivery <id> [options]")
      .description("send a delivery again, under the same event id"),
  )
    .option("--delivery <id>", "which of its deliveries")
    .action(
      act(async (config, { delivery, ...options }: ClientOptions & { delivery?: string }, id: string) => {
        if (delivery === undefined) throw new UsageError("--delivery <id>: not given, and required (--help says more)");
        const answer = await clientFor(options, config).webhooks.deliveries.redeliver(id, delivery);
        if (options.json) return printJson(answer);
        printLine(answer.changed ? `Delivery ${delivery} is sent again` : `Delivery ${delivery} waits already`);
      }),
    );
}
