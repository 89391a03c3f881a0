import { z } from "zod";
import { runNow } from "../../../authority/runs/run-now.ts";
import { WRITERS } from "../../context.ts";
import { RUN_NOW_BODY } from "../../examples.ts";
import { checkJobAllowed } from "../../identity/standing.ts";
import { checkWork } from "../../input/check-work.ts";
import { idempotencyHeaders, payloadSchema, scheduleParams } from "../../input/fields.ts";
import { noFields } from "../../input/no-fields.ts";
import { requestKeyOf } from "../../input/request-key.ts";
import { getSchedule, getScheduleId } from "../../resolve.ts";
import { defineRoute } from "../../route.ts";
import { madeRunAnswer, replyWithRun } from "../runs/made.ts";

export const runNowRoute = defineRoute({
  method: "post",
  path: "/v1/schedules/{schedule}/runs",
  tag: "runs",
  summary: "Run a schedule now",
  description: "With an Idempotency-Key (its scope is this schedule) a repeat gives the same run.",
  roles: WRITERS,
  params: scheduleParams,
  query: noFields,
  headers: idempotencyHeaders,
  body: z.strictObject({ payload: payloadSchema.optional().describe("In place of the schedule's payload") }),
  example: RUN_NOW_BODY,
  answer: madeRunAnswer,
  problems: [
    "not-found",
    "overlap",
    "request-key-reused",
    "schedule-not-active",
    "job-not-allowed",
    "payload-too-large",
    "quota-exceeded",
  ],
  async handle(call, context, caller) {
    const { payload } = call.body;
    const scheduleId = await getScheduleId(context, caller, call.params.schedule);
    if (payload !== undefined || caller.allowedJobs !== null) {
      const { definition } = await getSchedule(context, caller, call.params.schedule);
      checkJobAllowed(caller, definition.job);
      if (payload !== undefined) checkWork(context, definition, payload, definition);
    }
    const outcome = await runNow(context.authority, {
      tenantId: caller.tenantId,
      actor: caller.actor,
      scheduleId,
      ...(payload === undefined ? {} : { payload }),
      ...requestKeyOf("run-now", call.header("idempotency-key"), call.sentBody),
    });
    return replyWithRun(context, outcome, call.params.schedule);
  },
});
