import type { Command } from "commander";
import type { Ledger, LedgerItem } from "../../../client/types.ts";
import type { Act } from "../act.ts";
import { pageOptions, readLimit } from "../page.ts";
import { printJson, printLine, printNote, printTable, visible } from "../print.ts";
import { type ClientOptions, clientFor, withClientOptions } from "../target.ts";
import { showCount, showLocal, showUtc } from "../words.ts";
import { readScheduleRef } from "./schedule-ref.ts";

type Options = ClientOptions & { from?: string; to?: string; limit: string; after?: string };

export function ledgerCommand(group: Command, act: Act): void {
  withClientOptions(
    pageOptions(
      group
        .command("ledger <schedule>")
        .description("account for every nominal instant of a period, the last day by default"),
    ),
  )
    .option("--from <instant>", "nominal instants from here on, such as 2026-10-01T09:00:00Z")
    .option("--to <instant>", "nominal instants before this (default: now)")
    .action(
      act(async (config, { from, to, limit, after, ...options }: Options, ref: string) => {
        const ledger = await clientFor(options, config).schedules.ledger(readScheduleRef(ref), {
          limit: readLimit(limit),
          ...(from === undefined ? {} : { from }),
          ...(to === undefined ? {} : { to }),
          ...(after === undefined ? {} : { after }),
        });
        if (options.json) return printJson(ledger);
        printLedger(ledger);
      }),
    );
}

function printLedger(ledger: Ledger): void {
  if (ledger.items.length > 0) {
    printTable(
      ["INSTANT", "TO", "WHAT", "RUN", "DETAIL"],
      ledger.items.map((one) => [
        showLocal(one.local),
        one.kind === "range" ? showLocal(one.to.local) : "",
        one.kind === "range" ? "skipped" : one.kind,
        one.kind === "range" ? "" : one.runId,
        detailOf(one),
      ]),
    );
    printLine("");
  } else {
    printNote("No instants in this period.");
  }
  const { ran, pending, skipped } = ledger.counts;
  printLine(`${showCount(ran)} ran, ${showCount(pending)} pending, ${showCount(skipped)} skipped`);
  // What is not decided yet can be neither there nor missing.
  const until = [ledger.verifiedTo, ledger.decidedTo ?? ledger.verifiedTo].sort(
    (a, b) => Date.parse(a) - Date.parse(b),
  )[0]!;
  const period = `${showUtc(ledger.from)} to ${showUtc(until)}`;
  if (!ledger.complete) printLine(`NOT COMPLETE from ${period}:`);
  else if (Date.parse(until) > Date.parse(ledger.from)) printLine(`Complete from ${period}: no instant is missing`);
  for (const { after, before, expected } of ledger.holes) {
    printLine(
      visible(`  between ${showUtc(after) || "the beginning"} and ${showUtc(before) || "now"}: expected ${expected}`),
    );
  }
  for (const note of ledger.notes) printNote(visible(note));
  if (ledger.next !== null) printLine(`More: --after ${ledger.next}`);
}

function detailOf(item: LedgerItem): string {
  if (item.kind === "range") {
    const backfilled = item.backfilled > 0 ? `, ${item.backfilled} of them backfilled` : "";
    return `${item.instants ?? "very many"} instants${backfilled}: ${item.reason}`;
  }
  if (item.kind === "skipped") return item.reason ?? "";
  const error = item.outcome?.error;
  return error ? `${item.state}: ${error.code}` : item.state;
}
