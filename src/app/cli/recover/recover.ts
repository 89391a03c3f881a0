import { userInfo } from "node:os";
import { type Doubts, findDoubts } from "../../../authority/recovery/doubts.ts";
import { putRight } from "../../../authority/recovery/put-right.ts";
import { type RecoverOutcome, recoverAuthority } from "../../../authority/recovery/recover.ts";
import { renewRedisEpoch } from "../../../hints/epoch.ts";
import { messageOf } from "../../../kernel/errors.ts";
import type { Config } from "../../config.ts";
import type { Core } from "../../core.ts";
import { printJson, printLine, printNote } from "../print.ts";
import { EXIT, UsageError } from "../usage.ts";
import { documentOfDoubts, printDoubts } from "./show.ts";
import { withServers } from "./with-servers.ts";

export type RecoverOptions = {
  yes?: boolean;
  reason?: string;
  anyway?: boolean;
  nothingLost?: boolean;
  json?: boolean;
};

/** Shows what is in doubt; with `--yes`, makes this server the authority and puts right what follows. */
export async function recover(config: Config, options: RecoverOptions): Promise<number> {
  if (options.yes && !options.reason) {
    throw new UsageError("--reason: is missing; allowed: a sentence that says what was restored, and from when");
  }
  return withServers(config, async (core) => {
    const doubts = await findDoubts(core.db);
    const isNeeded = doubts.differences.length > 0 || options.anyway === true;
    if (!options.json) printDoubts(doubts, options);
    if (!options.yes) {
      if (options.json) printJson({ outcome: isNeeded ? "needed" : "not-needed", ...documentOfDoubts(doubts) });
      else if (isNeeded) printNote('Nothing was changed. To go on from here: punctual recover --yes --reason "…"');
      return isNeeded ? EXIT.failed : EXIT.ok;
    }
    return goOn(core, options, doubts);
  });
}

async function goOn(core: Core, options: RecoverOptions, doubts: Doubts): Promise<number> {
  const outcome = await recoverAuthority(core.authority, {
    actor: `operator:${userInfo().username}`,
    reason: options.reason!,
    anyway: options.anyway ?? false,
    nothingLost: options.nothingLost ?? false,
  });
  const hints = await forgetHints(core);
  // Also when another recovery has been broken off after its epoch: then this is its end.
  const tally = outcome.kind === "recovered" || outcome.unfinished ? await putRight(core.authority, outcome.epoch) : {};
  if (options.json)
    printJson({ outcome: outcome.kind, epoch: outcome.epoch, hints, tally, ...documentOfDoubts(doubts) });
  else printOutcome(outcome, hints, tally);
  return EXIT.ok;
}

/** Hints carry the epoch, so old ones are only slow. A Redis that does not answer now is asked by the sweeper later. */
async function forgetHints(core: Core): Promise<string> {
  if (core.redis === undefined) return "no Redis is configured";
  try {
    await core.redis.connection.start();
    await renewRedisEpoch(core.redis.connection);
    return "hints in Redis count for nothing any more; all work is published again";
  } catch (error) {
    return `Redis does not answer (${messageOf(error)}): its old hints are ignored, and the sweeper publishes again`;
  }
}

function printOutcome(outcome: RecoverOutcome, hints: string, tally: Record<string, number>): void {
  if (outcome.kind === "recovered") {
    printLine(
      `Epoch ${outcome.epoch} in place of ${outcome.before}: fences of whatever was lost are refused, and work goes on.`,
    );
    printLine(`${outcome.runs} running attempts have one lease to be heard of; then they are tried again, at no cost.`);
    printLine(`${outcome.effects} effects go on as their onUncertain says.`);
  } else if (outcome.unfinished) printLine(`Epoch ${outcome.epoch} was raised already; what follows is put right now.`);
  else printLine(`Nothing to do: this server is the recorded one, epoch ${outcome.epoch}.`);
  const done = Object.entries(tally).map(([what, count]) => `${what} ${count}`);
  if (done.length > 0) printLine(`Put right: ${done.join(", ")}.`);
  printNote(hints);
}
