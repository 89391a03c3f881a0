import type { Instant } from "../../kernel/clock.ts";
import type { Misfire } from "../definition.ts";
import { atNominal, type Place, withOffset } from "../placement.ts";
import type { SkipReason } from "../states.ts";
import { type NextAfter, newestBefore, startOfNewest } from "./look-back.ts";

export type SkippedSpan =
  | { kind: "instant"; at: Instant; reason: SkipReason }
  /** `instants` is null where counting would take too long; the range itself is exact. */
  | { kind: "range"; fromAt: Instant; toAt: Instant; instants: number | null; reason: SkipReason };

/**
 * Missed instants that are being caught up, over as many plans as that takes: those before `untilAt`, of which `done` have
 * run. Those within the grace after it were on time when it began.
 */
export type CatchUp = { untilAt: Instant; done: number; reason: SkipReason };

export type DuePlan = {
  /** Instants to run, in order; `late` ones are catch-up. */
  runs: { at: Instant; dueAt: Instant; late: boolean }[];
  skips: SkippedSpan[];
  /** The first instant after everything above; still due where a plan has reached its bound. */
  next: Instant | null;
  /** The newest nominal instant settled by this plan; null when there was none. */
  lastNominalAt: Instant | null;
  /** Where the plan reached its bound while catching up: what the next plan has to know. */
  catchUp: CatchUp | undefined;
};

export type DueOptions = {
  /** Instants below have no partition any more. */
  floorAt: Instant;
  /** Why missed instants that do not run are skipped. */
  missedReason: SkipReason;
  /**
   * Nothing runs: every instant up to now is a skip for `missedReason`, whatever the policy and however much later it is
   * due (a window, a shift); what a calendar excludes keeps that reason, as in any stretch that is skipped.
   */
  nothingRuns?: boolean;
  /** What each instant comes to, where calendars decide it; by default it is due at its nominal instant. */
  place?: Place;
  /** How long after its placement (ms) an instant is due. */
  offset?: ((at: Instant) => number) | undefined;
  catchUp?: CatchUp | undefined;
  /** Runs that there may still be: the plan ends with the last one. */
  mostRuns?: number;
};

/** Contiguous skipped instants up to this many get a row each; more become one range. */
const ROWS_BEFORE_RANGE = 3;
/** Runs of one plan: a pass stays short, and the cursor, still due, brings the next one. */
const MOST_PER_PLAN = 1_000;
/** Runs of one plan that are catch-up: it is paced, behind all that is on time. */
const MOST_CAUGHT_UP = 250;
/** Instants that one plan decides one by one, run or not. */
const MOST_DECIDED = 5_000;
/** Counting a longer range exactly is left to the background. */
const COUNT_LIMIT = 1_000;
/** Where calendars decide, so many of the newest missed instants are looked at one by one, in pieces of `COUNT_LIMIT`. */
const MOST_PIECES_BACK = 10;

/**
 * Decides every nominal instant from `firstAt` up to `nowAt`, or as many as one plan may. Late by less than the grace
 * (measured from when it is due): simply runs. Beyond it: `latest` runs the newest missed instant that is due at all,
 * unless a newer one runs anyway, `skip` none, `all` the oldest `maxCatchUp`, over as many plans as that takes. What does
 * not run is a skip with a reason, so that no instant goes unaccounted. A long stretch that will not run is jumped over,
 * never walked; its reason is then that it was missed, also for those of its instants that a calendar would have excluded.
 */
