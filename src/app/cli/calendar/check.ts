import { readFileSync } from "node:fs";
import type { Command } from "commander";
import { messageOf } from "../../../kernel/errors.ts";
import { loadTzCandidate } from "../../tz-data.ts";
import type { Act } from "../act.ts";
import { printJson, printLine, visible } from "../print.ts";
import { EXIT, UsageError } from "../usage.ts";
import { checkVector } from "./vector.ts";

export function checkCommand(group: Command, act: Act): void {
  group
    .command("check <file>")
    .description("compare a file of vectors, one JSON object a line, with what this program computes")
    .option("--json", "print the outcome as JSON, one line")
    .addHelpText(
      "after",
      `
Needs no server and no database. Two kinds of lines:
  {"expr", "tz", "from", "count", "expected": [instants], "expectedShift"?: […], "expectedSkip"?: […]}
  {"expr", "tz", "verdict": "accept" or "reject"}
Six fields mean seconds; expectedShift and expectedSkip are what gap: shift and gap: skip give.
Exit codes: 0 all passed, 1 some failed or cannot be read.`,
    )
    .action(
      act(async (config, options: { json?: boolean }, file: string) => {
        const { zones } = loadTzCandidate(config.PUNCTUAL_ZONEINFO);
        let passed = 0;
        const failures: { line: number; id: string; differences: readonly string[] }[] = [];
        for (const [k, text] of readLines(file).entries()) {
          if (text.trim() === "") continue;
          const { id, differences } = checkVector(text, zones);
          if (differences.length === 0) passed += 1;
          else failures.push({ line: k + 1, id, differences });
        }
        if (options.json) printJson({ passed, failed: failures.length, tzVersion: zones.version, failures });
        else {
          for (const { line, id, differences } of failures) {
            for (const one of differences) printLine(visible(`line ${line}${id === "" ? "" : ` (${id})`}: ${one}`));
          }
          printLine(`${passed} passed, ${failures.length} failed`);
        }
        return failures.length === 0 ? EXIT.ok : EXIT.failed;
      }),
    );
}

function readLines(file: string): string[] {
  try {
    return readFileSync(file, "utf8")
      .replace(/^\uFEFF/, "")
      .split(/\r?\n/);
  } catch (error) {
    throw new UsageError(`<file>: ${file} cannot be read (${messageOf(error)})`);
  }
}
