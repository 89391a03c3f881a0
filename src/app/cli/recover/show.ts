import type { Difference, Doubts } from "../../../authority/recovery/doubts.ts";
import { showId } from "../../../kernel/ids.ts";
import { printLine, printTable } from "../print.ts";
import type { RecoverOptions } from "./recover.ts";

const SHOWN = 50;

const MEANING: Readonly<Record<Difference, string>> = {
  system: "it is another cluster than the recorded one",
  timeline: "it was restored to a point in time, or it is a standby that was promoted",
  database: "it is another database than the recorded one: a dump was restored",
};

const at = (instant: number | null) => (instant === null ? "" : new Date(Math.floor(instant)).toISOString());

export function printDoubts(doubts: Doubts, options: Pick<RecoverOptions, "anyway">): void {
  const { differences, runs, effects, epoch, newest } = doubts;
  for (const one of differences) printLine(`This server is not the one that was recorded: ${MEANING[one]}.`);
  if (differences.length === 0) printLine(`This server is the recorded one (epoch ${epoch}).`);
  if (newest !== undefined)
    printLine(`Last recovery: epoch ${newest.epoch}, ${at(newest.recoveredAt)}, ${newest.actor}: ${newest.reason}`);
  if (differences.length === 0 && !options.anyway) return;
  printLine(`\n${runs.length} runs were running: they may have ended, gone on or failed in what is lost.`);
  if (runs.length > 0)
    printTable(
      ["RUN", "STATE", "ATTEMPT", "STARTED (UTC)", "WORKER"],
      runs
        .slice(0, SHOWN)
        .map((run) => [showId("run", run.id), run.state, String(run.attempt), at(run.startedAt), run.worker ?? ""]),
    );
  printLine(`\n${effects.length} effects were not settled: they may have been sent in what is lost.`);
  if (effects.length > 0)
    printTable(
      ["ACTION", "KIND", "STATE", "ON UNCERTAIN", "FIRST SENT (UTC)"],
      effects.slice(0, SHOWN).map((one) => [one.actionId, one.kind, one.state, one.onUncertain, at(one.firstSentAt)]),
    );
  if (doubts.isCapped || runs.length > SHOWN || effects.length > SHOWN)
    printLine("There are more; --json shows 1,000 of each.");
}

/** As the API shows ids and instants. */
export function documentOfDoubts({ differences, runs, effects, isCapped }: Doubts) {
  return {
    differences,
    runs: runs.map(({ id, tenantId, scheduleId, startedAt, ...run }) => ({
      runId: showId("run", id),
      tenantId,
      scheduleId: scheduleId === null ? null : showId("sch", scheduleId),
      startedAt: at(startedAt),
      ...run,
    })),
    effects: effects.map(({ id, runId, firstSentAt, ...effect }) => ({
      effectId: showId("eff", id),
      runId: showId("run", runId),
      firstSentAt: firstSentAt === null ? null : at(firstSentAt),
      ...effect,
    })),
    isCapped,
  };
}
