import { dateOf, weekdayOf } from "../recurrence/civil.ts";
import { type CalendarDefinition, readDate, WEEKDAYS } from "./definition.ts";

/** A calendar made ready for looking days up. */
export type Calendar = {
  readonly name: string;
  readonly version: number;
  /** Whose dates these are for rules without a zone of their own. */
  readonly zone: string;
  /** Why the day (whole days since 1970-01-01) is excluded, in words; undefined: it is a business day. */
  reasonOn(day: number): string | undefined;
};

/** An entry without a name of its own is called by the calendar's. The most particular entry gives the reason. */
export function compileCalendar(name: string, version: number, definition: CalendarDefinition): Calendar {
  const dates = new Map(definition.dates.map((one) => [readDate(one.date)!, one.name ?? name]));
  const yearly = new Map(definition.yearly.map((one) => [readMonthAndDay(one.date), one.name ?? name]));
  const spans = disjoint(
    definition.ranges.map((one) => ({ from: readDate(one.from)!, to: readDate(one.to)!, name: one.name ?? name })),
  );
  const weekend = new Set<number>(definition.weekend.map((day) => WEEKDAYS.indexOf(day)));
  return {
    name,
    version,
    zone: definition.zone ?? "UTC",
    reasonOn(day) {
      const dated =
        dates.get(day) ?? (yearly.size === 0 ? undefined : yearly.get(monthAndDay(day))) ?? find(spans, day);
      if (dated !== undefined) return dated;
      const weekday = weekdayOf(day);
      return weekend.has(weekday) ? `weekend (${WEEKDAYS[weekday]})` : undefined;
    },
  };
}

type Span = { from: number; to: number; name: string };

/** The same days without overlaps, in order, so that a day is found by halving; the span that began first keeps a day. */
function disjoint(spans: readonly Span[]): Span[] {
  const result: Span[] = [];
  let freeFrom = Number.NEGATIVE_INFINITY;
  for (const span of spans.toSorted((a, b) => a.from - b.from)) {
    const from = Math.max(span.from, freeFrom);
    if (from > span.to) continue;
    result.push({ ...span, from });
    freeFrom = span.to + 1;
  }
  return result;
}

function find(spans: readonly Span[], day: number): string | undefined {
  let low = 0;
  let high = spans.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (spans[middle]!.to < day) low = middle + 1;
    else high = middle;
  }
  const span = spans[low];
  return span !== undefined && span.from <= day ? span.name : undefined;
}

/** A number for each day of a year, whatever the year. */
function monthAndDay(day: number): number {
  const { month, day: dayOfMonth } = dateOf(day);
  return month * 100 + dayOfMonth;
}

/** The same of `12-25`. */
function readMonthAndDay(text: string): number {
  const [month, day] = text.split("-").map(Number) as [number, number];
  return month * 100 + day;
}
