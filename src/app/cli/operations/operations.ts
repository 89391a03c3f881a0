import type { Command } from "commander";
import type { Operation } from "../../../client/operations.ts";
import type { Act } from "../act.ts";
import { pageOptions, readLimit } from "../page.ts";
import { printFields, printJson, printLine, printNote, printTable } from "../print.ts";
import { readScheduleRef } from "../schedules/schedule-ref.ts";
import { type ClientOptions, clientFor, withClientOptions } from "../target.ts";
import { showScheduleInFull, showScheduleOf, showUtc } from "../words.ts";
import { watchOperationCommand } from "./watch-operation.ts";

type ListOptions = ClientOptions & {
  state?: string;
  schedule?: string;
  requestKey?: string;
  limit: string;
  after?: string;
};

/** Long work that has a row of its own, such as a backfill. */
export function operationsCommand(group: Command, act: Act): void {
  group.addHelpText(
    "after",
    `
Examples:
  punctual operations list --state working
  punctual operations watch op_01jd…
  punctual operations cancel op_01jd…`,
  );

  withClientOptions(pageOptions(group.command("list").description("list long operations, newest first")))
    .option("--state <state>", "only these: pending, working, done, canceled or failed")
    .option("--schedule <schedule>", "only operations on this schedule (id or key:<key>)")
    .option("--request-key <key>", "what a call with this idempotency key made; an error says that it made nothing")
    .action(
      act(async (config, { state, schedule, requestKey, limit, after, ...options }: ListOptions) => {
        const page = await clientFor(options, config).operations.list({
          limit: readLimit(limit),
          ...(state === undefined ? {} : { state }),
          ...(requestKey === undefined ? {} : { requestKey }),
          ...(schedule === undefined ? {} : { scheduleId: readScheduleRef(schedule) }),
          ...(after === undefined ? {} : { after }),
        });
        if (options.json) return printJson(page);
        if (page.items.length === 0) return printNote("No operations here.");
        printTable(
          ["OPERATION", "KIND", "STATE", "PROGRESS", "CREATED (UTC)", "SCHEDULE"],
          page.items.map((one) => [
            one.operationId,
            one.kind,
            one.state,
            showProgress(one),
            showUtc(one.createdAt),
            showScheduleOf(one),
          ]),
        );
        if (page.next !== null) printLine(`More: --after ${page.next}`);
      }),
    );

  withClientOptions(group.command("get <operation>").description("show one operation and how far it is")).action(
    act(async (config, options: ClientOptions, id: string) => {
      const found = await clientFor(options, config).operations.get(id);
      if (options.json) return printJson(found);
      printOperation(found);
    }),
  );

  watchOperationCommand(group, act);

  withClientOptions(
    group.command("cancel <operation>").description("end it between two steps; what it has done stays done"),
  ).action(
    act(async (config, options: ClientOptions, id: string) => {
      const canceled = await clientFor(options, config).operations.cancel(id);
      if (options.json) return printJson(canceled);
      const { operation, changed } = canceled;
      printLine(changed ? `Canceled ${id}; done by then: ${showProgress(operation)}` : `${id} was canceled already`);
    }),
  );
}

/** `17 of 40`; `17` where nobody counted them. */
export function showProgress({ done, failed, total }: Operation): string {
  const progress = total === null ? String(done) : `${done} of ${total}`;
  return failed === 0 ? progress : `${progress}, ${failed} failed`;
}

function printOperation(operation: Operation): void {
  printFields({
    operation: operation.operationId,
    kind: operation.kind,
    schedule: showScheduleInFull(operation),
    state: operation.state,
    progress: showProgress(operation),
    message: operation.message,
    found: showCounts(operation.counts),
    arguments: JSON.stringify(operation.arguments),
    pace: operation.pacePerSecond === null ? null : `${operation.pacePerSecond} per second`,
    reason: operation.reason,
    by: operation.actor,
    created: showUtc(operation.createdAt),
    changed: showUtc(operation.updatedAt),
    finished: showUtc(operation.finishedAt),
  });
}

/** `skipped 3, existing:succeeded 1` */
export function showCounts(counts: Readonly<Record<string, number>>): string {
  return Object.entries(counts)
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, count]) => `${name} ${count}`)
    .join(", ");
}
