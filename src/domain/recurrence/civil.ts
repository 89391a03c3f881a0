/**
 * The proleptic Gregorian calendar in integers. A *wall* time is a number of seconds since 1970-01-01T00:00:00 on a clock
 * hanging on a wall, whatever zone it hangs in; a *day* is whole days of the same count. Nothing here knows of zones.
 */

export const DAY_SECONDS = 86_400;

const LENGTHS = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] as const;

export function isLeapYear(year: number): boolean {
  return year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0);
}

/** Length in days of `month` (1–12). */
export function monthLength(year: number, month: number): number {
  return month === 2 && isLeapYear(year) ? 29 : LENGTHS[month - 1]!;
}

/** Days from 1970-01-01 to the given date; `month` is 1–12. */
export function dayOf(year: number, month: number, day: number): number {
  // Years are counted from March, so that the leap day is the last of its year (Hinnant's algorithm).
  const y = month <= 2 ? year - 1 : year;
  const era = Math.floor(y / 400);
  const yearOfEra = y - era * 400;
  const dayOfYear = Math.floor((153 * (month > 2 ? month - 3 : month + 9) + 2) / 5) + day - 1;
  const dayOfEra = yearOfEra * 365 + Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100) + dayOfYear;
  return era * 146_097 + dayOfEra - 719_468;
}

type CivilDate = { readonly year: number; readonly month: number; readonly day: number };

/** The date `day` days after 1970-01-01. */
export function dateOf(day: number): CivilDate {
  const shifted = day + 719_468;
  const era = Math.floor(shifted / 146_097);
  const dayOfEra = shifted - era * 146_097;
  const yearOfEra = Math.floor(
    (dayOfEra - Math.floor(dayOfEra / 1460) + Math.floor(dayOfEra / 36_524) - Math.floor(dayOfEra / 146_096)) / 365,
  );
  const dayOfYear = dayOfEra - (365 * yearOfEra + Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100));
  const marchMonth = Math.floor((5 * dayOfYear + 2) / 153);
  const month = marchMonth < 10 ? marchMonth + 3 : marchMonth - 9;
  return {
    year: yearOfEra + era * 400 + (month <= 2 ? 1 : 0),
    month,
    day: dayOfYear - Math.floor((153 * marchMonth + 2) / 5) + 1,
  };
}

/** Day of the week of `day`: 0 is Sunday. 1970-01-01 was a Thursday. */
export function weekdayOf(day: number): number {
  const weekday = (day + 4) % 7;
  return weekday < 0 ? weekday + 7 : weekday;
}
