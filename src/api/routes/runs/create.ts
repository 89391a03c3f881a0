import { runAdHoc } from "../../../authority/runs/run-ad-hoc.ts";
import { inItsClass, workSchema } from "../../../domain/definition.ts";
import { WRITERS } from "../../context.ts";
import { RUN_BODY } from "../../examples.ts";
import { checkJobAllowed } from "../../identity/tenant-bounds.ts";
import { checkTargets } from "../../input/check-targets.ts";
import { checkTemplates } from "../../input/check-templates.ts";
import { checkWork } from "../../input/check-work.ts";
import { readEffectSecrets, withEffects } from "../../input/effect-secrets.ts";
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
    const { payload, ...asked } = call.body;
    const work = inItsClass(asked);
    const given = await readSecrets(context, caller.tenantId, work.job, { sent: payload });
    const effects = readEffectSecrets(context, caller.tenantId, work.effects);
    checkWork(context, work, given);
    checkTargets(context, caller, work);
    await checkTemplates(context, caller, work);
    checkJobAllowed(caller, work.job);
    const requestKey = await requestKeyWith(context, caller.tenantId, given.secrets.count + effects.count, "run", call);
    const outcome = await runAdHoc(context.authority, {
      tenantId: caller.tenantId,
      actor: caller.actor,
      work: withEffects(work, await effects.seal()),
      payload: await given.seal(),
      ...requestKey,
    });
    return replyWithRun(context, outcome, "");
  },
});
