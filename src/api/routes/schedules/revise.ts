import { z } from "zod";
import { reviseSchedule } from "../../../authority/schedules/revise-schedule.ts";
import type { Definition, Payload } from "../../../domain/definition.ts";
import type { Uuid } from "../../../kernel/ids.ts";
import type { ApiContext, Caller } from "../../context.ts";
import { checkJobAllowed } from "../../identity/standing.ts";
import { unknownCalendar } from "../../input/calendars.ts";
import { checkBounds, checkWindow, checkWork, ruleProblem } from "../../input/check-work.ts";
import { readIfMatch } from "../../input/if-match.ts";
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
    scheduleId: Uuid;
    ref: string;
    expectedRevision: number;
    before: Definition;
    change: {
      name?: string;
      labels?: Record<string, string>;
      notes?: string | null;
      managedBy?: string | null;
      definition: Definition;
      payload: Payload;
    };
  },
): Promise<Reply> {
  const { scheduleId, ref, expectedRevision, before, change } = request;
  checkWindow(change.definition);
  checkBounds(change.definition, before);
  checkWork(context, change.definition, change.payload, before);
  checkJobAllowed(caller, change.definition.job);
  const admission = changesTiming(before, change.definition)
    ? await askAdmission(context, caller, change.definition, scheduleId)
    : NOTHING_TO_ASK;
  const outcome = await reviseSchedule(context.authority, {
    tenantId: caller.tenantId,
    actor: caller.actor,
    scheduleId,
    expectedRevision,
    change,
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
      throw new Problem(
        "revision-conflict",
        `expectedRevision: found ${expectedRevision}; the schedule is at revision ${outcome.schedule.revision}`,
        {
          more: { current: presentSchedule(outcome.schedule, context.zones) },
        },
      );
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
