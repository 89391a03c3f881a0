import { READERS } from "../../context.ts";
import { scheduleParams } from "../../input/fields.ts";
import { noFields } from "../../input/no-fields.ts";
import { presentSchedule, scheduleSchema } from "../../present/schedule.ts";
import { getSchedule } from "../../resolve.ts";
import { defineRoute } from "../../route.ts";

export const getScheduleRoute = defineRoute({
  method: "get",
  path: "/v1/schedules/{schedule}",
  tag: "schedules",
  summary: "Read a schedule",
  roles: READERS,
  params: scheduleParams,
  query: noFields,
  answer: { kind: "ok", description: "The schedule with its current revision", schema: scheduleSchema },
  problems: ["not-found"],
  async handle({ params }, context, caller) {
    const schedule = await getSchedule(context, caller, params.schedule);
    return { kind: "ok", headers: { etag: `"${schedule.revision}"` }, body: presentSchedule(schedule, context.zones) };
  },
});
