import { z } from "zod";
import { calendarDefinitionSchema } from "../../domain/calendar/definition.ts";
import type { CalendarSummary, CalendarView } from "../../store/reads/calendars.ts";
import { CALENDAR, LISTED_CALENDAR } from "../examples.ts";
import { shownInstant } from "../input/fields.ts";
import { showInstant } from "./instant.ts";

const ofVersion = {
  name: z.string(),
  version: z.int().describe("Counts from 1 with every edit, also over a deletion; a version never changes"),
  actor: z.string().describe("Who made this version"),
  createdAt: shownInstant.describe("When this version was made"),
};

export const calendarSchema = calendarDefinitionSchema
  .safeExtend({ ...ofVersion, source: z.literal("authority") })
  .meta({ id: "Calendar", example: CALENDAR });

export const listedCalendarSchema = z
  .strictObject({ ...ofVersion, entries: z.int().describe("Dates, ranges and yearly dates together") })
  .meta({ id: "CalendarListItem", example: LISTED_CALENDAR });

export function presentCalendar(view: CalendarView): z.output<typeof calendarSchema> {
  const { name, version, actor, createdAt, definition } = view;
  return { name, version, actor, createdAt: showInstant(createdAt), ...definition, source: "authority" };
}

export function presentListedCalendar(view: CalendarSummary): z.output<typeof listedCalendarSchema> {
  const { name, version, actor, createdAt, entries } = view;
  return { name, version, actor, createdAt: showInstant(createdAt), entries };
}
