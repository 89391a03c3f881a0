/** A compiled rule in plain English. Says only what the tables say: a step that does not divide its unit is spelled out. */
import type { CompiledCron, CompiledRule, CompiledSingle } from "./compiled.ts";
import type { CronField, CronFields, DayToken } from "./cron/fields.ts";
import { duration, instant, list, plural, spacing, spans, two } from "./words.ts";

const WEEKDAYS = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"] as const;
const MONTHS = [
  "January",
  "February",
  "March",
  "April",
  "May",
  "June",
  "July",
  "August",
  "September",
  "October",
  "November",
  "December",
] as const;
const ORDINALS = ["", "first", "second", "third", "fourth", "fifth"] as const;
const TIMES_AT_MOST = 6;

/** A short sentence without its full stop, such as "At 09:00 on Monday to Friday, America/New_York time". */
export function describeRule(rule: CompiledRule): string {
  const text = rule.kind === "anyOf" ? rule.rules.map(describeSingle).join("; or ") : describeSingle(rule);
  return text.charAt(0).toUpperCase() + text.slice(1);
}

function describeSingle(rule: CompiledSingle): string {
  switch (rule.kind) {
    case "cron":
      return `${describeTime(rule)}${describeDay(rule)}, ${rule.zone.name} time`;
    case "interval":
      return `every ${duration(rule.everyMs)}, counted from ${instant(rule.anchorAt)}`;
    case "dates": {
      const shown = rule.instants.slice(0, 3).map(instant);
      const rest = rule.instants.length - shown.length;
      return rest === 0
        ? `at ${list(shown)}`
        : `at ${shown.join(", ")} and ${rest} more instant${rest === 1 ? "" : "s"}`;
    }
    case "afterCompletion":
      return `${duration(rule.delayMs)} after the previous run ended`;
  }
}

function describeTime(rule: CompiledCron): string {
  const { second, minute, hour } = rule.fields;
  const count = minute.values.length * hour.values.length * second.values.length;
  if (count <= TIMES_AT_MOST && rule.timing === "fixed") return `at ${list(timesOfDay(rule.fields))}${policies(rule)}`;
  const every = repeated(second, minute, isWhole(hour, 24));
  const hours = isWhole(hour, 24) ? "" : `, ${hourSpans(hour)}`;
  // Written without a star, each time of day is an appointment, which a repeated hour does not repeat.
  return `${every}${hours}${rule.timing === "fixed" ? `, each time of day once${policies(rule)}` : ""}`;
}

function timesOfDay({ second, minute, hour }: CronFields): readonly string[] {
  const isOnTheMinute = second.values.length === 1 && second.values[0] === 0;
  return hour.values.flatMap((h) =>
    minute.values.flatMap((m) => second.values.map((s) => [h, m, ...(isOnTheMinute ? [] : [s])].map(two).join(":"))),
  );
}

function policies({ gap, overlap }: CompiledCron): string {
  const skipped = { first: "", shift: ", later by the shift when clocks skip it", skip: ", not when clocks skip it" };
  const repeats = {
    first: "",
    last: ", the last when clocks repeat it",
    both: ", each time when clocks repeat it",
  };
  return skipped[gap] + repeats[overlap];
}

/** The part of the time below the hour. */
function repeated(second: CronField, minute: CronField, everyHour: boolean): string {
  const minutes = spacing(minute.values, 60);
  const byMinute =
    minutes === 1 ? "every minute" : minutes === undefined ? atMinutes(minute, everyHour) : `every ${minutes} minutes`;
  if (second.values.length === 1 && second.values[0] === 0) return byMinute;
  const seconds = spacing(second.values, 60);
  if (seconds === undefined) {
    return `at second${second.values.length === 1 ? "" : "s"} ${spans(second.values, String)}${across(second, 60, "second", "the minute")}, ${byMinute}`;
  }
  const every = seconds === 1 ? "every second" : `every ${seconds} seconds`;
  return minutes === 1 ? every : `${every} of the minute, ${byMinute}`;
}

