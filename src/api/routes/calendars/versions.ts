import { z } from "zod";
import { listCalendarVersions } from "../../../store/reads/calendars.ts";
import { READERS } from "../../context.ts";
import { afterSchema, limitSchema } from "../../input/fields.ts";
import { listedCalendarSchema, presentListedCalendar } from "../../present/calendar.ts";
import { pageAnswer, replyWithPage } from "../../present/page.ts";
import { defineRoute } from "../../route.ts";
import { calendarParams, noSuchCalendar } from "./params.ts";

export const listCalendarVersionsRoute = defineRoute({
  method: "get",
  path: "/v1/calendars/{calendar}/versions",
  tag: "calendars",
  summary: "List a calendar's versions, newest first, without their dates",
  description: "Also of a deleted calendar. `GET /v1/calendars/{calendar}?version=` has the dates of one.",
  roles: READERS,
  params: calendarParams,
  query: z.strictObject({ limit: limitSchema, after: afterSchema }),
  answer: pageAnswer(listedCalendarSchema),
  problems: ["not-found", "invalid-cursor"],
  async handle({ params, query }, context, caller) {
    const list = JSON.stringify(["calendar-versions", caller.tenantId, params.calendar]);
    const before = query.after === undefined ? undefined : Number(context.cursors.read(list, query.after)[0]);
    const rows = await listCalendarVersions(context.db, caller.tenantId, params.calendar, {
      limit: query.limit + 1,
      ...(before === undefined ? {} : { beforeVersion: before }),
    });
    if (rows.length === 0 && before === undefined) throw noSuchCalendar(params.calendar);
    return replyWithPage(context, list, {
      rows,
      limit: query.limit,
      positionOf: (row) => row.version,
      present: presentListedCalendar,
    });
  },
});