export function planDue(
  firstAt: Instant,
  nowAt: Instant,
  policy: Misfire,
  next: NextAfter,
  options: DueOptions,
): DuePlan {
  const draft = new Draft(next, options);
  // Database time carries microseconds, nominal instants are whole: rounded up, "before" means the same for both.
  const lateUntil = Math.ceil(nowAt - policy.graceMs);
  const floorAt = Math.ceil(options.floorAt);
  let at: Instant | null = firstAt;
  let catchUp = options.nothingRuns === true ? undefined : options.catchUp;
  const own = () => (policy.policy === "latest" && draft.runsWithin(lateUntil, nowAt) ? "skip" : policy.policy);

  // No partition holds these instants any more: however few they are, only a range can tell of them.
  if (at < floorAt) at = draft.skipUntil(at, floorAt, "history-floor");
  if (options.nothingRuns === true) {
    const untilAt = Math.floor(nowAt) + 1;
    const all = { untilAt, done: 0, reason: options.missedReason, policy: "skip", most: 0 } as const;
    while (at !== null && at <= nowAt && !draft.isFull()) at = settleMissed(draft, at, all, Number.POSITIVE_INFINITY);
  }
  while (at !== null && at <= nowAt && !draft.isFull()) {
    if (catchUp !== undefined && at >= catchUp.untilAt) {
      // What was on time when the catch-up began is not late because that takes its time.
      if (at <= catchUp.untilAt + policy.graceMs) {
        at = draft.decide(at, Number.NEGATIVE_INFINITY);
        continue;
      }
      catchUp = undefined;
    }
    if (catchUp === undefined && at >= lateUntil) break;
    const missed: Missed =
      catchUp === undefined
        ? { untilAt: lateUntil, done: 0, reason: options.missedReason, policy: own(), most: policy.maxCatchUp }
        : { ...catchUp, policy: "all", most: policy.maxCatchUp };
    at = settleMissed(draft, at, missed);
    const { untilAt, done, reason } = missed;
    catchUp = missed.policy === "all" ? { untilAt, done, reason } : undefined;
  }
  while (at !== null && at <= nowAt && !draft.isFull()) at = draft.decide(at, Number.NEGATIVE_INFINITY);

  return {
    runs: draft.runs,
    skips: draft.skips(),
    next: at,
    lastNominalAt: draft.lastNominalAt,
    catchUp: at !== null && at <= nowAt ? catchUp : undefined,
  };
}

type Missed = CatchUp & { policy: Misfire["policy"]; most: number };

/**
 * Settles the instants before `missed.untilAt`, as far as the plan has room; counts what it catches up in `missed`. Those
 * that are due before `lateUntil` are late.
 */
function settleMissed(draft: Draft, firstAt: Instant, missed: Missed, lateUntil = missed.untilAt): Instant | null {
  let at: Instant | null = firstAt;
  if (missed.policy === "all") {
    while (at !== null && at < missed.untilAt && missed.done < missed.most) {
      if (draft.isFull()) return at;
      const before = draft.late;
      at = draft.decide(at, lateUntil);
      missed.done += draft.late - before;
    }
    if (at === null || at >= missed.untilAt || draft.isFull()) return at;
  }
  const newest = newestDecided(draft, at, missed);
  if (newest.fromAt > at) draft.skipUntil(at, newest.fromAt, missed.reason);
  at = newest.fromAt;
  while (at !== null && at < missed.untilAt && !draft.isFull()) {
    at = draft.decide(at, lateUntil, at === newest.runAt ? undefined : missed.reason);
  }
  return at;
}

/**
 * From which instant on the end of a missed stretch is decided instant by instant, and which of them is the one to run
 * under `latest`. Without calendars every instant but the newest is surely late, so that one is enough: a window ends
 * before the next instant. A calendar may have excluded the newest ones, or moved old ones so far that they are due yet.
 */
function newestDecided(
  draft: Draft,
  knownAt: Instant,
  missed: Missed,
): { fromAt: Instant; runAt: Instant | undefined } {
  if (!draft.hasCalendars) {
    const fromAt = newestBefore(knownAt, missed.untilAt, draft.next);
    return { fromAt, runAt: missed.policy === "latest" ? fromAt : undefined };
  }
  let endAt = missed.untilAt;
  let fromAt = endAt;
  for (let pieces = 0; pieces < MOST_PIECES_BACK && fromAt > knownAt; pieces++) {
    fromAt = startOfNewest(knownAt, endAt, COUNT_LIMIT, draft.next);
    if (missed.policy !== "latest") break;
    let runAt: Instant | undefined;
    for (let at: Instant | null = fromAt; at !== null && at < endAt; at = draft.next(at)) {
      const placed = draft.place(at);
      if (placed.kind === "due" && placed.dueAt < missed.untilAt) runAt = at;
    }
    if (runAt !== undefined) return { fromAt, runAt };
    endAt = fromAt;
  }
  return { fromAt, runAt: undefined };
}

