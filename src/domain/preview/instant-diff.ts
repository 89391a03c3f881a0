/** What a change of timetable does to instants: exact for each, since membership is asked of the rules themselves. */
import type { Instant } from "../../kernel/clock.ts";
import { dueAtOf, nextNominal, placeRun, type Timetable } from "./timetable.ts";
import { upcomingRuns } from "./upcoming.ts";

export type NextInstants = {
  /** Next runs of both; `movedFrom` where the same nominal instant was due at another time. */
  readonly stay: readonly { readonly at: Instant; readonly movedFrom?: Instant; readonly movedTo?: Instant }[];
  /** Next runs of the old timetable that the new one has not. */
  readonly vanish: readonly Instant[];
  /** Next runs of the new timetable that the old one had not. */
  readonly appear: readonly Instant[];
};

/** Compares the next `count` runs of each after `fromAt`. */
export function compareNext(before: Timetable, after: Timetable, fromAt: Instant, count: number): NextInstants {
  const olds = upcomingRuns(before, fromAt, count).runs;
  const news = upcomingRuns(after, fromAt, count).runs;
  const stay = new Map<Instant, { at: Instant; movedFrom?: Instant; movedTo?: Instant }>();
  for (const { at } of [...olds, ...news]) {
    const [old, now] = [dueAtOf(before, at), dueAtOf(after, at)];
    if (old === undefined || now === undefined) continue;
    stay.set(at, old === now ? { at } : { at, movedFrom: old, movedTo: now });
  }
  const isOne = ({ at }: { at: Instant }) => !stay.has(at);
  return {
    stay: [...stay.values()].sort((a, b) => a.at - b.at),
    vanish: olds.filter(isOne).map(({ at }) => at),
    appear: news.filter(isOne).map(({ at }) => at),
  };
}

/** The first few, and how many there are up to `comparedUntil`. */
export type InstantSet = { readonly count: number; readonly first: readonly Instant[] };

export type StretchDiff = {
  readonly gained: InstantSet;
  readonly lost: InstantSet;
  readonly moved: InstantSet;
  readonly kept: number;
  /** Exclusive; earlier than asked for where there were too many instants to look at. */
  readonly comparedUntil: Instant;
};

const SHOWN_AT_MOST = 50;
/** Work (see `placeRun`) of one comparison, both timetables together: 0.2 s at the most. */
const WORK_AT_MOST = 20_000;

/** Compares all runs whose nominal instants lie in `fromAt` < t < `untilAt`. */
export function compareBetween(
  before: Timetable,
  after: Timetable,
  fromAt: Instant,
  untilAt: Instant,
  workAtMost: number = WORK_AT_MOST,
): StretchDiff {
  const sets = { gained: [] as Instant[], lost: [] as Instant[], moved: [] as Instant[], kept: [] as Instant[] };
  let old = nextNominal(before, fromAt);
  let now = nextNominal(after, fromAt);
  let at = fromAt;
  let work = 0;
  for (;;) {
    at = Math.min(old ?? untilAt, now ?? untilAt);
    if (at >= untilAt || work >= workAtMost) break;
    const placed = [old === at ? placeRun(before, at) : undefined, now === at ? placeRun(after, at) : undefined];
    const [was, is] = placed.map((one) => one?.due?.dueAt);
    for (const one of placed) work += one?.work ?? 0;
    if (was !== undefined || is !== undefined) setOf(sets, was, is).push(at);
    if (old === at) old = nextNominal(before, at);
    if (now === at) now = nextNominal(after, at);
  }
  const shown = (all: readonly Instant[]) => ({ count: all.length, first: all.slice(0, SHOWN_AT_MOST) });
  return {
    gained: shown(sets.gained),
    lost: shown(sets.lost),
    moved: shown(sets.moved),
    kept: sets.kept.length,
    comparedUntil: Math.min(at, untilAt),
  };
}

function setOf<Set>(
  sets: { readonly gained: Set; readonly lost: Set; readonly moved: Set; readonly kept: Set },
  was: Instant | undefined,
  is: Instant | undefined,
): Set {
  if (was === undefined) return sets.gained;
  if (is === undefined) return sets.lost;
  return was === is ? sets.kept : sets.moved;
}
