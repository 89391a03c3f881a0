import { countOpenLetters } from "../../../store/reads/dead-letters.ts";
import { READERS } from "../../context.ts";
import { scheduleParams } from "../../input/fields.ts";
import { noFields } from "../../input/no-fields.ts";
import { MOST_LETTERS_COUNTED, presentSchedule, scheduleDetailSchema } from "../../present/schedule.ts";
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
  answer: { kind: "ok", description: "The schedule with its current revision", schema: scheduleDetailSchema },
  problems: ["not-found"],
  async handle({ params }, context, caller) {
    const schedule = await getSchedule(context, caller, params.schedule);
    const open = await countOpenLetters(context.db, schedule.id, MOST_LETTERS_COUNTED);
    const deadLetters = { value: open, capped: open === MOST_LETTERS_COUNTED };
    const body = { ...presentSchedule(schedule, context.zones), deadLetters };
    return { kind: "ok", headers: { etag: `"${schedule.revision}"` }, body };
  },
});