function atMinutes(minute: CronField, everyHour: boolean): string {
  if (minute.values.length === 1 && minute.values[0] === 0) return everyHour ? "every hour on the hour" : "on the hour";
  const minutes = `${minute.values.length === 1 ? "minute" : "minutes"} ${spans(minute.values, String)}`;
  return `at ${minutes} of ${everyHour ? "every" : "the"} hour${across(minute, 60, "minute", "the hour")}`;
}

/** A step that does not divide its unit is shorter where the unit begins anew, which people do not expect. */
function across(field: CronField, size: number, unit: string, whole: string): string {
  const { text, values } = field;
  if (!/^(?:\*|\d+)\/\d+$/.test(text) || values.length < 2) return "";
  const [first, last] = [values[0]!, values.at(-1)!];
  const apart = first + size - last;
  return apart === values[1]! - first ? "" : ` (${plural(apart, unit)} across ${whole})`;
}

function describeDay({ fields }: CompiledCron): string {
  const [month, week] = [fields["day-of-month"], fields["day-of-week"]];
  const months = isWhole(fields.month, 12) ? "" : ` in ${spans(fields.month.values, (m) => MONTHS[m - 1]!)}`;
  const byMonth = isWhole(month, 31) ? undefined : dayText(month, (values) => monthDays(values));
  const byWeek = isWhole(week, 7)
    ? undefined
    : dayText(week, (values) => spans(mondayFirst(values), (d) => WEEKDAYS[d]!));
  const isBoth = month.isStarred || week.isStarred;
  // Either field may match where neither is starred, so a field that holds every day makes the other idle.
  if (!isBoth && (byMonth === undefined || byWeek === undefined)) return ` every day${months}`;
  if (byMonth === undefined && byWeek === undefined) return months === "" ? "" : ` every day${months}`;
  if (byMonth === undefined) return ` on ${byWeek}${months}`;
  if (byWeek === undefined) return ` on ${byMonth}${months}`;
  if (!isBoth) return ` on ${byMonth} or on ${byWeek}${months}`;
  const among = month.tokens.length === 0 && month.values.length > 1 ? "one of " : "";
  return ` on ${byWeek}, only where that is also ${among}${byMonth}${months}`;
}

function dayText(field: CronField, values: (values: readonly number[]) => string): string {
  const parts = field.tokens.map(tokenText);
  if (field.values.length > 0) parts.unshift(values(field.values));
  return list(parts);
}

function monthDays(values: readonly number[]): string {
  return `day${values.length === 1 ? "" : "s"} ${spans(values, String)} of the month`;
}

function tokenText(token: DayToken): string {
  switch (token.form) {
    case "lastDay":
      return token.before === 0
        ? "the last day of the month"
        : `the day ${plural(token.before, "day")} before the last of the month`;
    case "workdayNearest":
      return `the weekday nearest day ${token.day} of the month`;
    case "lastWorkday":
      return "the last weekday of the month";
    case "lastWeekday":
      return `the last ${WEEKDAYS[token.weekday]!} of the month`;
    case "nthWeekday":
      return `the ${ORDINALS[token.nth]!} ${WEEKDAYS[token.weekday]!} of the month`;
  }
}

function isWhole(field: CronField, size: number): boolean {
  return field.values.length === size;
}

function hourSpans(hour: CronField): string {
  const step = spacing(hour.values, 24);
  if (step !== undefined) return `in every ${ordinalNumber(step)} hour from midnight`;
  const hours = spans(hour.values, (h) => `${two(h)}:00`);
  return `in the ${hour.values.length === 1 ? "hour" : "hours"} ${hours}${across(hour, 24, "hour", "midnight")}`;
}

function ordinalNumber(n: number): string {
  return n === 2 ? "second" : n === 3 ? "third" : `${n}th`;
}

/** Sunday last, so that Saturday and Sunday stand together. */
function mondayFirst(values: readonly number[]): readonly number[] {
  return values.includes(0) && values.includes(6) ? [...values.filter((value) => value > 0), 0] : values;
}
