import type { Instant } from "../../kernel/clock.ts";
import type { NextAfter } from "../planning/look-back.ts";
import type { ChainStart } from "./chain.ts";

/**
 * Whether the rules would name the recorded instants again. Only an opinion beside the proof of chain.ts: the tz database
 * has changed since, perhaps, and a rule may not be computable any more.
 */

/** One record, in nominal order; for a single instant both ends are the same. */
export type Link = {
  fromAt: Instant;
  toAt: Instant;
  prevAt: Instant | null;
  revision: number;
  /** Instants of a range; null: not counted. */
  instants: number | null;
};

export type SecondOpinion = {
  verdict: "agrees" | "differs" | "not-applicable";
  /** The first instant that the rule would place elsewhere; null `saysAt`: it names none there. */
  difference: { afterAt: Instant; recordedAt: Instant; saysAt: Instant | null } | null;
};

/** A longer range is looked at from both ends only. */
const MOST_STEPS = 1_000;

/**
 * @param nextOf the rule of a revision; undefined where it names no instants of its own, or cannot be computed
 */
export function recompute(
  links: readonly Link[],
  starts: readonly ChainStart[],
  nextOf: (revision: number) => NextAfter | undefined,
): SecondOpinion {
  let compared = 0;
  for (const link of links) {
    const next = nextOf(link.revision);
    if (next === undefined) continue;
    const startAt = link.prevAt === null ? startOf(link, starts) : link.prevAt;
    const steps = [
      ...(startAt === undefined ? [] : [{ afterAt: startAt, recordedAt: link.fromAt }]),
      ...within(link, next),
    ];
    for (const { afterAt, recordedAt } of steps) {
      compared++;
      const saysAt = next(afterAt);
      if (saysAt !== recordedAt) return { verdict: "differs", difference: { afterAt, recordedAt, saysAt } };
    }
  }
  return { verdict: compared > 0 ? "agrees" : "not-applicable", difference: null };
}

/** A chain's first instant is the first after it started, and after all that the chains before had settled. */
function startOf(link: Link, starts: readonly ChainStart[]): Instant | undefined {
  const n = starts.findLastIndex((one) => one.startedAt < link.fromAt && one.revision <= link.revision);
  if (n === -1) return undefined;
  const settled = starts.slice(0, n + 1).map((one) => one.prevLastAt ?? Number.NEGATIVE_INFINITY);
  return Math.floor(Math.max(starts[n]!.startedAt, ...settled));
}

/** The ends of a range are instants, and if there are few in between, they are as many as was counted. */
function within({ fromAt, toAt, instants }: Link, next: NextAfter): { afterAt: Instant; recordedAt: Instant }[] {
  if (fromAt === toAt) return [];
  const ends = [
    { afterAt: fromAt - 1, recordedAt: fromAt },
    { afterAt: toAt - 1, recordedAt: toAt },
  ];
  if (instants === null || instants > MOST_STEPS) return ends;
  let at: Instant | null = fromAt;
  for (let n = 1; n < instants && at !== null && at < toAt; n++) at = next(at);
  return at === toAt ? ends : [...ends, { afterAt: at ?? fromAt, recordedAt: toAt }];
}
