import type { Command } from "commander";
import { ruleProblem } from "../../api/input/check-work.ts";
import { presentTiming } from "../../api/present/preview.ts";
import { ApiProblem } from "../../client/errors.ts";
import { previewOf } from "../../domain/preview/answer.ts";
import { timetableOf } from "../../domain/preview/timetable.ts";
import { compileRule } from "../../domain/recurrence/compile.ts";
import type { CronRule } from "../../domain/recurrence/rule.ts";
import type { ZoneSource } from "../../domain/recurrence/zone-source.ts";
import { systemClock } from "../../kernel/clock.ts";
import { loadTzCandidate } from "../tz-data.ts";
import type { Act } from "./act.ts";
import { printJson, printLine, printNote, printTable, visible } from "./print.ts";
import { UsageError } from "./usage.ts";
import { showUtc } from "./words.ts";

type PreviewOptions = {
  tz: string;
  from?: string;
  count: string;
  seconds?: boolean;
  gap?: string;
  overlap?: string;
  json?: boolean;
};

const MOST = 1000;
/** In the rule as the API takes it, and here. */
const SET_SECONDS = "set `seconds: true`";
const USE_SECONDS = "set `--seconds`";

export function previewCommand(program: Command, act: Act): void {
  program
    .command("preview <expression>")
    .description("say when a cron expression would run, by the tz data of this program")
    .option("--tz <zone>", "whose clock: an IANA zone, such as America/New_York", "UTC")
    .option("--from <instant>", "instants later than this, such as 2026-10-01T00:00:00Z (default: now)")
    .option("--count <n>", `how many, 1 to ${MOST}`, "5")
    .option("--seconds", "six fields, the first of them seconds")
    .option("--gap <policy>", "what becomes of a skipped time: first, shift or skip")
    .option("--overlap <policy>", "which pass of a repeated time runs: first, last or both")
    .option("--json", "print it as the API's preview does, one line; errors too")
    .addHelpText(
      "after",
      `
Needs no server and no database. A running system goes by the tz data it has adopted; the last line names the one used here.

Example:
  punctual preview "30 2 * * *" --tz America/New_York --from 2026-03-07T00:00:00Z --count 3`,
    )
    .action(
      act(async (config, options: PreviewOptions, expression: string) => {
        const { zones } = loadTzCandidate(config.PUNCTUAL_ZONEINFO);
        const rule = ruleOf(expression, options);
        const question = { fromAt: readFrom(options.from), count: readCount(options.count) };
        const compiled = compileRule(rule, zones);
        if (!compiled.ok) throw refusal(compiled.fault, rule, zones);
        const preview = previewOf({ rule }, timetableOf(compiled.rule, {}), zones, question);
        const shown = presentTiming(preview);
        if (options.json) return printJson({ ...shown, tzVersion: zones.version });
        printPreview(shown, zones.version);
      }),
    );
}

function printPreview(shown: ReturnType<typeof presentTiming>, tzVersion: string): void {
  printLine(visible(shown.description));
  for (const warning of shown.warnings) printLine(`Warning: ${visible(warning)}`);
  printLine("");
  if (shown.instants.length === 0) printNote("No instant from there on.");
  else {
    printTable(
      ["LOCAL", "OFFSET", "UTC", "TOUCHED BY"],
      shown.instants.map(({ at, local, offset, label }) => [
        local.slice(0, 19).replace("T", " "),
        offset,
        showUtc(at),
        label ?? "",
      ]),
    );
  }
  for (const note of shown.notes) printLine(`Left out: ${visible(note.text)}`);
  printLine(`By tz database ${tzVersion}`);
}

function ruleOf(expression: string, { tz, seconds, gap, overlap }: PreviewOptions): CronRule {
  return {
    kind: "cron",
    expression,
    zone: tz,
    ...(seconds === true ? { seconds } : {}),
    ...(gap === undefined ? {} : { gap: readChoice("--gap", gap, ["first", "shift", "skip"] as const) }),
    ...(overlap === undefined ? {} : { overlap: readChoice("--overlap", overlap, ["first", "last", "both"] as const) }),
  };
}

/** As the API would refuse it; the fields of an expression are named without the rule that holds them. */
function refusal(fault: Parameters<typeof ruleProblem>[0], rule: CronRule, zones: ZoneSource): ApiProblem {
  const problem = ruleProblem(fault, rule, zones);
  const errors = problem.errors.map((one) => ({
    ...one,
    field: one.field.replace(/^rule\./, ""),
    ...(one.didYouMean?.startsWith(SET_SECONDS) && { didYouMean: one.didYouMean.replace(SET_SECONDS, USE_SECONDS) }),
  }));
  return new ApiProblem({ status: 400, code: problem.code, detail: problem.message, errors });
}

function readChoice<Choice extends string>(option: string, text: string, allowed: readonly Choice[]): Choice {
  const found = allowed.find((one) => one === text);
  if (found === undefined) throw new UsageError(`${option}: found "${text}"; allowed: ${allowed.join(", ")}`);
  return found;
}

const INSTANT = /^\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:[Zz]|[+-]\d\d:\d\d)$/;

function readFrom(text: string | undefined): number {
  if (text === undefined) return systemClock.now();
  const at = INSTANT.test(text) ? Date.parse(text.replace(" ", "T")) : Number.NaN;
  if (Number.isFinite(at)) return at;
  throw new UsageError(
    `--from: found "${text}"; allowed: an RFC 3339 instant with an offset, such as 2026-10-01T09:00:00Z`,
  );
}

function readCount(text: string): number {
  const count = Number(text);
  if (/^\d{1,4}$/.test(text) && count >= 1 && count <= MOST) return count;
  throw new UsageError(`--count: found "${text}"; allowed: a whole number from 1 to ${MOST}`);
}
