import { READERS } from "../../context.ts";
import { scheduleParams } from "../../input/fields.ts";
import { getSchedule } from "../../resolve.ts";
import { defineRoute } from "../../route.ts";
import { pageOfRuns, runFilters, runPageAnswer } from "./page.ts";

export const listRunsOfScheduleRoute = defineRoute({
  method: "get",
  path: "/v1/schedules/{schedule}/runs",
  tag: "runs",
  summary: "List a schedule's runs by nominal instant, latest first",
  roles: READERS,
  params: scheduleParams,
  query: runFilters,
  answer: runPageAnswer,
  problems: ["not-found", "invalid-cursor", "busy"],
  async handle({ params, query }, context, caller) {
    const schedule = await getSchedule(context, caller, params.schedule);
    return pageOfRuns(context, caller, query, schedule.id);
  },
});
