import { z } from "zod";
import { pauseSchedule } from "../../../authority/schedules/pause-schedule.ts";
import { WRITERS } from "../../context.ts";
import { NOTE_BODY } from "../../examples.ts";
import { noteSchema, scheduleParams } from "../../input/fields.ts";
import { noFields } from "../../input/no-fields.ts";
import { presentSchedule, scheduleSchema } from "../../present/schedule.ts";
import { Problem } from "../../problems/problem.ts";
import { getScheduleId, noSuchSchedule } from "../../resolve.ts";
import { defineRoute } from "../../route.ts";

export const pauseScheduleRoute = defineRoute({
  method: "post",
  path: "/v1/schedules/{schedule}/pause",
  tag: "schedules",
  summary: "Pause a schedule",
  description:
    "What is due already still becomes runs, and open runs go on. Pausing a paused schedule changes nothing.",
  roles: WRITERS,
  params: scheduleParams,
  query: noFields,
  body: z.strictObject({ note: noteSchema.optional() }),
  example: NOTE_BODY,
  answer: {
    kind: "ok",
    description: "The paused schedule",
    schema: z.strictObject({ schedule: scheduleSchema, changed: z.boolean() }),
  },
  problems: ["not-found", "schedule-not-active"],
  async handle({ params, body }, context, caller) {
    const scheduleId = await getScheduleId(context, caller, params.schedule);
    const outcome = await pauseSchedule(context.authority, {
      tenantId: caller.tenantId,
      actor: caller.actor,
      scheduleId,
      ...(body.note === undefined ? {} : { note: body.note }),
    });
    if (outcome.kind === "not-found") throw noSuchSchedule(params.schedule);
    if (outcome.kind === "not-active" && outcome.schedule.status !== "paused") {
      throw new Problem("schedule-not-active", `The schedule is ${outcome.schedule.status}`, {
        more: { status: outcome.schedule.status },
      });
    }
    return {
      kind: "ok",
      body: { schedule: presentSchedule(outcome.schedule, context.zones), changed: outcome.kind === "paused" },
    };
  },
});
