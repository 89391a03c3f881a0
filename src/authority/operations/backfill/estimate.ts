import { type BackfillPolicy, faultOfRange, type RangeFault, type RunVerdict } from "../../../domain/backfill.ts";
import { addTally, type Tally } from "../../../domain/operation.ts";
import type { Instant } from "../../../kernel/clock.ts";
import type { Uuid } from "../../../kernel/ids.ts";
import type { Transaction } from "../../../store/database.ts";
import { findSchedule } from "../../../store/reads/schedules.ts";
import { type CursorRow, readCursor } from "../../../store/rows/cursors.ts";
import { readFloor } from "../../../store/rows/floor.ts";
import type { Authority } from "../../authority.ts";
import { judgePast, tallyOf, undecidedFrom, walkOf } from "./past.ts";

/** What a backfill of this range would do, as things stand. */
export type BackfillEstimate = {
  revision: number;
  /** Nominal instants of the rule that were looked at, and how many of them would become runs. */
  instants: number;
  runs: number;
  /** There are more instants than were looked at: all counts are lower bounds. */
  capped: boolean;
  tally: Tally;
  /** First and last instant that would become a run. */
  firstAt: Instant | null;
  lastAt: Instant | null;
  sample: RunVerdict[];
};

export type EstimateOutcome =
  | { kind: "estimated"; estimate: BackfillEstimate }
  | { kind: "invalid"; fault: RangeFault }
  | { kind: "deleted" }
  | { kind: "not-found" };

export type BackfillRange = {
  tenantId: Uuid;
  scheduleId: Uuid;
  fromAt: Instant;
  toAt: Instant;
  policy: BackfillPolicy;
};

const MOST_INSTANTS = 10_000;
const CHUNK = 500;
const SAMPLE = 5;

/** Looks without locks and changes nothing; at most 10,000 instants. Throws `invalid-rule` as a step would. */
export async function estimateBackfill(authority: Authority, range: BackfillRange): Promise<EstimateOutcome> {
  return authority.transact("estimate-backfill", async (tx) => {
    const cursor = await readCursor(tx, range.scheduleId);
    const schedule = await findSchedule(tx, range.tenantId, range.scheduleId);
    if (schedule === undefined || cursor === undefined) return { kind: "not-found" };
    if (schedule.status === "deleted") return { kind: "deleted" };
    const undecidedAt = undecidedFrom(schedule.status, cursor);
    const fault = faultOfRange(range, undecidedAt, await readFloor(tx), await tx.authorityNow());
    if (fault !== undefined) return { kind: "invalid", fault };
    return { kind: "estimated", estimate: await count(authority, tx, cursor, range) };
  });
}

async function count(
  authority: Authority,
  tx: Transaction,
  cursor: CursorRow,
  range: BackfillRange,
): Promise<BackfillEstimate> {
  const { revision, next_run_at: nextRunAt } = cursor;
  const walk = await walkOf(authority, tx, cursor, range.policy);
  const toAt = Math.min(range.toAt, nextRunAt ?? range.toAt);
  const estimate: BackfillEstimate = {
    revision,
    instants: 0,
    runs: 0,
    capped: false,
    tally: {},
    firstAt: null,
    lastAt: null,
    sample: [],
  };
  for (let at: Instant | null = range.fromAt; at !== null; ) {
    if (estimate.instants >= MOST_INSTANTS) return { ...estimate, capped: true };
    const { verdicts, restAt } = await judgePast(authority, tx, walk, at, toAt, CHUNK);
    const runs = verdicts.filter((one): one is RunVerdict => one.kind === "run");
    estimate.instants += verdicts.length;
    estimate.runs += runs.length;
    estimate.tally = addTally(estimate.tally, tallyOf(verdicts));
    estimate.firstAt ??= runs[0]?.at ?? null;
    estimate.lastAt = runs.at(-1)?.at ?? estimate.lastAt;
    estimate.sample.push(...runs.slice(0, SAMPLE - estimate.sample.length));
    at = restAt;
  }
  return estimate;
}