type Skipped = { fromAt: Instant; toAt: Instant; few: Instant[]; instants: number | null; reason: SkipReason };

/** What a plan has decided so far. */
class Draft {
  readonly next: NextAfter;
  readonly hasCalendars: boolean;
  readonly place: Place;
  readonly runs: DuePlan["runs"] = [];
  lastNominalAt: Instant | null = null;
  /** Runs that are catch-up. */
  late = 0;
  readonly #mostRuns: number;
  readonly #spans: Skipped[] = [];
  /** Whether the newest span ends where the next instant begins. */
  #isContiguous = false;
  #decided = 0;

  constructor(next: NextAfter, options: DueOptions) {
    this.next = next;
    this.#mostRuns = Math.min(MOST_PER_PLAN, options.mostRuns ?? MOST_PER_PLAN);
    this.hasCalendars = options.place !== undefined;
    this.place = withOffset(options.place ?? atNominal, options.offset);
  }

  isFull(): boolean {
    return this.runs.length >= this.#mostRuns || this.late >= MOST_CAUGHT_UP || this.#decided >= MOST_DECIDED;
  }

  /** Whether any instant from `fromAt` to `toAt` is due at all. */
  runsWithin(fromAt: Instant, toAt: Instant): boolean {
    let at = this.next(fromAt - 1);
    for (let looks = 0; at !== null && at <= toAt && looks < COUNT_LIMIT; looks++) {
      if (this.place(at).kind === "due") return true;
      at = this.next(at);
    }
    return false;
  }

  /** Decides one instant, which is late if due before `lateUntil`, and then skipped if there is a reason; answers the next. */
  decide(at: Instant, lateUntil: Instant, lateReason?: SkipReason): Instant | null {
    const placed = this.place(at);
    const late = placed.kind === "due" && placed.dueAt < lateUntil;
    if (placed.kind === "skip") this.#skip(at, at, [at], 1, placed.reason);
    else if (late && lateReason !== undefined) this.#skip(at, at, [at], 1, lateReason);
    else {
      this.runs.push({ at, dueAt: placed.dueAt, late });
      this.late += late ? 1 : 0;
      this.#isContiguous = false;
    }
    this.lastNominalAt = at;
    this.#decided++;
    return this.next(at);
  }

  /** Skips all instants before `untilAt`, of which `fromAt` is the first, in one jump; answers the first one after them. */
  skipUntil(fromAt: Instant, untilAt: Instant, reason: SkipReason): Instant | null {
    const few: Instant[] = [];
    let count = 0;
    let last = fromAt;
    let at: Instant | null = fromAt;
    for (; at !== null && at < untilAt && count < COUNT_LIMIT; at = this.next(at)) {
      if (++count <= ROWS_BEFORE_RANGE) few.push(at);
      last = at;
    }
    const counted = at === null || at >= untilAt;
    if (!counted) last = newestBefore(at!, untilAt, this.next);
    this.#skip(fromAt, last, few, counted ? count : null, reason);
    this.lastNominalAt = last;
    return counted ? at : this.next(last);
  }

  skips(): SkippedSpan[] {
    return this.#spans.flatMap(({ fromAt, toAt, few, instants, reason }): SkippedSpan[] =>
      instants !== null && instants <= ROWS_BEFORE_RANGE && reason !== "history-floor"
        ? few.map((at) => ({ kind: "instant", at, reason }))
        : [{ kind: "range", fromAt, toAt, instants, reason }],
    );
  }

  #skip(fromAt: Instant, toAt: Instant, few: Instant[], instants: number | null, reason: SkipReason): void {
    const newest = this.#spans.at(-1);
    if (this.#isContiguous && newest?.reason === reason) {
      newest.toAt = toAt;
      if (newest.few.length < ROWS_BEFORE_RANGE) newest.few.push(...few);
      newest.instants = newest.instants === null || instants === null ? null : newest.instants + instants;
    } else this.#spans.push({ fromAt, toAt, few: [...few], instants, reason });
    this.#isContiguous = true;
  }
}
