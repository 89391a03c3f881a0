import { runAdHoc } from "../../../authority/runs/run-ad-hoc.ts";
import { workSchema } from "../../../domain/definition.ts";
import { WRITERS } from "../../context.ts";
import { RUN_BODY } from "../../examples.ts";
import { checkJobAllowed } from "../../identity/tenant-bounds.ts";
import { checkWork } from "../../input/check-work.ts";
import { idempotencyHeaders, payloadSchema } from "../../input/fields.ts";
import { noFields } from "../../input/no-fields.ts";
import { requestKeyWith } from "../../input/request-key.ts";
import { readSecrets } from "../../input/secrets.ts";
import { defineRoute } from "../../route.ts";
import { madeRunAnswer, replyWithRun } from "./made.ts";

export const createRunRoute = defineRoute({
  method: "post",
  path: "/v1/runs",
  tag: "runs",
  summary: "Run a job once, without a schedule",
  roles: WRITERS,
  params: noFields,
  query: noFields,
  headers: idempotencyHeaders,
  body: workSchema.extend({ payload: payloadSchema.default({}) }),
  example: RUN_BODY,
  answer: madeRunAnswer,
  problems: [
    "unknown-job",
    "job-not-allowed",
    "payload-too-large",
    "request-key-reused",
    "quota-exceeded",
    "secrets-unavailable",
  ],
  async handle(call, context, caller) {
    const { payload, ...work } = call.body;
    const given = await readSecrets(context, caller.tenantId, work.job, { sent: payload });
    checkWork(context, work, given);
    checkJobAllowed(caller, work.job);
    const requestKey = await requestKeyWith(context, caller.tenantId, given, "run", call);
    const outcome = await runAdHoc(context.authority, {
      tenantId: caller.tenantId,
      actor: caller.actor,
      work,
      payload: await given.seal(),
      ...requestKey,
    });
    return replyWithRun(context, outcome, "");
  },
});
