import { z } from "zod";
import { reviseSchedule } from "../../../authority/schedules/revise-schedule.ts";
import type { Definition, Payload } from "../../../domain/definition.ts";
import type { ScheduleView } from "../../../store/reads/schedules.ts";
import type { ApiContext, Caller } from "../../context.ts";
import { checkJobAllowed } from "../../identity/tenant-bounds.ts";
import { unknownCalendar } from "../../input/calendars.ts";
import { checkTargets } from "../../input/check-targets.ts";
import { checkTemplates } from "../../input/check-templates.ts";
import { checkBounds, checkWindow, checkWork, ruleProblem } from "../../input/check-work.ts";
import { readEffectSecrets, withEffects } from "../../input/effect-secrets.ts";
import { readIfMatch } from "../../input/if-match.ts";
import { readSecrets } from "../../input/secrets.ts";
import { presentSchedule } from "../../present/schedule.ts";
import type { ProblemCode } from "../../problems/catalogue.ts";
import { fieldProblem, Problem } from "../../problems/problem.ts";
import { quotaProblem } from "../../problems/quota.ts";
import { noSuchSchedule } from "../../resolve.ts";
import type { Reply } from "../../route.ts";
import { askAdmission, changesTiming, infeasibleProblem, NOTHING_TO_ASK } from "./preview/admission.ts";
import { takenScheduleSchema, withFeasibility } from "./taken.ts";

/** What PUT and PATCH share. */

export const expectedRevisionSchema = z
  .int()
  .min(1)
  .optional()
  .describe("The revision this change was made for; or send `If-Match`");

export const ifMatchHeaders = z.object({
  "if-match": z.string().optional().describe('The schedule\'s ETag, such as `"3"`, in place of `expectedRevision`'),
});

export const revisedAnswer = { kind: "ok", description: "The new revision", schema: takenScheduleSchema } as const;

export const reviseProblems: ProblemCode[] = [
  "not-found",
  "invalid-rule",
  "unknown-job",
  "job-not-allowed",
  "unknown-calendar",
  "payload-too-large",
  "revision-conflict",
  "secrets-unavailable",
  "interval-below-quota",
  "infeasible",
];

/** From `If-Match` or the body; without either nobody knows what the change was made for. */
export function readExpectedRevision(header: string | undefined, inBody: number | undefined): number {
  const inHeader = readIfMatch(header, { number: "revision", of: "schedule" });
  const expected = inBody ?? inHeader;
  if (expected === undefined) {
    throw fieldProblem({
      field: "expectedRevision",
      message: "is missing",
      allowed: "the revision you read, here or as If-Match",
    });
  }
  return expected;
}

export async function revise(
  context: ApiContext,
  caller: Caller,
  request: {
    current: ScheduleView;
    ref: string;
    expectedRevision: number;
    change: {
      name?: string;
      labels?: Record<string, string>;
      notes?: string | null;
      managedBy?: string | null;
      definition: Definition;
      /** As it was sent; undefined: it stays. */
      payload: Payload | undefined;
    };
  },
): Promise<Reply> {
  const { current, ref, expectedRevision, change } = request;
  const { id: scheduleId, definition: before } = current;
  checkWindow(change.definition);
  checkBounds(change.definition, before);
  // Secrets that stay are those of the revision that the caller saw, and of no other.
  if (current.revision !== expectedRevision) throw conflict(context, expectedRevision, current);
  const given = await readSecrets(context, caller.tenantId, change.definition.job, {
    sent: change.payload,
    base: current.payload,
  });
  const effects = readEffectSecrets(context, caller.tenantId, change.definition.effects, before.effects);
  checkWork(context, change.definition, given, before);
  checkTargets(context, caller, change.definition, before);
  await checkTemplates(context, caller, change.definition, before);
  checkJobAllowed(caller, change.definition.job);
  const admission = changesTiming(before, change.definition)
    ? await askAdmission(context, caller, change.definition, scheduleId)
    : NOTHING_TO_ASK;
  const outcome = await reviseSchedule(context.authority, {
    tenantId: caller.tenantId,
    actor: caller.actor,
    scheduleId,
    expectedRevision,
    change: {
      ...change,
      definition: withEffects(change.definition, await effects.seal()),
      payload: await given.seal(),
    },
    isInfeasible: admission.isRefused,
  });
  switch (outcome.kind) {
    case "revised":
      return {
        kind: "ok",
        headers: { etag: `"${outcome.schedule.revision}"` },
        body: withFeasibility(presentSchedule(outcome.schedule, context.zones), admission),
      };
    case "conflict":
      throw conflict(context, expectedRevision, outcome.schedule);
    case "quota":
    case "unfit":
      throw quotaProblem(context, outcome);
    case "infeasible":
      context.metrics.quotaRefusals.inc({ quota: "onInfeasible" });
      throw infeasibleProblem(admission);
    case "not-found":
      throw noSuchSchedule(ref);
    case "invalid":
      throw ruleProblem(outcome.fault, change.definition.rule, context.zones);
    case "unknown-calendar":
      throw await unknownCalendar(context, caller.tenantId, change.definition, outcome.name);
  }
}

function conflict(context: ApiContext, expectedRevision: number, current: ScheduleView): Problem {
  return new Problem(
    "revision-conflict",
    `expectedRevision: found ${expectedRevision}; the schedule is at revision ${current.revision}`,
    { more: { current: presentSchedule(current, context.zones) } },
  );
}
