import { z } from "zod";
import { findCalendar, findCalendarVersion } from "../../../store/reads/calendars.ts";
import { READERS } from "../../context.ts";
import { ordinalSchema } from "../../input/fields.ts";
import { calendarSchema, presentCalendar } from "../../present/calendar.ts";
import { defineRoute } from "../../route.ts";
import { calendarParams, noSuchCalendar } from "./params.ts";

export const getCalendarRoute = defineRoute({
  method: "get",
  path: "/v1/calendars/{calendar}",
  tag: "calendars",
  summary: "Read a calendar",
  roles: READERS,
  params: calendarParams,
  query: z.strictObject({
    version: ordinalSchema("must be a version, such as 3")
      .optional()
      .describe("An earlier version, of a deleted calendar too; default: the one in force"),
  }),
  answer: { kind: "ok", description: "The version in force, or the one asked for", schema: calendarSchema },
  problems: ["not-found"],
  async handle({ params, query }, context, caller) {
    const { tenantId } = caller;
    const found =
      query.version === undefined
        ? await findCalendar(context.db, tenantId, params.calendar)
        : await findCalendarVersion(context.db, tenantId, params.calendar, query.version);
    if (found === undefined) throw noSuchCalendar(params.calendar);
    return { kind: "ok", headers: { etag: `"${found.version}"` }, body: presentCalendar(found) };
  },
});
