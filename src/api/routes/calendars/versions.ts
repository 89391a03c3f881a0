import { z } from "zod";
import { listCalendarVersions } from "../../../store/reads/calendars.ts";
import { READERS } from "../../context.ts";
import { afterSchema, limitSchema } from "../../input/fields.ts";
import { listedCalendarSchema, presentListedCalendar } from "../../present/calendar.ts";
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
  answer: {
    kind: "ok",
    description: "A page",
    schema: z.strictObject({
      items: z.array(listedCalendarSchema),
      next: z.string().nullable(),
      source: z.literal("authority"),
    }),
  },
  problems: ["not-found", "invalid-cursor"],
  async handle({ params, query }, context, caller) {
    const list = JSON.stringify(["calendar-versions", caller.tenantId, params.calendar]);
    const before = query.after === undefined ? undefined : Number(context.cursors.read(list, query.after)[0]);
    const rows = await listCalendarVersions(context.db, caller.tenantId, params.calendar, {
      limit: query.limit + 1,
      ...(before === undefined ? {} : { beforeVersion: before }),
    });
    if (rows.length === 0 && before === undefined) throw noSuchCalendar(params.calendar);
    const items = rows.slice(0, query.limit);
    const next = rows.length > items.length ? context.cursors.write(list, [items.at(-1)!.version]) : null;
    return { kind: "ok", body: { items: items.map(presentListedCalendar), next, source: "authority" } };
  },
});
