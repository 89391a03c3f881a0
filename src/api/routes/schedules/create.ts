import { createSchedule } from "../../../authority/schedules/create-schedule.ts";
import { inItsClass } from "../../../domain/definition.ts";
import { showId } from "../../../kernel/ids.ts";
import { WRITERS } from "../../context.ts";
import { SCHEDULE_BODY } from "../../examples.ts";
import { checkJobAllowed } from "../../identity/tenant-bounds.ts";
import { unknownCalendar } from "../../input/calendars.ts";
import { checkTargets } from "../../input/check-targets.ts";
import { checkTemplates } from "../../input/check-templates.ts";
import { checkBounds, checkWindow, checkWork, ruleProblem } from "../../input/check-work.ts";
import { readEffectSecrets, withEffects } from "../../input/effect-secrets.ts";
import { idempotencyHeaders, scheduleFields } from "../../input/fields.ts";
import { noFields } from "../../input/no-fields.ts";
import { keyReused, requestKeyWith } from "../../input/request-key.ts";
import { readSecrets } from "../../input/secrets.ts";
import { presentSchedule } from "../../present/schedule.ts";
import { Problem } from "../../problems/problem.ts";
import { quotaProblem, SCHEDULE_QUOTA_PROBLEMS } from "../../problems/quota.ts";
import { defineRoute } from "../../route.ts";
import { askAdmission, infeasibleProblem } from "./preview/admission.ts";
import { definitionOf } from "./split.ts";
import { takenScheduleSchema, withFeasibility } from "./taken.ts";

export const createScheduleRoute = defineRoute({
  method: "post",
  path: "/v1/schedules",
  tag: "schedules",
  summary: "Create a schedule",
  description: "With an Idempotency-Key a repeat gives the same schedule; a refused request does not use up its key.",
  roles: WRITERS,
  params: noFields,
  query: noFields,
  headers: idempotencyHeaders,
  body: scheduleFields,
  example: SCHEDULE_BODY,
  answer: {
    kind: "created",
    description: "The schedule, also when it was created by an earlier request with this key",
    schema: takenScheduleSchema,
  },
  problems: [
    "invalid-rule",
    "unknown-job",
    "job-not-allowed",
    "unknown-calendar",
    "payload-too-large",
    "request-key-reused",
    "secrets-unavailable",
    "schedule-key-taken",
    ...SCHEDULE_QUOTA_PROBLEMS,
  ],
  async handle(call, context, caller) {
    const { name, key, labels, managedBy, notes } = call.body;
    const definition = inItsClass(definitionOf(call.body));
    checkWindow(definition);
    checkBounds(definition);
    const given = await readSecrets(context, caller.tenantId, definition.job, { sent: call.body.payload });
    const effects = readEffectSecrets(context, caller.tenantId, definition.effects);
    checkWork(context, definition, given);
    checkTargets(context, caller, definition);
    await checkTemplates(context, caller, definition);
    checkJobAllowed(caller, definition.job);
    const admission = await askAdmission(context, caller, definition);
    const requestKey = await requestKeyWith(
      context,
      caller.tenantId,
      given.secrets.count + effects.count,
      "schedule",
      call,
    );
    const outcome = await createSchedule(context.authority, {
      tenantId: caller.tenantId,
      actor: caller.actor,
      name,
      labels,
      definition: withEffects(definition, await effects.seal()),
      payload: await given.seal(),
      isInfeasible: admission.isRefused,
      ...(key === undefined ? {} : { key }),
      ...(managedBy === undefined ? {} : { managedBy }),
      ...(notes === undefined ? {} : { notes }),
      ...requestKey,
    });
    switch (outcome.kind) {
      case "created":
      case "repeated":
        return {
          kind: "created",
          headers: {
            location: `/v1/schedules/${showId("sch", outcome.schedule.id)}`,
            etag: `"${outcome.schedule.revision}"`,
            ...(outcome.kind === "repeated" ? { "idempotency-replayed": "true" } : {}),
          },
          body: withFeasibility(presentSchedule(outcome.schedule, context.zones), admission),
        };
      case "quota":
      case "unfit":
        throw quotaProblem(context, outcome);
      case "infeasible":
        context.metrics.quotaRefusals.inc({ quota: "onInfeasible" });
        throw infeasibleProblem(admission);
      case "key-reused":
        throw keyReused();
      case "key-taken":
        throw new Problem("schedule-key-taken", `key: ${JSON.stringify(key)} names another schedule`, {
          more: { scheduleId: showId("sch", outcome.scheduleId) },
        });
      case "invalid":
        throw ruleProblem(outcome.fault, definition.rule, context.zones);
      case "unknown-calendar":
        throw await unknownCalendar(context, caller.tenantId, definition, outcome.name);
    }
  },
});
