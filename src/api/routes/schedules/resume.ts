import { z } from "zod";
import { resumeSchedule } from "../../../authority/schedules/resume-schedule.ts";
import { WRITERS } from "../../context.ts";
import { NOTE_BODY } from "../../examples.ts";
import { noteSchema, scheduleParams } from "../../input/fields.ts";
import { noFields } from "../../input/no-fields.ts";
import { presentSchedule, scheduleSchema } from "../../present/schedule.ts";
import { Problem } from "../../problems/problem.ts";
import { getScheduleId, noSuchSchedule } from "../../resolve.ts";
import { defineRoute } from "../../route.ts";

export const resumeScheduleRoute = defineRoute({
  method: "post",
  path: "/v1/schedules/{schedule}/resume",
  tag: "schedules",
  summary: "Resume a paused schedule",
  description:
    "The instants missed meanwhile follow the misfire policy, or `misfire` for this once. Resuming an active schedule changes nothing.",
  roles: WRITERS,
  params: scheduleParams,
  query: noFields,
  body: z.strictObject({ note: noteSchema.optional(), misfire: z.enum(["latest", "skip", "all"]).optional() }),
  example: NOTE_BODY,
  answer: {
    kind: "ok",
    description: "The schedule and what becomes of the instants missed",
    schema: z.strictObject({
      schedule: scheduleSchema,
      changed: z.boolean(),
      plan: z.strictObject({
        runs: z.int().describe("Made now, or to be caught up behind work that is on time"),
        skipped: z.int().nullable().describe("Instants recorded as skipped; null: too many to count at once"),
      }),
    }),
  },
  problems: ["not-found", "schedule-not-active"],
  async handle({ params, body }, context, caller) {
    const scheduleId = await getScheduleId(context, caller, params.schedule);
    const outcome = await resumeSchedule(context.authority, {
      tenantId: caller.tenantId,
      actor: caller.actor,
      scheduleId,
      ...(body.note === undefined ? {} : { note: body.note }),
      ...(body.misfire === undefined ? {} : { misfire: body.misfire }),
    });
    if (outcome.kind === "not-found") throw noSuchSchedule(params.schedule);
    if (outcome.kind !== "resumed" && outcome.schedule.status !== "active") {
      throw new Problem("schedule-not-active", `The schedule is ${outcome.schedule.status}`, {
        more: { status: outcome.schedule.status },
      });
    }
    const plan = outcome.kind === "resumed" ? outcome.plan : { runs: 0, skipped: 0 };
    return {
      kind: "ok",
      body: { schedule: presentSchedule(outcome.schedule, context.zones), changed: outcome.kind === "resumed", plan },
    };
  },
});
