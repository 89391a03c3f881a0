import { READERS } from "../../context.ts";
import { scheduleParams } from "../../input/fields.ts";
import { getSchedule } from "../../resolve.ts";
import { defineRoute } from "../../route.ts";
import { letterPageAnswer, pageFields, pageOfLetters } from "./page.ts";

export const listDeadLettersOfScheduleRoute = defineRoute({
  method: "get",
  path: "/v1/schedules/{schedule}/dead-letters",
  tag: "dead-letters",
  summary: "List a schedule's runs that were given up, latest failure first",
  roles: READERS,
  params: scheduleParams,
  query: pageFields,
  answer: letterPageAnswer,
  problems: ["not-found", "invalid-cursor", "busy"],
  async handle({ params, query }, context, caller) {
    await getSchedule(context, caller, params.schedule);
    return pageOfLetters(context, caller, query, params.schedule);
  },
});
