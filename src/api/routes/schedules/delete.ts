import { z } from "zod";
import { deleteSchedule } from "../../../authority/schedules/delete-schedule.ts";
import { showId } from "../../../kernel/ids.ts";
import { WRITERS } from "../../context.ts";
import { scheduleParams } from "../../input/fields.ts";
import { noFields } from "../../input/no-fields.ts";
import { getScheduleId, noSuchSchedule } from "../../resolve.ts";
import { defineRoute } from "../../route.ts";

export const deleteScheduleRoute = defineRoute({
  method: "delete",
  path: "/v1/schedules/{schedule}",
  tag: "schedules",
  summary: "Delete a schedule",
  description: "Waiting runs are canceled, running ones go on, and its history stays readable.",
  roles: WRITERS,
  params: scheduleParams,
  query: noFields,
  answer: {
    kind: "ok",
    description: "How many waiting runs were canceled",
    schema: z.strictObject({ scheduleId: z.string(), canceled: z.int() }),
  },
  problems: ["not-found"],
  async handle({ params }, context, caller) {
    const scheduleId = await getScheduleId(context, caller, params.schedule);
    const outcome = await deleteSchedule(context.authority, {
      tenantId: caller.tenantId,
      actor: caller.actor,
      scheduleId,
    });
    if (outcome.kind === "not-found") throw noSuchSchedule(params.schedule);
    return { kind: "ok", body: { scheduleId: showId("sch", scheduleId), canceled: outcome.canceled } };
  },
});
