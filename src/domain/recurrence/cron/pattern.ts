/**
 * A cron expression as tables, and the search for the next wall time that matches. What days of a month match depends on
 * its length and on the weekday of its first day alone, so there are 28 kinds of month, each a 31-bit mask.
 */
import { DAY_SECONDS, dateOf, dayOf, monthLength, weekdayOf } from "../civil.ts";
import type { CronFields, DayToken } from "./fields.ts";

export type WallPattern = {
  /** Bit m: month m (1–12) matches. */
  readonly months: number;
  /** By `(length - 28) * 7 + weekday of the 1st`; bit d - 1: day d matches. */
  readonly days: readonly number[];
  /** Smallest matching value at or above the index, or -1. */
  readonly nextHour: Int8Array;
  readonly nextMinute: Int8Array;
  readonly nextSecond: Int8Array;
  /** The first matching second of a day. */
  readonly firstSecond: number;
};

/** Months after which the Gregorian calendar repeats: a pattern silent for so long is silent for ever. */
const CYCLE_MONTHS = 400 * 12;

export function makePattern(fields: CronFields): WallPattern {
  const days: number[] = [];
  for (let length = 28; length <= 31; length += 1) {
    for (let weekday = 0; weekday < 7; weekday += 1) days.push(matchingDays(fields, length, weekday));
  }
  const nextHour = ceilings(fields.hour.values, 24);
  const nextMinute = ceilings(fields.minute.values, 60);
  const nextSecond = ceilings(fields.second.values, 60);
  return {
    months: bits(fields.month.values),
    days,
    nextHour,
    nextMinute,
    nextSecond,
    firstSecond: nextHour[0]! * 3600 + nextMinute[0]! * 60 + nextSecond[0]!,
  };
}

/** The smallest matching wall time at or after `from` and before `until` (wall seconds), or `Infinity`. */
export function nextMatch(pattern: WallPattern, from: number, until: number): number {
  const found = nextMatchUnbounded(pattern, from, until);
  return found < until ? found : Number.POSITIVE_INFINITY;
}

export function matches(pattern: WallPattern, wall: number): boolean {
  return nextMatch(pattern, wall, wall + 1) === wall;
}

function nextMatchUnbounded(pattern: WallPattern, from: number, until: number): number {
  const today = Math.floor(from / DAY_SECONDS);
  let { year, month, day } = dateOf(today);
  let firstOfMonth = today - day + 1;
  let length = monthLength(year, month);
  let mask = maskOf(pattern, month, length, firstOfMonth) >>> (day - 1);
  if ((mask & 1) === 1) {
    const second = nextSecondOfDay(pattern, from - today * DAY_SECONDS);
    if (second >= 0) return today * DAY_SECONDS + second;
  }
  mask &= ~1;
  for (let months = 0; months <= CYCLE_MONTHS; months += 1) {
    if (mask !== 0) {
      const matched = firstOfMonth + day - 1 + (31 - Math.clz32(mask & -mask));
      return matched * DAY_SECONDS + pattern.firstSecond;
    }
    firstOfMonth += length;
    if (firstOfMonth * DAY_SECONDS >= until) break;
    day = 1;
    month += 1;
    if (month > 12) {
      month = 1;
      year += 1;
    }
    length = monthLength(year, month);
    mask = maskOf(pattern, month, length, firstOfMonth);
  }
  return Number.POSITIVE_INFINITY;
}

/** Whether any date ever matches. */
export function canMatch(pattern: WallPattern): boolean {
  return nextMatch(pattern, dayOf(2000, 1, 1) * DAY_SECONDS, Number.POSITIVE_INFINITY) !== Number.POSITIVE_INFINITY;
}

function maskOf(pattern: WallPattern, month: number, length: number, firstOfMonth: number): number {
  if (((pattern.months >>> month) & 1) === 0) return 0;
  return pattern.days[(length - 28) * 7 + weekdayOf(firstOfMonth)]!;
}

function nextSecondOfDay(pattern: WallPattern, from: number): number {
  const hour = Math.floor(from / 3600);
  const minute = Math.floor((from - hour * 3600) / 60);
  if (pattern.nextHour[hour] === hour) {
    if (pattern.nextMinute[minute] === minute) {
      const second = pattern.nextSecond[from % 60]!;
      if (second >= 0) return hour * 3600 + minute * 60 + second;
    }
    const later = pattern.nextMinute[minute + 1]!;
    if (later >= 0) return hour * 3600 + later * 60 + pattern.nextSecond[0]!;
  }
  const later = pattern.nextHour[hour + 1]!;
  return later < 0 ? -1 : later * 3600 + pattern.nextMinute[0]! * 60 + pattern.nextSecond[0]!;
}

function matchingDays(fields: CronFields, length: number, firstWeekday: number): number {
  const ofMonth = fields["day-of-month"];
  const ofWeek = fields["day-of-week"];
  const all = length === 31 ? 0x7fffffff : (1 << length) - 1;
  let byMonth = (bits(ofMonth.values) >>> 1) | 0;
  for (const token of ofMonth.tokens) byMonth |= tokenDay(token, length, firstWeekday);
  let byWeek = 0;
  for (const weekday of ofWeek.values) byWeek |= everyWeek(weekday, firstWeekday);
  for (const token of ofWeek.tokens) byWeek |= tokenDay(token, length, firstWeekday);
  // Vixie's rule: two restricted day fields are alternatives; a starred one restricts the other.
  return all & (ofMonth.isStarred || ofWeek.isStarred ? byMonth & byWeek : byMonth | byWeek);
}

/** The token's day in such a month as a mask; 0 where the month has no such day. */
function tokenDay(token: DayToken, length: number, firstWeekday: number): number {
  const day = dayOfToken(token, length, firstWeekday);
  return day >= 1 && day <= length ? 1 << (day - 1) : 0;
}

function dayOfToken(token: DayToken, length: number, firstWeekday: number): number {
  const weekdayOn = (day: number) => (firstWeekday + day - 1) % 7;
  switch (token.form) {
    case "lastDay":
      return length - token.before;
    case "workdayNearest":
      return token.day > length ? 0 : nearestWorkday(token.day, length, weekdayOn(token.day));
    case "lastWorkday":
      return length - [2, 0, 0, 0, 0, 0, 1][weekdayOn(length)]!;
    case "lastWeekday":
      return length - ((weekdayOn(length) - token.weekday + 7) % 7);
    case "nthWeekday":
      return ((token.weekday - firstWeekday + 7) % 7) + 1 + (token.nth - 1) * 7;
  }
}

/** Saturday goes back to Friday and Sunday on to Monday, unless that would leave the month. */
function nearestWorkday(day: number, length: number, weekday: number): number {
  if (weekday === 6) return day === 1 ? 3 : day - 1;
  if (weekday === 0) return day === length ? day - 2 : day + 1;
  return day;
}

function everyWeek(weekday: number, firstWeekday: number): number {
  let mask = 0;
  for (let day = (weekday - firstWeekday + 7) % 7; day < 31; day += 7) mask |= 1 << day;
  return mask;
}

function bits(values: readonly number[]): number {
  let mask = 0;
  for (const value of values) mask |= 1 << value;
  return mask;
}

function ceilings(values: readonly number[], size: number): Int8Array {
  const table = new Int8Array(size + 1).fill(-1);
  let next = -1;
  for (let k = size - 1; k >= 0; k -= 1) {
    if (values.includes(k)) next = k;
    table[k] = next;
  }
  return table;
}
