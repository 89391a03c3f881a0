import type { Queryable } from "../../store/database.ts";
import {
  type DoubtfulEffect,
  type DoubtfulRun,
  findDoubtfulEffects,
  findDoubtfulRuns,
  findNewestRecovery,
  type Identity,
  type Recovery,
  readIdentity,
  readRecorded,
} from "../../store/rows/recovery.ts";

/** What differs between the server that answers and the recorded one, as people name it. */
export type Difference = "system" | "timeline" | "database";

export type Doubts = {
  epoch: number;
  differences: Difference[];
  runs: DoubtfulRun[];
  effects: DoubtfulEffect[];
  /** There may be more of them than these. */
  isCapped: boolean;
  newest: Recovery | undefined;
};

const MOST = 1_000;

/** What an operator has to know before work goes on; looks without locks and changes nothing. */
export async function findDoubts(db: Queryable, limit = MOST): Promise<Doubts> {
  const recorded = (await readRecorded(db))!;
  const runs = await findDoubtfulRuns(db, limit);
  const effects = await findDoubtfulEffects(db, limit);
  return {
    epoch: recorded.epoch,
    differences: differencesOf(recorded, await readIdentity(db)),
    runs,
    effects,
    isCapped: runs.length === limit || effects.length === limit,
    newest: await findNewestRecovery(db),
  };
}

export function differencesOf(recorded: Identity, here: Identity): Difference[] {
  const differs: Difference[] = [];
  if (recorded.systemId !== here.systemId) differs.push("system");
  if (recorded.timeline !== here.timeline) differs.push("timeline");
  if (recorded.databaseId !== null && recorded.databaseId !== here.databaseId) differs.push("database");
  return differs;
}

/** `3 runs and 1 effect are in doubt`. */
export function showDoubts({ runs, effects, isCapped }: Doubts): string {
  const count = (n: number, what: string) => `${n} ${what}${n === 1 ? "" : "s"}`;
  return `${count(runs.length, "run")} and ${count(effects.length, "effect")}${isCapped ? " or more" : ""} are in doubt`;
}
