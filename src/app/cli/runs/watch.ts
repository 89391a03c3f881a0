import type { Command } from "commander";
import type { Client } from "../../../client/client.ts";
import type { Run, RunState } from "../../../client/types.ts";
import { systemClock } from "../../../kernel/clock.ts";
import type { Act } from "../act.ts";
import { type Deadline, deadlineIn, readWhole } from "../deadline.ts";
import { printJson, printLine, printNote, visible } from "../print.ts";
import { readScheduleRef } from "../schedules/schedule-ref.ts";
import { type ClientOptions, clientFor, withClientOptions } from "../target.ts";
import { EXIT } from "../usage.ts";
import { showUtc } from "../words.ts";
import { sayAwaitedWorker, sayWaiting } from "./waiting.ts";

type WatchOptions = ClientOptions & { schedule?: string; newest: string; timeout?: string };

/** Worst first: with several runs, the worst end decides. */
const EXIT_OF: Readonly<Partial<Record<RunState, number>>> = { failed: 3, canceled: 4, skipped: 5 };
const STILL_OPEN = 6;
const WAITING: readonly RunState[] = ["queued", "blocked", "retrying"];

const FIRST_NAP_MS = 200;
const LONGEST_NAP_MS = 2_000;
/** Lists show what was made so long ago. */
const UNLISTED_MS = 5_000;
const FIRST_LOOKS_MS = 500;

export function watchCommand(group: Command, act: Act): void {
  withClientOptions(
    group
      .command("watch [run]")
      .description("follow a run, or the newest ones, until it has ended; the exit code tells how"),
  )
    .option("--schedule <schedule>", "without a run: only runs of this schedule")
    .option("--newest <n>", "without a run: how many, 1 to 20", "1")
    .option("--timeout <seconds>", "stop watching after so long")
    .addHelpText(
      "after",
      `
Exit codes: 0 succeeded, 3 failed, 4 canceled, 5 skipped, 6 still open at the timeout.

Example:
  punctual runs watch --schedule key:run-summary --timeout 90`,
    )
    .action(
      act(async (config, { schedule, newest, timeout, ...options }: WatchOptions, id: string) => {
        const wholeNewest = readWhole("--newest", newest, 20);
        const untilMs = timeout === undefined ? Number.POSITIVE_INFINITY : readWhole("--timeout", timeout, 1e6) * 1000;
        const only = schedule === undefined ? undefined : readScheduleRef(schedule);
        const client = clientFor(options, config);
        // With --json standard error holds errors alone.
        const show = options.json
          ? printJson
          : async (run: Run) => printChange(run, await sayAwaitedWorker(client, run));
        const note = options.json ? () => {} : printNote;
        const deadline = deadlineIn(untilMs, systemClock);
        const ids = id === "" ? await findNewest(client, only, wholeNewest, deadline, note) : [id];
        const exitCode = await follow(client, ids, show, deadline);
        if (exitCode === STILL_OPEN) {
          note(`${ids.length === 0 ? "No run yet" : "Still open"} after ${timeout} s (exit code ${STILL_OPEN}).`);
        }
        return exitCode;
      }),
    );
}

/**
 * Waits for the first run where there is none yet. A run that was just made is on no list (see `watermark`), so one that has
 * ended is only taken for the newest when nothing newer has appeared meanwhile.
 */
async function findNewest(
  client: Client,
  schedule: string | undefined,
  limit: number,
  deadline: Deadline,
  note: (line: string) => void,
): Promise<string[]> {
  let listedUntil: number | undefined;
  let isWaiting = false;
  for (;;) {
    const { items, watermark } = await client.runs.list({
      limit,
      ...(schedule === undefined ? {} : { scheduleId: schedule }),
    });
    if (items.some((run) => run.finishedAt === null) || deadline.passed()) return items.map((run) => run.runId);
    if (listedUntil === undefined) {
      listedUntil = Date.parse(watermark) + UNLISTED_MS;
      note("Looking for a run made in the last seconds …");
    } else if (Date.parse(watermark) >= listedUntil) {
      if (items.length > 0) return items.map((run) => run.runId);
      if (!isWaiting) note(await sayWaiting(client, schedule));
      isWaiting = true;
    }
    await deadline.nap(isWaiting ? LONGEST_NAP_MS : FIRST_LOOKS_MS);
  }
}

/** Shows every change of these runs until all have ended; answers the exit code. */
async function follow(
  client: Client,
  ids: readonly string[],
  show: (run: Run) => void | Promise<void>,
  deadline: Deadline,
): Promise<number> {
  const open = new Map(ids.map((id) => [id, ""]));
  let exitCode: number = ids.length === 0 ? STILL_OPEN : EXIT.ok;
  let napMs = FIRST_NAP_MS;
  while (open.size > 0) {
    for (const [id, before] of open) {
      const run = await client.runs.get(id);
      const now = `${run.state} ${run.heldBy} ${run.attempt} ${run.worker} ${run.cancellationRequested}`;
      if (now !== before) {
        await show(run);
        napMs = FIRST_NAP_MS;
      }
      open.set(id, now);
      if (run.finishedAt === null) continue;
      open.delete(id);
      exitCode = worse(exitCode, EXIT_OF[run.state] ?? EXIT.ok);
    }
    if (open.size === 0) return exitCode;
    if (deadline.passed()) return STILL_OPEN;
    await deadline.nap(napMs);
    napMs = Math.min(LONGEST_NAP_MS, napMs * 1.5);
  }
  return exitCode;
}

function worse(a: number, b: number): number {
  if (a === EXIT.ok || b === EXIT.ok) return Math.max(a, b);
  return Math.min(a, b);
}

/** `awaits`: the worker it waits for, where none is heard of. */
function printChange(run: Run, awaits: string | null): void {
  const facts = [
    run.runId,
    run.state.padEnd(9),
    `scheduled ${showUtc(run.scheduledAt)}`,
    !WAITING.includes(run.state) || run.heldBy === null || run.heldBy === "none" ? "" : `held by ${run.heldBy}`,
    awaits === null ? "" : `waits for ${awaits}`,
    run.attempt > 0 ? `attempt ${run.attempt}` : "",
    run.worker === null ? "" : `on ${run.worker}`,
    run.callbackDueAt === null ? "" : `detached, its callback due by ${showUtc(run.callbackDueAt)}`,
    run.finishedAt === null ? "" : `ended ${showUtc(run.finishedAt)}`,
    run.skipReason ?? "",
    run.error === null ? "" : `${run.error.code}: ${run.error.message}`,
    run.effects.map((one) => `${one.name} ${one.state}`).join(", "),
    run.finishedAt === null && run.cancellationRequested ? "cancellation requested" : "",
  ];
  printLine(visible(facts.filter((fact) => fact !== "").join("  ")));
}
