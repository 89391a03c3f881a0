import type { Instant } from "../kernel/clock.ts";
import type { Misfire } from "./definition.ts";
import type { SkipReason } from "./states.ts";

/** Answers the first instant of a rule strictly later than its argument, or null when there is none. */
export type NextAfter = (at: Instant) => Instant | null;

export type SkippedSpan =
  | { kind: "instant"; at: Instant; reason: SkipReason }
  /** `instants` is null where counting would take too long; the range itself is exact. */
  | { kind: "range"; fromAt: Instant; toAt: Instant; instants: number | null; reason: SkipReason };

export type DuePlan = {
  /** Instants to run, in order; `late` ones are catch-up. */
  runs: { at: Instant; late: boolean }[];
  skips: SkippedSpan[];
  /** The first instant after everything above; still due where a plan has reached its bound. */
  next: Instant | null;
  /** The newest nominal instant settled by this plan; null when there was none. */
  lastNominalAt: Instant | null;
};

/** Contiguous skipped instants up to this many get a row each; more become one range. */
const ROWS_BEFORE_RANGE = 3;
/** Runs of one plan: a pass stays short, and the cursor, still due, brings the next one. */
const MOST_PER_PLAN = 1_000;
/** Counting a longer range exactly is left to the background. */
const COUNT_LIMIT = 1_000;

/**
 * Decides every nominal instant from `firstAt` up to `nowAt`. Late by less than the grace: simply runs. Beyond it:
 * `latest` runs the newest missed instant, `skip` none, `all` the oldest `maxCatchUp`. What does not run is a skip
 * with a reason, so that no instant goes unaccounted.
 */
export function planDue(
  firstAt: Instant,
  nowAt: Instant,
  policy: Misfire,
  next: NextAfter,
  options: { floorAt: Instant; missedReason: SkipReason },
): DuePlan {
  const plan: DuePlan = { runs: [], skips: [], next: firstAt, lastNominalAt: null };
  // Database time carries microseconds, nominal instants are whole: rounded up, "before" means the same for both.
  const lateUntil = Math.ceil(nowAt - policy.graceMs);
  const floorAt = Math.ceil(options.floorAt);
  let at: Instant | null = firstAt;

  if (at < floorAt) {
    // No partition holds these instants any more: however few they are, only a range can tell of them.
    at = skipSpan(plan, at, floorAt - 1, "history-floor", next, 0);
  }

  if (at !== null && at < lateUntil) {
    if (policy.policy === "all") {
      for (let n = 0; at !== null && at < lateUntil && n < policy.maxCatchUp; n++) {
        plan.runs.push({ at, late: true });
        plan.lastNominalAt = at;
        at = next(at);
      }
      if (at !== null && at < lateUntil) at = skipSpan(plan, at, lateUntil - 1, options.missedReason, next);
    } else if (policy.policy === "latest") {
      const newest = newestBefore(at, lateUntil, next);
      if (newest > at) skipSpan(plan, at, newest - 1, options.missedReason, next);
      plan.runs.push({ at: newest, late: true });
      plan.lastNominalAt = newest;
      at = next(newest);
    } else {
      at = skipSpan(plan, at, lateUntil - 1, options.missedReason, next);
    }
  }

  while (at !== null && at <= nowAt && plan.runs.length < MOST_PER_PLAN) {
    plan.runs.push({ at, late: false });
    plan.lastNominalAt = at;
    at = next(at);
  }
  plan.next = at;
  return plan;
}

/**
 * Records all instants in [fromAt, untilAt] as skipped, of which `fromAt` is the first; answers the first instant
 * after `untilAt`. Up to `mostRows` get a row each, more become one range.
 */
function skipSpan(
  plan: { skips: SkippedSpan[]; lastNominalAt: Instant | null },
  fromAt: Instant,
  untilAt: Instant,
  reason: SkipReason,
  next: NextAfter,
  mostRows: number = ROWS_BEFORE_RANGE,
): Instant | null {
  const instants: Instant[] = [];
  let at: Instant | null = fromAt;
  while (at !== null && at <= untilAt && instants.length < COUNT_LIMIT) {
    instants.push(at);
    at = next(at);
  }
  const counted = at === null || at > untilAt;
  const last = counted ? instants.at(-1)! : newestBefore(at!, untilAt + 1, next);
  if (counted && instants.length <= mostRows) {
    for (const one of instants) plan.skips.push({ kind: "instant", at: one, reason });
  } else {
    plan.skips.push({ kind: "range", fromAt, toAt: last, instants: counted ? instants.length : null, reason });
  }
  plan.lastNominalAt = last;
  return counted ? at : next(last);
}

/**
 * The newest instant in [knownAt, beforeAt), given that `knownAt` is one. Looks back from the end in doubling steps
 * instead of walking a long outage instant by instant.
 */
export function newestBefore(knownAt: Instant, beforeAt: Instant, next: NextAfter): Instant {
  let newest = knownAt;
  for (let backMs = 1000; beforeAt - backMs > knownAt; backMs *= 2) {
    const probe = next(beforeAt - backMs);
    if (probe !== null && probe < beforeAt) {
      newest = probe;
      break;
    }
  }
  for (let at = next(newest); at !== null && at < beforeAt; at = next(newest)) newest = at;
  return newest;
}
