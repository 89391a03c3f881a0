/**
 * The last line of a TZif file: a POSIX TZ string such as `EST5EDT,M3.2.0,M11.1.0` or `<-02>2<-01>,M3.5.0/-1,M10.5.0/0`,
 * which says how the zone goes on after its last listed transition (RFC 9636 §3.3.1).
 */
import { DAY_SECONDS, dayOf, isLeapYear, monthLength, weekdayOf } from "./civil.ts";

/** When in a year a change happens: wall seconds after midnight of a day, which may be negative or beyond one day. */
type YearlyDate =
  | { readonly form: "month"; readonly month: number; readonly week: number; readonly weekday: number }
  | { readonly form: "julian"; readonly day: number }
  | { readonly form: "ordinal"; readonly day: number };
type YearlyChange = { readonly date: YearlyDate; readonly timeSeconds: number };

/** Offsets are seconds east of UTC. `summer` is absent where the zone no longer changes. */
export type TzRule = {
  readonly standardOffset: number;
  readonly summer?: { readonly offset: number; readonly starts: YearlyChange; readonly ends: YearlyChange };
};

export type Transition = { readonly at: number; readonly offset: number };

const NAME = "(?:[A-Za-z]{3,}|<[A-Za-z0-9+-]{3,}>)";
const CLOCK = "[+-]?\\d{1,3}(?::\\d{1,2}(?::\\d{1,2})?)?";
const SHAPE = new RegExp(`^${NAME}(${CLOCK})(?:${NAME}(${CLOCK})?,([^,]+),([^,]+))?$`);

/** Parses a TZ string. Throws on anything else: the data file is broken, and only an operator can mend it. */
export function parseTzRule(text: string): TzRule {
  const parts = SHAPE.exec(text);
  if (parts === null) throw new Error(`The time zone data holds an unreadable TZ string: ${JSON.stringify(text)}`);
  const standardOffset = 0 - clockSeconds(parts[1]!); // POSIX counts westward; 0 - x keeps -0 away
  if (parts[3] === undefined) return { standardOffset };
  const offset = parts[2] === undefined ? standardOffset + 3600 : 0 - clockSeconds(parts[2]);
  return { standardOffset, summer: { offset, starts: yearlyChange(parts[3]), ends: yearlyChange(parts[4]!) } };
}

/** The changes of one year in order; `at` is epoch seconds. Empty where the rule has no summer time. */
export function transitionsOfYear(rule: TzRule, year: number): readonly Transition[] {
  if (rule.summer === undefined) return [];
  const { offset, starts, ends } = rule.summer;
  const start = { at: changeWall(starts, year) - rule.standardOffset, offset };
  const end = { at: changeWall(ends, year) - offset, offset: rule.standardOffset };
  return start.at <= end.at ? [start, end] : [end, start];
}

function clockSeconds(text: string): number {
  const [hours = "0", minutes = "0", seconds = "0"] = text.replace(/^[+-]/, "").split(":");
  const size = Number(hours) * 3600 + Number(minutes) * 60 + Number(seconds);
  return text.startsWith("-") ? -size : size;
}

function yearlyChange(text: string): YearlyChange {
  const [date = "", time] = text.split("/");
  return { date: yearlyDate(date), timeSeconds: time === undefined ? 7200 : clockSeconds(time) };
}

function yearlyDate(text: string): YearlyDate {
  const month = /^M(\d{1,2})\.(\d)\.(\d)$/.exec(text);
  if (month !== null) {
    return { form: "month", month: Number(month[1]), week: Number(month[2]), weekday: Number(month[3]) };
  }
  const day = /^(J?)(\d{1,3})$/.exec(text);
  if (day === null) throw new Error(`The time zone data holds an unreadable yearly date: ${JSON.stringify(text)}`);
  return { form: day[1] === "J" ? "julian" : "ordinal", day: Number(day[2]) };
}

function changeWall(change: YearlyChange, year: number): number {
  return yearlyDay(change.date, year) * DAY_SECONDS + change.timeSeconds;
}

function yearlyDay(date: YearlyDate, year: number): number {
  if (date.form === "ordinal") return dayOf(year, 1, 1) + date.day;
  if (date.form === "julian") return dayOf(year, 1, 1) + date.day - 1 + (isLeapYear(year) && date.day >= 60 ? 1 : 0);
  const first = dayOf(year, date.month, 1);
  const inMonth = ((date.weekday - weekdayOf(first) + 7) % 7) + (date.week - 1) * 7;
  return first + (inMonth < monthLength(year, date.month) ? inMonth : inMonth - 7); // week 5 is "the last"
}
