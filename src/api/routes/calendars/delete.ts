import { z } from "zod";
import { deleteCalendar } from "../../../authority/calendars/delete-calendar.ts";
import { showId } from "../../../kernel/ids.ts";
import { WRITERS } from "../../context.ts";
import { noFields } from "../../input/no-fields.ts";
import { Problem } from "../../problems/problem.ts";
import { defineRoute } from "../../route.ts";
import { calendarParams, noSuchCalendar } from "./params.ts";

export const deleteCalendarRoute = defineRoute({
  method: "delete",
  path: "/v1/calendars/{calendar}",
  tag: "calendars",
  summary: "Delete a calendar that no schedule uses",
  description: "Its versions stay readable. A new calendar of that name counts on from them.",
  roles: WRITERS,
  params: calendarParams,
  query: noFields,
  answer: {
    kind: "ok",
    description: "The version that was in force",
    schema: z.strictObject({ name: z.string(), version: z.int() }),
  },
  problems: ["not-found", "calendar-in-use"],
  async handle({ params }, context, caller) {
    const { tenantId, actor } = caller;
    const name = params.calendar;
    const outcome = await deleteCalendar(context.authority, { tenantId, actor, name });
    switch (outcome.kind) {
      case "deleted":
        return { kind: "ok", body: { name, version: outcome.version } };
      case "not-found":
        throw noSuchCalendar(name);
      case "in-use":
        throw new Problem(
          "calendar-in-use",
          `Schedules that are not deleted use the calendar ${JSON.stringify(name)}`,
          {
            more: { scheduleIds: outcome.scheduleIds.map((id) => showId("sch", id)) },
          },
        );
    }
  },
});
