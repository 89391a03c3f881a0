import type { Command } from "commander";
import type { Operation, OperationState, Operations } from "../../../client/operations.ts";
import { systemClock } from "../../../kernel/clock.ts";
import type { Act } from "../act.ts";
import { deadlineIn, readWhole } from "../deadline.ts";
import { printJson, printLine, printNote, visible } from "../print.ts";
import { type ClientOptions, clientFor, withClientOptions } from "../target.ts";
import { EXIT } from "../usage.ts";
import { showUtc } from "../words.ts";
import { showProgress } from "./operations.ts";

/** The same numbers as of `runs watch`. */
const EXIT_OF: Readonly<Partial<Record<OperationState, number>>> = { failed: 3, canceled: 4 };
const STILL_OPEN = 6;
const NAP_MS = 1_000;

export function watchOperationCommand(group: Command, act: Act): void {
  withClientOptions(
    group.command("watch <operation>").description("follow an operation until it has ended; the exit code tells how"),
  )
    .option("--timeout <seconds>", "stop watching after so long")
    .addHelpText("after", "\nExit codes: 0 done, 3 failed, 4 canceled, 6 still open at the timeout.")
    .action(
      act(async (config, { timeout, ...options }: ClientOptions & { timeout?: string }, id: string) => {
        const untilMs = timeout === undefined ? Number.POSITIVE_INFINITY : readWhole("--timeout", timeout, 1e6) * 1000;
        const exitCode = await watchOperation(clientFor(options, config).operations, id, options, untilMs);
        if (exitCode === STILL_OPEN && !options.json) {
          printNote(`Still open after ${timeout} s (exit code ${STILL_OPEN}).`);
        }
        return exitCode;
      }),
    );
}

/** Shows each change of an operation until it has ended, or for so long; answers the exit code that tells how. */
export async function watchOperation(
  operations: Pick<Operations, "get">,
  id: string,
  { json }: Pick<ClientOptions, "json">,
  untilMs = Number.POSITIVE_INFINITY,
): Promise<number> {
  const show = json ? printJson : printChange;
  const deadline = deadlineIn(untilMs, systemClock);
  let before = "";
  for (;;) {
    const operation = await operations.get(id);
    const now = `${operation.state} ${operation.done} ${operation.failed} ${operation.message}`;
    if (now !== before) show(operation);
    before = now;
    if (operation.finishedAt !== null) return EXIT_OF[operation.state] ?? EXIT.ok;
    if (deadline.passed()) return STILL_OPEN;
    await deadline.nap(NAP_MS);
  }
}

function printChange(operation: Operation): void {
  const facts = [
    operation.operationId,
    operation.state.padEnd(8),
    showProgress(operation),
    operation.finishedAt === null ? "" : `ended ${showUtc(operation.finishedAt)}`,
    operation.message ?? "",
  ];
  printLine(visible(facts.filter((fact) => fact !== "").join("  ")));
}
