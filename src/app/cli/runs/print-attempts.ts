import type { Attempt } from "../../../client/types.ts";
import { printLine, printTable } from "../print.ts";
import { showUtc } from "../words.ts";

export function printAttempts(attempts: readonly Attempt[]): void {
  if (attempts.length === 0) return;
  printLine("");
  printTable(
    ["ATTEMPT", "OUTCOME", "STARTED (UTC)", "ENDED", "WORKER", "ERROR"],
    attempts.map((one) => [
      String(one.attempt),
      one.outcome,
      showUtc(one.startedAt),
      showUtc(one.endedAt),
      one.worker,
      one.error === null ? "" : `${one.error.code}: ${one.error.message}`,
    ]),
  );
}
