import { z } from "zod";
import { listCalendars } from "../../../store/reads/calendars.ts";
import { READERS } from "../../context.ts";
import { afterSchema, limitSchema } from "../../input/fields.ts";
import { noFields } from "../../input/no-fields.ts";
import { listedCalendarSchema, presentListedCalendar } from "../../present/calendar.ts";
import { pageAnswer, replyWithPage } from "../../present/page.ts";
import { defineRoute } from "../../route.ts";

export const listCalendarsRoute = defineRoute({
  method: "get",
  path: "/v1/calendars",
  tag: "calendars",
  summary: "List calendars by name, without their dates",
  roles: READERS,
  params: noFields,
  query: z.strictObject({ limit: limitSchema, after: afterSchema }),
  answer: pageAnswer(listedCalendarSchema),
  problems: ["invalid-cursor"],
  async handle({ query }, context, caller) {
    const list = JSON.stringify(["calendars", caller.tenantId]);
    const afterName = query.after === undefined ? undefined : String(context.cursors.read(list, query.after)[0]);
    const rows = await listCalendars(context.db, caller.tenantId, {
      limit: query.limit + 1,
      ...(afterName === undefined ? {} : { afterName }),
    });
    return replyWithPage(context, list, {
      rows,
      limit: query.limit,
      positionOf: (row) => row.name,
      present: presentListedCalendar,
    });
  },
});
