import { z } from "zod";
import { putCalendar } from "../../../authority/calendars/put-calendar.ts";
import { calendarDefinitionSchema, calendarNameSchema } from "../../../domain/calendar/definition.ts";
import { WRITERS } from "../../context.ts";
import { CALENDAR_BODY } from "../../examples.ts";
import { checkZone } from "../../input/check-work.ts";
import { readIfMatch } from "../../input/if-match.ts";
import { parseWith } from "../../input/issues.ts";
import { noFields } from "../../input/no-fields.ts";
import { calendarSchema, presentCalendar } from "../../present/calendar.ts";
import { Problem } from "../../problems/problem.ts";
import { defineRoute } from "../../route.ts";
import { calendarParams } from "./params.ts";

export const putCalendarRoute = defineRoute({
  method: "put",
  path: "/v1/calendars/{calendar}",
  tag: "calendars",
  summary: "Make a calendar, or its next version",
  description:
    "Schedules that use it are not touched: each instant is judged by the version in force when it comes. A repeat with the same dates changes nothing.",
  roles: WRITERS,
  params: calendarParams,
  query: noFields,
  headers: z.object({
    "if-match": z.string().optional().describe('The calendar\'s ETag, such as `"3"`, in place of `expectedVersion`'),
  }),
  body: calendarDefinitionSchema.safeExtend({
    expectedVersion: z
      .int()
      .min(0)
      .optional()
      .describe("The version this change was made for; or send `If-Match`. 0, or neither: there must be none yet"),
  }),
  example: CALENDAR_BODY,
  answer: { kind: "ok", description: "The version in force from now on", schema: calendarSchema },
  problems: ["calendar-conflict"],
  async handle(call, context, caller) {
    const { expectedVersion: inBody, ...definition } = call.body;
    const name = parseWith(z.strictObject({ calendar: calendarNameSchema }), call.params, "path").calendar;
    const expectedVersion = inBody ?? readIfMatch(call.header("if-match"), { number: "version", of: "calendar" }) ?? 0;
    if (definition.zone !== undefined) checkZone(definition.zone, context.zones);
    const { tenantId, actor } = caller;
    const outcome = await putCalendar(context.authority, { tenantId, actor, name, expectedVersion, definition });
    if (outcome.kind === "conflict") {
      const { current } = outcome;
      const is = current === undefined ? "there is no such calendar" : `the calendar is at version ${current.version}`;
      throw new Problem("calendar-conflict", `expectedVersion: found ${expectedVersion}; ${is}`, {
        more: { current: current === undefined ? null : presentCalendar(current) },
      });
    }
    const { calendar } = outcome;
    return { kind: "ok", headers: { etag: `"${calendar.version}"` }, body: presentCalendar(calendar) };
  },
});
