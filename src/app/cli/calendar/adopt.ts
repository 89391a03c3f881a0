import { userInfo } from "node:os";
import { createInterface } from "node:readline/promises";
import { adoptTzData } from "../../../authority/timezones/adopt.ts";
import { makeKnown } from "../../../authority/timezones/pin-zones.ts";
import { PunctualError } from "../../../kernel/errors.ts";
import type { Config } from "../../config.ts";
import type { Core } from "../../core.ts";
import { printJson, printLine, printNote } from "../print.ts";
import { EXIT, UsageError } from "../usage.ts";
import { documentOf, type Moved, movedByZones, printMoved, type Reading, summaryOf } from "./compare.ts";
import { adoptedZones, versionOf } from "./shadow.ts";
import type { AdoptOptions } from "./tz-commands.ts";
import { withDatabase } from "./with-database.ts";

export async function adopt(config: Config, options: AdoptOptions, version: string): Promise<number> {
  return withDatabase(config, async (core) => {
    const { zones, sha256, bytes } = core.tzCandidate;
    // A release may be asked before it is deployed: what it brings is a candidate from here on.
    await makeKnown(core.authority, { version: zones.version, sha256: Buffer.from(sha256, "hex"), bytes });
    const look = await lookAhead(core, version);
    if (!options.json) {
      if (look === undefined) printNote("The adopted version is broken, so what moves cannot be told.");
      else {
        printMoved(look.moved, look.reading);
        printLine(summaryOf(look.moved));
      }
    }
    const isQuiet = look !== undefined && look.moved.length === 0;
    if (!isQuiet && !options.yes && !(await isConfirmed(options, version))) {
      printNote(`Nothing was adopted. To do it: punctual calendar adopt ${version} --yes`);
      return EXIT.failed;
    }
    const outcome = await adoptTzData(core.authority, { actor: `operator:${userInfo().username}`, version });
    if (outcome.kind === "not-found") {
      throw new UsageError(`<version>: ${version} is not known; allowed: ${outcome.known.join(", ")}`);
    }
    if (options.json) {
      printJson({
        outcome: outcome.kind,
        version,
        moved: look === undefined ? null : documentOf(look.moved, look.reading),
      });
    } else if (outcome.kind === "already-adopted") printLine(`${version} is adopted already.`);
    else
      printLine(
        `${version} is adopted${outcome.before === undefined ? "" : ` in place of ${outcome.before}`}. Processes go by it within seconds.`,
      );
    return EXIT.ok;
  });
}

/** What would move; undefined where the adopted data cannot be opened, which is a reason to adopt other data. */
async function lookAhead(core: Core, version: string): Promise<{ moved: Moved[]; reading: Reading } | undefined> {
  const after = await versionOf(core, "<version>", version);
  try {
    const reading = { before: await adoptedZones(core), after };
    return { moved: await movedByZones(core, reading), reading };
  } catch (error) {
    if (error instanceof PunctualError && error.code === "tz-data-corrupt") return undefined;
    throw error;
  }
}

async function isConfirmed(options: AdoptOptions, version: string): Promise<boolean> {
  if (options.json || !isTerminal()) return false;
  const terminal = createInterface({ input: process.stdin, output: process.stdout });
  try {
    return /^y(es)?$/i.test((await terminal.question(`Adopt ${version}? [y/N] `)).trim());
  } finally {
    terminal.close();
  }
}

function isTerminal(): boolean {
  return process.stdin.isTTY === true && process.stdout.isTTY === true;
}
