import type { Command } from "commander";
import type { LettersAnswer, LettersRequest } from "../../../client/dead-letters.ts";
import type { Act } from "../act.ts";
import { readWhole } from "../deadline.ts";
import { showCounts } from "../operations/operations.ts";
import { watchOperation } from "../operations/watch-operation.ts";
import { printFields, printJson, printLine } from "../print.ts";
import { type ClientOptions, clientFor, withClientOptions } from "../target.ts";
import { UsageError } from "../usage.ts";
import { showCount } from "../words.ts";
import { type FilterOptions, filterOf, filterOptions, printLetters } from "./letters.ts";

type Options = ClientOptions &
  FilterOptions & { all?: boolean; note?: string; pace?: string; run?: boolean; watch?: boolean };

const MOST_PACE = 1_000;

/** One run by its id; with --all those that fit, for which it only says what would be done until --run. */
export function decideCommands(group: Command, act: Act): void {
  decideCommand(group.command("replay [run]"), act, "replay", "run it again; with --all, what is open and fits").option(
    "--pace <n>",
    "with --all: most runs a second, 1 to 1000 (default: 10)",
  );
  decideCommand(group.command("dismiss [run]"), act, "dismiss", "resolve it without running anything");
}

function decideCommand(command: Command, act: Act, verb: "replay" | "dismiss", description: string): Command {
  return filterOptions(withClientOptions(command.description(description)))
    .option("--all", "not one run: all open ones that fit the options above")
    .option("--note <text>", "why, for the history")
    .option("--run", "with --all: not only say it, do it")
    .option("--watch", "with --all and --run: follow it until it has ended")
    .action(
      act(async (config, options: Options, argument: string) => {
        const { deadLetters, operations } = clientFor(options, config);
        const run = readRun(options, argument);
        if (run !== undefined) {
          const decided =
            verb === "replay"
              ? await deadLetters.replay(run, options.note)
              : await deadLetters.dismiss(run, options.note);
          if (options.json) return printJson(decided);
          if (verb === "replay") return printLine(`${run} is ${decided.state}; follow it: punctual runs watch ${run}`);
          return printLine(`${run} is dismissed; it stays failed`);
        }
        const request = requestOf(options);
        const answer =
          verb === "replay" ? await deadLetters.replayMany(request) : await deadLetters.dismissMany(request);
        if (options.json) printJson(answer);
        else printAnswer(answer);
        if (answer.operation === null || !options.watch) return;
        return watchOperation(operations, answer.operation.operationId, { json: options.json === true });
      }),
    );
}

/** Undefined: --all. */
function readRun(options: Options, argument: string): string | undefined {
  if (options.all !== (argument === "" ? true : undefined)) {
    throw new UsageError(
      argument === "" ? "name a run, or say --all" : "name a run or say --all; found both, and one of them is too much",
    );
  }
  if (options.all) return undefined;
  const { note: _note, json: _json, url: _url, key: _key, ...rest } = options;
  const [stray] = Object.keys(rest);
  if (stray !== undefined) throw new UsageError(`--${stray}: is for --all; one run is named by its id alone`);
  return argument;
}

function requestOf(options: Options): LettersRequest {
  const { note, pace, run } = options;
  if (options.watch && !run) throw new UsageError("--watch: needs --run; without it there is nothing to follow");
  return {
    filter: filterOf(options),
    dryRun: run !== true,
    ...(pace === undefined ? {} : { pacePerSecond: readWhole("--pace", pace, MOST_PACE) }),
    ...(note === undefined ? {} : { reason: note }),
  };
}

function printAnswer({ plan, operation }: LettersAnswer): void {
  if (plan !== null) {
    printFields({
      "dead letters": showCount(plan.letters),
      "would be": showCounts(plan.counts),
      takes: plan.estimatedSeconds === 0 ? null : `${plan.estimatedSeconds} s at this pace`,
    });
    if (operation === null && plan.sample.length > 0) {
      printLine("");
      printLetters(plan.sample);
    }
  }
  if (operation === null) printLine("Nothing was changed; --run does it.");
  else printLine(`Began ${operation.operationId}; follow it: punctual operations watch ${operation.operationId}`);
}
