import type { Command } from "commander";
import type { Webhook, WebhookDraft } from "../../../client/webhooks.ts";
import type { Act } from "../act.ts";
import { durationMs } from "../duration.ts";
import { printFields, printJson, printLine, printNote, printTable } from "../print.ts";
import { readScheduleRef } from "../schedules/schedule-ref.ts";
import { type ClientOptions, clientFor, withClientOptions } from "../target.ts";
import { UsageError } from "../usage.ts";
import { showDuration, showUtc } from "../words.ts";
import { deliveriesCommands } from "./deliveries.ts";

type DraftOptions = ClientOptions & {
  event?: string[];
  description?: string;
  schedule?: string[];
  lateAfter?: string;
  endpoint?: string;
};

const collect = (value: string, before: string[] = []) => [...before, value];

/** Servers that are told of what happens to runs. `--url` is the API's, so the endpoint's is an argument. */
export function webhooksCommand(group: Command, act: Act): void {
  group.addHelpText(
    "after",
    `
Examples:
  punctual webhooks create https://hooks.example.com/punctual --event run.failed --event run.late
  punctual webhooks test whk_01jd…
  punctual webhooks deliveries whk_01jd… --state failed
  punctual webhooks redeliver whk_01jd… --delivery 4711`,
  );

  withClientOptions(group.command("list").description("list webhooks, newest first")).action(
    act(async (config, options: ClientOptions) => {
      const { items } = await clientFor(options, config).webhooks.list();
      if (options.json) return printJson({ items });
      if (items.length === 0) return printNote("No webhooks here.");
      printTable(
        ["WEBHOOK", "URL", "EVENTS", "STATUS", "FAILURES", "LAST DELIVERED (UTC)"],
        items.map((one) => [
          one.webhookId,
          one.url,
          one.events.join(", "),
          one.status,
          String(one.failures),
          showUtc(one.lastDeliveredAt),
        ]),
      );
    }),
  );

  withClientOptions(group.command("show <webhook>").description("show one webhook")).action(
    act(async (config, options: ClientOptions, id: string) => {
      const found = await clientFor(options, config).webhooks.get(id);
      if (options.json) return printJson(found);
      printWebhook(found);
    }),
  );

  withDraft(group.command("create <endpoint>").description("have the server at this URL told of events")).action(
    act(async (config, options: DraftOptions, endpoint: string) => {
      const { events, ...rest } = draftOf(options);
      if (events === undefined) throw new UsageError("--event <type>: not given, and required (--help says more)");
      const made = await clientFor(options, config).webhooks.create({ url: endpoint, events, ...rest });
      if (options.json) return printJson(made);
      printWebhook(made);
    }),
  );

  withDraft(group.command("edit <webhook>").description("change what it hears of, and where"))
    .option("--endpoint <url>", "where events are posted to")
    .action(
      act(async (config, options: DraftOptions, id: string) => {
        const { endpoint } = options;
        const change = { ...draftOf(options), ...(endpoint === undefined ? {} : { url: endpoint }) };
        const answer = await clientFor(options, config).webhooks.edit(id, change);
        if (options.json) return printJson(answer);
        printWebhook(answer.webhook);
      }),
    );

  for (const [name, done] of [
    ["enable", "hears of events again"],
    ["disable", "hears of nothing for the time being"],
  ] as const) {
    withClientOptions(group.command(`${name} <webhook>`).description(`it ${done}`)).action(
      act(async (config, options: ClientOptions, id: string) => {
        const answer = await clientFor(options, config).webhooks[name](id);
        if (options.json) return printJson(answer);
        printLine(answer.changed ? `${id} ${done}` : `${id} was ${name}d already`);
      }),
    );
  }

  withClientOptions(
    group.command("delete <webhook>").description("take it away; what waits for it is not sent"),
  ).action(
    act(async (config, options: ClientOptions, id: string) => {
      const answer = await clientFor(options, config).webhooks.delete(id);
      if (options.json) return printJson(answer);
      printLine(`Deleted ${id}`);
    }),
  );

  withClientOptions(group.command("test <webhook>").description("send a test event, once")).action(
    act(async (config, options: ClientOptions, id: string) => {
      const asked = await clientFor(options, config).webhooks.test(id);
      if (options.json) return printJson(asked);
      printLine(`Delivery ${asked.deliveryId}; what came of it: punctual webhooks deliveries ${id}`);
    }),
  );

  deliveriesCommands(group, act);
}

function withDraft(command: Command): Command {
  return withClientOptions(command)
    .option(
      "--event <type>",
      "run.succeeded, run.failed, run.dead-lettered, run.canceled, run.skipped or run.late; as often as needed",
      collect,
    )
    .option("--description <text>", "what it is for")
    .option("--schedule <schedule>", "only runs of this schedule (id or key:<key>); as often as needed", collect)
    .option(
      "--late-after <duration>",
      "how long after it was due a run that has not started is late, such as 90s or 15m",
    );
}

function draftOf({ event, description, schedule, lateAfter }: DraftOptions): Partial<WebhookDraft> {
  return {
    ...(event === undefined ? {} : { events: event }),
    ...(description === undefined ? {} : { description }),
    ...(schedule === undefined ? {} : { scheduleIds: schedule.map(readScheduleRef) }),
    ...(lateAfter === undefined ? {} : { lateAfterMs: readLateAfter(lateAfter) }),
  };
}

/** A number alone is milliseconds, as the API has them. */
function readLateAfter(text: string): number {
  return /^\d+$/.test(text) ? Number(text) : durationMs("--late-after", text);
}

function printWebhook(webhook: Webhook): void {
  printFields({
    webhook: webhook.webhookId,
    url: webhook.url,
    events: webhook.events.join(", "),
    schedules: webhook.scheduleIds?.join(", ") ?? null,
    description: webhook.description,
    "late after": showDuration(webhook.lateAfterMs),
    status: webhook.status,
    disabled: webhook.disabledReason && `${showUtc(webhook.disabledAt)}: ${webhook.disabledReason}`,
    failures: webhook.failures === 0 ? null : `${webhook.failures} since ${showUtc(webhook.failingSince)}`,
    "last delivered": showUtc(webhook.lastDeliveredAt),
  });
}
