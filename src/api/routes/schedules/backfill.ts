import { z } from "zod";
import { createBackfill } from "../../../authority/operations/backfill/create.ts";
import { type EstimateOutcome, estimateBackfill } from "../../../authority/operations/backfill/estimate.ts";
import { BACKFILL_POLICIES, DEFAULT_PACE, MOST_PACE, type RangeFault } from "../../../domain/backfill.ts";
import { showId } from "../../../kernel/ids.ts";
import { WRITERS } from "../../context.ts";
import { BACKFILL_BODY } from "../../examples.ts";
import { checkJobAllowed } from "../../identity/tenant-bounds.ts";
import { idempotencyHeaders, instantSchema, noteSchema, scheduleParams } from "../../input/fields.ts";
import { showValue } from "../../input/issues.ts";
import { noFields } from "../../input/no-fields.ts";
import { keyReused, requestKeyOf } from "../../input/request-key.ts";
import { showInstant } from "../../present/instant.ts";
import { backfillPlanSchema, operationSchema, presentOperation, presentPlan } from "../../present/operation.ts";
import { fieldProblem, Problem } from "../../problems/problem.ts";
import { quotaProblem } from "../../problems/quota.ts";
import { getSchedule, getScheduleId, noSuchSchedule } from "../../resolve.ts";
import { defineRoute } from "../../route.ts";

export const backfillRoute = defineRoute({
  method: "post",
  path: "/v1/schedules/{schedule}/backfill",
  tag: "operations",
  summary: "Run past instants of a schedule",
  description:
    "Without `dryRun: false` it only says what would be done. Then it is an operation: past instants become runs of the current revision, at the pace given, behind all work that is on time. Instants that have a run are left alone, and so are those that a policy or a calendar skipped on purpose, unless `policy` is `all-skipped`.",
  roles: WRITERS,
  params: scheduleParams,
  query: noFields,
  headers: idempotencyHeaders,
  body: z.strictObject({
    from: instantSchema.describe("First nominal instant (inclusive); not before the history that is kept"),
    to: instantSchema.describe("Nominal instants before this (exclusive); not after now, nor into a pause"),
    policy: z.enum(BACKFILL_POLICIES).default("missing"),
    dryRun: z.boolean().default(true).describe("Change nothing, and say what would be done"),
    pacePerSecond: z.int().min(1).max(MOST_PACE).default(DEFAULT_PACE).describe("Most runs a second"),
    reason: noteSchema.optional(),
  }),
  example: BACKFILL_BODY,
  answer: {
    kind: "ok",
    description: "What would be done, or the operation that does it",
    schema: z.strictObject({
      dryRun: z.boolean(),
      plan: backfillPlanSchema.nullable().describe("null: a request with this key made the operation before"),
      operation: operationSchema.nullable().describe("null: a dry run"),
    }),
  },
  problems: [
    "not-found",
    "invalid-rule",
    "schedule-not-active",
    "job-not-allowed",
    "request-key-reused",
    "quota-exceeded",
    "too-many-operations",
    "busy",
  ],
  async handle(call, context, caller) {
    const { from: fromAt, to: toAt, policy, dryRun, pacePerSecond, reason } = call.body;
    const scheduleId = await getScheduleId(context, caller, call.params.schedule);
    if (caller.allowedJobs !== null) {
      checkJobAllowed(caller, (await getSchedule(context, caller, call.params.schedule)).definition.job);
    }
    const range = { tenantId: caller.tenantId, scheduleId, fromAt, toAt, policy };
    const found = await estimateBackfill(context.authority, range);
    if (dryRun) {
      if (found.kind !== "estimated") throw problemOf(found, call.params.schedule);
      return { kind: "ok", body: { dryRun, plan: presentPlan(found.estimate, pacePerSecond), operation: null } };
    }
    const estimate = found.kind === "estimated" ? found.estimate : undefined;
    // What cannot be now may have been when the same request came first: the key decides before the bounds do.
    const made = await createBackfill(context.authority, {
      ...range,
      actor: caller.actor,
      reason: reason ?? null,
      pacePerSecond,
      total: estimate === undefined || estimate.capped ? null : estimate.runs,
      ...requestKeyOf("backfill", call.header("idempotency-key"), call.sentBody),
    });
    if (made.kind === "key-reused") throw keyReused();
    if (made.kind === "too-many") {
      throw new Problem("too-many-operations", "Too many operations of this tenant are open; wait, or cancel some", {
        headers: { "retry-after": "60" },
      });
    }
    if (made.kind === "quota") throw quotaProblem(context, made);
    if (made.kind !== "created" && made.kind !== "repeated") throw problemOf(made, call.params.schedule);
    const isRepeated = made.kind === "repeated";
    return {
      kind: "ok",
      headers: {
        location: `/v1/operations/${showId("op", made.operation.id)}`,
        ...(isRepeated ? { "idempotency-replayed": "true" } : {}),
      },
      body: {
        dryRun,
        plan: isRepeated || estimate === undefined ? null : presentPlan(estimate, pacePerSecond),
        operation: presentOperation(made.operation),
      },
    };
  },
});

type Unfit = Exclude<EstimateOutcome, { kind: "estimated" }>;

function problemOf(unfit: Unfit, ref: string): Problem {
  if (unfit.kind === "not-found") return noSuchSchedule(ref);
  if (unfit.kind === "invalid") return faultOf(unfit.fault);
  return new Problem("schedule-not-active", "The schedule is deleted", { more: { status: "deleted" } });
}

function faultOf({ field, message, found, allowed }: RangeFault): Problem {
  return fieldProblem({ field, message, found: showValue(showInstant(found)), allowed });
}
