import { z } from "zod";
import { runNow } from "../../../authority/runs/run-now.ts";
import { WRITERS } from "../../context.ts";
import { RUN_NOW_BODY } from "../../examples.ts";
import { checkJobAllowed } from "../../identity/tenant-bounds.ts";
import { checkWork } from "../../input/check-work.ts";
import { idempotencyHeaders, payloadSchema, scheduleParams } from "../../input/fields.ts";
import { noFields } from "../../input/no-fields.ts";
import { requestKeyWith } from "../../input/request-key.ts";
import { type GivenPayload, NO_PAYLOAD, readSecrets } from "../../input/secrets.ts";
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
    "secrets-unavailable",
  ],
  async handle(call, context, caller) {
    const { payload: sent } = call.body;
    const scheduleId = await getScheduleId(context, caller, call.params.schedule);
    let given: GivenPayload = NO_PAYLOAD;
    if (sent !== undefined || caller.allowedJobs !== null) {
      const { definition, payload: base } = await getSchedule(context, caller, call.params.schedule);
      checkJobAllowed(caller, definition.job);
      if (sent !== undefined) {
        given = await readSecrets(context, caller.tenantId, definition.job, { sent, base });
        checkWork(context, definition, given, definition);
      }
    }
    const requestKey = await requestKeyWith(context, caller.tenantId, given.secrets.count, "run-now", call);
    const outcome = await runNow(context.authority, {
      tenantId: caller.tenantId,
      actor: caller.actor,
      scheduleId,
      ...(sent === undefined ? {} : { payload: await given.seal() }),
      ...requestKey,
    });
    return replyWithRun(context, outcome, call.params.schedule);
  },
});
