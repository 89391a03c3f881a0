import type { Command } from "commander";
import type { RunCounts } from "../../client/stats.ts";
import type { Act } from "./act.ts";
import { printJson, printLine, printNote, printTable } from "./print.ts";
import { type ClientOptions, clientFor, withClientOptions } from "./target.ts";
import { showMs, showUtc } from "./words.ts";

type StatsOptions = ClientOptions & { from?: string; to?: string; class?: string; by?: string };

export function statsCommand(program: Command, act: Act): void {
  withClientOptions(program.command("stats").description("count what happened to runs, and how late they started"))
    .option("--by <resolution>", "minute (the last hour), hour (the last day) or day (30 days)", "minute")
    .option("--from <instant>", "from here on, such as 2026-10-01T09:00:00Z")
    .option("--to <instant>", "up to here; default: now")
    .option("--class <class>", "only runs of this class")
    .action(
      act(async (config, { json, url, key, by, ...period }: StatsOptions) => {
        const client = clientFor({ ...(url && { url }), ...(key && { key }) }, config);
        const stats = await client.stats({ ...period, ...(by === undefined ? {} : { resolution: by }) });
        if (json) return printJson(stats);
        if (stats.items.length === 0) {
          return printNote(`Nothing happened from ${showUtc(stats.from)} to ${showUtc(stats.to)}.`);
        }
        printTable(
          [
            "FROM (UTC)",
            "CLASS",
            "STARTED",
            "OK",
            "FAILED",
            "CANCELED",
            "SKIPPED",
            "RETRIED",
            "SUCCESS",
            "LATE P50",
            "LATE P99",
          ],
          [
            ...stats.items.map((one) => [showUtc(one.at), one.class, ...countsOf(one)]),
            ["total", "", ...countsOf(stats.total)],
          ],
        );
        printLine(`As of ${showUtc(stats.asOf)}. Held back (overlap, a limit, a replay): ${stats.total.heldBack}`);
      }),
    );
}

function countsOf(counts: RunCounts): string[] {
  const { started, succeeded, failed, canceled, skipped, retried, lateness } = counts;
  const ended = succeeded + failed;
  const success = ended === 0 ? "" : `${(Math.floor((succeeded / ended) * 1000) / 10).toFixed(1)} %`;
  const past = lateness.counts.some((n) => n > 0) ? "over 1 h" : "";
  return [
    ...[started, succeeded, failed, canceled, skipped, retried].map(String),
    success,
    ...[lateness.p50Ms, lateness.p99Ms].map((ms) => (ms === null ? past : `≤ ${showMs(ms)}`)),
  ];
}
