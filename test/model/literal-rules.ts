import type { Rule } from "../../src/domain/recurrence/rule.ts";

/**
 * Rules, and what they say in so many words: every candidate of a grid is asked whether it is an instant. Slow, plain, and
 * with nothing in common with what it checks.
 */
export type LiteralRule = { rule: Rule; stepMs: number; names(at: number): boolean };

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

const minuteOf = (at: number) => Math.floor(at / MINUTE) % 60;
const cron = (expression: string, zone = "Etc/UTC") => ({ kind: "cron", expression, zone }) as const;
const NEW_YORK = new Intl.DateTimeFormat("en-US", {
  timeZone: "America/New_York",
  weekday: "short",
  hour: "2-digit",
  hourCycle: "h23",
});

/** `chance` is uniform in [0, 1); `now` is where instants of its own are put near to. */
export function pickRule(chance: () => number, now: number): LiteralRule {
  const minute = Math.floor(now / MINUTE) * MINUTE;
  const kinds: (() => LiteralRule)[] = [
    () => ({ rule: cron("* * * * *"), stepMs: MINUTE, names: () => true }),
    () => ({ rule: cron("*/5 * * * *"), stepMs: MINUTE, names: (at) => minuteOf(at) % 5 === 0 }),
    // Kolkata is half an hour apart, and 7 + 30 is 37.
    () => ({ rule: cron("7,37 * * * *", "Asia/Kolkata"), stepMs: MINUTE, names: (at) => minuteOf(at) % 30 === 7 }),
    () => ({
      rule: cron("15 9,14 * * 1-5", "America/New_York"),
      stepMs: MINUTE,
      names: (at) => minuteOf(at) === 15 && /^(Mon|Tue|Wed|Thu|Fri),? (09|14)$/.test(NEW_YORK.format(at)),
    }),
    () => ({
      rule: { kind: "cron", expression: "*/20 * * * * *", zone: "Etc/UTC", seconds: true },
      stepMs: 20 * SECOND,
      names: () => true,
    }),
    () => {
      const everyMs = (1 + Math.floor(chance() * 90)) * 30 * SECOND;
      const anchorAt = minute + Math.floor((chance() - 0.5) * 240) * 30 * SECOND;
      return {
        rule: { kind: "interval", everyMs, anchorAt },
        stepMs: 30 * SECOND,
        names: (at) => at >= anchorAt && (at - anchorAt) % everyMs === 0,
      };
    },
    () => {
      const dates = [5, 7, 60, 61, 600, 1500].map((after) => minute + Math.ceil(after * (0.5 + chance())) * MINUTE);
      return {
        rule: { kind: "dates", at: dates.map((at) => new Date(at).toISOString()) },
        stepMs: MINUTE,
        names: (at) => dates.includes(at),
      };
    },
    () => {
      const anchorAt = minute - 3 * MINUTE;
      return {
        rule: { kind: "anyOf", rules: [cron("*/15 * * * *"), { kind: "interval", everyMs: 10 * MINUTE, anchorAt }] },
        stepMs: MINUTE,
        names: (at) => minuteOf(at) % 15 === 0 || (at >= anchorAt && (at - anchorAt) % (10 * MINUTE) === 0),
      };
    },
  ];
  return kinds[Math.floor(chance() * kinds.length)]!();
}

/** Every instant later than `afterAt`, up to `untilAt`. */
export function instantsBetween(
  rule: LiteralRule & { startAt?: number | undefined; endAt?: number | undefined },
  afterAt: number,
  untilAt: number,
): number[] {
  const found: number[] = [];
  for (let at = (Math.floor(afterAt / rule.stepMs) + 1) * rule.stepMs; at <= untilAt; at += rule.stepMs) {
    if (rule.startAt !== undefined && at < rule.startAt) continue;
    if (rule.endAt !== undefined && at >= rule.endAt) break;
    if (rule.names(at)) found.push(at);
  }
  return found;
}

export const SPAN = { SECOND, MINUTE, HOUR, DAY } as const;
