/** The fields of a cron expression and what may stand in them. */

export type FieldName = "second" | "minute" | "hour" | "day-of-month" | "month" | "day-of-week";

export type FieldShape = {
  readonly name: FieldName;
  readonly min: number;
  /** In day-of-week 7 is Sunday, like 0. */
  readonly max: number;
  /** Three-letter names of the values from `min` on. */
  readonly names: readonly string[];
  readonly allowed: string;
};

const MONTH_NAMES = ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"] as const;
const WEEKDAY_NAMES = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"] as const;

const FORMS = "*, a, a-b, */n, a-b/n, a/n and lists of these with commas";

export const FIELDS: readonly FieldShape[] = [
  { name: "second", min: 0, max: 59, names: [], allowed: `0-59: ${FORMS}` },
  { name: "minute", min: 0, max: 59, names: [], allowed: `0-59: ${FORMS}` },
  { name: "hour", min: 0, max: 23, names: [], allowed: `0-23: ${FORMS}` },
  { name: "day-of-month", min: 1, max: 31, names: [], allowed: `1-31: ${FORMS}, also ?, L, L-n, nW, LW` },
  { name: "month", min: 1, max: 12, names: MONTH_NAMES, allowed: `1-12 or JAN-DEC: ${FORMS}` },
  {
    name: "day-of-week",
    min: 0,
    max: 7,
    names: WEEKDAY_NAMES,
    allowed:
      "0-7 or SUN-SAT, 0 and 7 being Sunday: *, a, a-b, */n, a-b/n and lists of these with commas, also ?, dL, d#n",
  },
];

/** A day that no list of numbers can name, because it depends on the month. */
export type DayToken =
  | { readonly form: "lastDay"; readonly before: number }
  | { readonly form: "workdayNearest"; readonly day: number }
  | { readonly form: "lastWorkday" }
  | { readonly form: "lastWeekday"; readonly weekday: number }
  | { readonly form: "nthWeekday"; readonly weekday: number; readonly nth: number };

export type CronField = {
  readonly text: string;
  /** Matching numbers in order, each once; Sunday is 0. */
  readonly values: readonly number[];
  readonly tokens: readonly DayToken[];
  /** Begins with `*` or `?`. What decides whether two day fields are joined by "and" or by "or". */
  readonly isStarred: boolean;
};

export type CronFields = Readonly<Record<FieldName, CronField>>;
