import type { Instant } from "../kernel/clock.ts";
import type { Overlap } from "./definition.ts";
import type { Place } from "./placement.ts";
import type { NextAfter } from "./planning/look-back.ts";
import type { RunState, SkipReason } from "./states.ts";

/**
 * What a backfill does with each nominal instant of the past. An instant keeps its identity: a skip that is opened again
 * is the same run, and what runs or has run already is left alone.
 */

/**
 * `missing`: what nobody decided against: instants without a record, and skips because nobody was there (missed, paused,
 * suspended, no quota). `all-skipped`: also what a policy or a calendar left out on purpose.
 */
export const BACKFILL_POLICIES = ["missing", "all-skipped"] as const;
export type BackfillPolicy = (typeof BACKFILL_POLICIES)[number];

const NOBODY_DECIDED: ReadonlySet<SkipReason> = new Set(["misfire", "paused", "quota", "suspended"]);

/** Runs a second where the request names no pace. */
export const DEFAULT_PACE = 10;
export const MOST_PACE = 1_000;

/** What the history says of an instant. */
export type Recorded =
  | { kind: "run"; state: RunState }
  | { kind: "skip"; reason: SkipReason }
  /** Inside a range that its own revision's rule names too. */
  | { kind: "range"; reason: SkipReason; fromAt: Instant };

/** Becomes a run, from what stood there before (undefined: nothing did). */
export type RunVerdict = {
  kind: "run";
  at: Instant;
  dueAt: Instant;
  was: Exclude<Recorded, { kind: "run" }> | undefined;
};

export type Verdict =
  | RunVerdict
  | { kind: "existing"; at: Instant; state: RunState }
  | { kind: "excluded"; at: Instant; reason: SkipReason };

/** Decides one nominal instant. `place` is asked as the calendars stand now. */
export function judgeInstant(
  at: Instant,
  recorded: Recorded | undefined,
  policy: BackfillPolicy,
  place: Place,
): Verdict {
  if (recorded?.kind === "run") return { kind: "existing", at, state: recorded.state };
  const placed = place(at);
  const isWanted = (reason: SkipReason) => policy === "all-skipped" || NOBODY_DECIDED.has(reason);
  if (recorded !== undefined && !isWanted(recorded.reason)) return { kind: "excluded", at, reason: recorded.reason };
  if (placed.kind === "skip") {
    if (!isWanted(placed.reason)) return { kind: "excluded", at, reason: placed.reason };
    return { kind: "run", at, dueAt: at, was: recorded };
  }
  return { kind: "run", at, dueAt: placed.dueAt, was: recorded };
}

/**
 * The rule's instants in [fromAt, toAt), at most `limit`, and the instant to go on from (null: the range is done).
 */
export function walkRange(
  next: NextAfter,
  fromAt: Instant,
  toAt: Instant,
  limit: number,
): { instants: Instant[]; restAt: Instant | null } {
  const instants: Instant[] = [];
  for (let at = next(fromAt - 1); at !== null && at < toAt; at = next(at)) {
    if (instants.length === limit) return { instants, restAt: at };
    instants.push(at);
  }
  return { instants, restAt: null };
}

/** Verdicts in order until one more run would be too many; `leftAt` is then the instant of that run. */
export function takeVerdicts(
  verdicts: readonly Verdict[],
  room: number,
): { taken: Verdict[]; leftAt: Instant | undefined } {
  let runs = 0;
  for (const [k, one] of verdicts.entries()) {
    if (one.kind !== "run") continue;
    if (runs === room) return { taken: verdicts.slice(0, k), leftAt: one.at };
    runs++;
  }
  return { taken: [...verdicts], leftAt: undefined };
}

/** A backfilled run always waits its turn: it replaces, cancels and skips nothing, whatever the schedule's policy. */
export function waitsItsTurn(overlap: Overlap): Overlap {
  return overlap.policy === "allow" ? overlap : { policy: "forbid" };
}

/** Open runs of a schedule beyond which a backfill waits: the tables of what is open stay small. */
export const MOST_OPEN_RUNS = 1_000;

/**
 * How many runs a step may make. The pace is also how many runs of the schedule may wait at once: on-time runs wait
 * behind older ones, so a slow backfill never holds them up for long.
 *
 * @param open   open runs of the schedule, counted up to `MOST_OPEN_RUNS`
 * @param blocked those of them that wait their turn: what a failure holds until the resume holds up nobody
 */
export function roomOfStep(
  overlap: Overlap,
  pacePerSecond: number,
  open: number,
  blocked: number,
  limit: number,
): number {
  const isUnlimited = overlap.policy === "allow" && overlap.limit === undefined;
  const room = isUnlimited ? pacePerSecond : pacePerSecond - blocked;
  return Math.max(0, Math.min(room, MOST_OPEN_RUNS - open, limit, pacePerSecond));
}

/** What is wrong with the bounds of a backfill, in words for whoever sent them. */
export type RangeFault = { field: "from" | "to"; message: string; found: Instant; allowed: string };

/**
 * @param undecidedAt from where on past instants are decided later, by a resume or once the rule can be computed again
 *                    (null: all are decided)
 */
export function faultOfRange(
  range: { fromAt: Instant; toAt: Instant },
  undecidedAt: Instant | null,
  floorAt: Instant,
  nowAt: Instant,
): RangeFault | undefined {
  const { fromAt, toAt } = range;
  const show = (at: Instant) => new Date(at).toISOString();
  if (fromAt >= toAt) {
    return { field: "to", message: "is not after from", found: toAt, allowed: `later than ${show(fromAt)}` };
  }
  if (fromAt < floorAt) {
    const allowed = `${show(Math.ceil(floorAt))} or later`;
    return { field: "from", message: "lies further back than history is kept", found: fromAt, allowed };
  }
  const lastAt = Math.floor(nowAt);
  if (undecidedAt !== null && undecidedAt <= lastAt && toAt > undecidedAt) {
    const message =
      "reaches into what is decided later, when the schedule is resumed or its rule can be computed again";
    return { field: "to", message, found: toAt, allowed: `${show(undecidedAt)} or earlier` };
  }
  if (toAt > lastAt) {
    return { field: "to", message: "does not lie in the past", found: toAt, allowed: `${show(lastAt)} or earlier` };
  }
  return undefined;
}
