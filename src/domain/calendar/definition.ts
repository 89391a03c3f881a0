/** What a tenant writes to say which days are no business days, and what a schedule makes of them. */
import { z } from "zod";
import { dayOf, monthLength } from "../recurrence/civil.ts";

/** In the order of `weekdayOf`. */
export const WEEKDAYS = ["sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday"] as const;

/** Dates, ranges and yearly dates of one calendar, together. */
const MOST_ENTRIES = 5000;
const MOST_CALENDARS = 8;

export const calendarNameSchema = z
  .string()
  .regex(/^[a-z0-9][a-z0-9._-]{0,99}$/, "must be 1 to 100 of a-z 0-9 . _ - and begin with a letter or digit")
  .describe("Name of a calendar, unique in its tenant, such as company-holidays");

const entryNameSchema = z.string().min(1).max(200).optional().describe("Why, for people, such as Christmas");

const dateSchema = z
  .string()
  .regex(/^\d{4}-\d\d-\d\d$/, { error: "must be a date such as 2026-12-25", abort: true })
  .refine((text) => readDate(text) !== undefined, "must be a date that exists, such as 2026-12-25");

const yearlyDateSchema = z
  .string()
  .regex(/^\d\d-\d\d$/, { error: "must be month and day such as 12-25", abort: true })
  .refine((text) => readDate(`2000-${text}`) !== undefined, "must be a month and day that exist, such as 12-25");

export const calendarDefinitionSchema = z
  .strictObject({
    zone: z
      .string()
      .max(64)
      .optional()
      .describe("Whose dates these are for rules without a zone of their own, such as intervals; default UTC"),
    weekend: z
      .array(z.enum(WEEKDAYS))
      .refine((days) => new Set(days).size === days.length, "must name each day once")
      .default(["saturday", "sunday"])
      .describe("Days of every week that are excluded; may be empty"),
    dates: z
      .array(z.strictObject({ date: dateSchema, name: entryNameSchema }))
      .max(MOST_ENTRIES)
      .default([])
      .describe("Single dates"),
    ranges: z
      .array(
        z
          .strictObject({ from: dateSchema, to: dateSchema, name: entryNameSchema })
          .refine(({ from, to }) => from <= to, { path: ["to"], error: "must not be before `from`" }),
      )
      .max(MOST_ENTRIES)
      .default([])
      .describe("From one date to another, both included"),
    yearly: z
      .array(z.strictObject({ date: yearlyDateSchema, name: entryNameSchema }))
      .max(MOST_ENTRIES)
      .default([])
      .describe("Dates of every year, such as 12-25; 02-29 comes in leap years only"),
  })
  .refine(({ dates, ranges, yearly }) => dates.length + ranges.length + yearly.length <= MOST_ENTRIES, {
    error: `must have at most ${MOST_ENTRIES} dates, ranges and yearly dates together`,
  });

export type CalendarDefinition = z.infer<typeof calendarDefinitionSchema>;

const calendarUseSchema = z.strictObject({
  name: calendarNameSchema,
  onExcluded: z
    .enum(["exclude", "shift"])
    .describe("exclude: a recorded skip; shift: the same time on the next day that no calendar here excludes"),
});

/** How a schedule uses calendars. The first one that excludes an instant's date decides. */
export const calendarUsesSchema = z
  .array(calendarUseSchema)
  .max(MOST_CALENDARS)
  .refine((uses) => new Set(uses.map((use) => use.name)).size === uses.length, "must name each calendar once")
  .describe("Calendars whose dates are excluded; the first one that excludes an instant's local date decides");

export type CalendarUse = z.infer<typeof calendarUseSchema>;

/** Days since 1970-01-01 of `2026-12-25`; undefined where no calendar has such a date. */
export function readDate(text: string): number | undefined {
  const [year, month, day] = text.split("-").map(Number) as [number, number, number];
  if (month < 1 || month > 12 || day < 1 || day > monthLength(year, month)) return undefined;
  return dayOf(year, month, day);
}
