import { z } from "zod";
import { createLettersOperation } from "../../../authority/operations/dead-letters/create.ts";
import { estimateLetters } from "../../../authority/operations/dead-letters/estimate.ts";
import { DEFAULT_REPLAY_PACE, MOST_REPLAY_PACE } from "../../../domain/dead-letters.ts";
import { showId } from "../../../kernel/ids.ts";
import { type ApiContext, type Caller, WRITERS } from "../../context.ts";
import { DISMISSAL_BODY, LETTERS_BODY } from "../../examples/dead-letters.ts";
import { idempotencyHeaders, noteSchema } from "../../input/fields.ts";
import { noFields } from "../../input/no-fields.ts";
import { keyReused, requestKeyOf } from "../../input/request-key.ts";
import { lettersPlanSchema, presentLettersPlan } from "../../present/dead-letter.ts";
import { operationSchema, presentOperation } from "../../present/operation.ts";
import { Problem } from "../../problems/problem.ts";
import { quotaProblem } from "../../problems/quota.ts";
import { getSchedule } from "../../resolve.ts";
import { type Answer, defineRoute, type Reply } from "../../route.ts";
import { filterOf, letterFields, ofScheduleField } from "./filters.ts";

/** Decisions about many dead letters at once: a dry run, or the operation that does it. */

const bodySchema = z.strictObject({
  filter: z
    .strictObject({ scheduleId: ofScheduleField, ...letterFields })
    .describe("Open dead letters that are meant; `{}` means all of the tenant's"),
  dryRun: z.boolean().default(true).describe("Change nothing, and say what would be done"),
  reason: noteSchema.optional(),
});

const answer: Answer = {
  kind: "ok",
  description: "What would be done, or the operation that does it",
  schema: z.strictObject({
    dryRun: z.boolean(),
    plan: lettersPlanSchema.nullable().describe("null: a request with this key made the operation before"),
    operation: operationSchema.nullable().describe("null: a dry run"),
  }),
};

const shared = {
  method: "post",
  tag: "dead-letters",
  roles: WRITERS,
  params: noFields,
  query: noFields,
  headers: idempotencyHeaders,
  answer,
  problems: ["not-found", "request-key-reused", "quota-exceeded", "too-many-operations"],
} as const;

export const replayDeadLettersRoute = defineRoute({
  ...shared,
  path: "/v1/dead-letters/replay",
  summary: "Run again many runs that were given up",
  description:
    "Without `dryRun: false` it only says what would be done. Then it is an operation: the letters that are open now are replayed one by one, oldest failure first, at the pace given. What fails later, or fails again, is not part of it.",
  body: bodySchema.extend({
    pacePerSecond: z.int().min(1).max(MOST_REPLAY_PACE).default(DEFAULT_REPLAY_PACE).describe("Most runs a second"),
  }),
  example: LETTERS_BODY,
  handle(call, context, caller) {
    return decide("replay", call.body.pacePerSecond, call, context, caller);
  },
});

export const dismissDeadLettersRoute = defineRoute({
  ...shared,
  path: "/v1/dead-letters/dismiss",
  summary: "Resolve many dead letters without running anything",
  description:
    "Without `dryRun: false` it only says what would be done. Then it is an operation on the letters that are open now; their runs stay failed.",
  body: bodySchema,
  example: DISMISSAL_BODY,
  handle(call, context, caller) {
    return decide("dismiss", null, call, context, caller);
  },
});

type Call = { body: z.output<typeof bodySchema>; sentBody: unknown; header(name: string): string | undefined };

async function decide(
  kind: "replay" | "dismiss",
  pacePerSecond: number | null,
  call: Call,
  context: ApiContext,
  caller: Caller,
): Promise<Reply> {
  const { dryRun, reason = null } = call.body;
  const { tenantId, actor } = caller;
  // It is written down: a schedule of another tenant is as unknown as one that never was.
  if (call.body.filter.scheduleId !== undefined) await getSchedule(context, caller, call.body.filter.scheduleId);
  const filter = await filterOf(context, caller, call.body.filter, "filter.");
  const estimate = await estimateLetters(context.authority, tenantId, kind, filter);
  const plan = presentLettersPlan(estimate, pacePerSecond);
  if (dryRun) return { kind: "ok", body: { dryRun, plan, operation: null } };
  const total = estimate.capped ? null : estimate.letters;
  const key = requestKeyOf(`dead-letters.${kind}`, call.header("idempotency-key"), call.sentBody);
  const wanted = { tenantId, actor, kind, filter, reason, pacePerSecond, total, ...key };
  const made = await createLettersOperation(context.authority, wanted);
  if (made.kind === "key-reused") throw keyReused();
  if (made.kind === "too-many") {
    throw new Problem("too-many-operations", "Too many operations of this tenant are open; wait, or cancel some", {
      headers: { "retry-after": "60" },
    });
  }
  if (made.kind === "quota") throw quotaProblem(context, made);
  if (made.kind === "not-found") throw new Problem("not-found", "The operation of this key is not there any more");
  const isRepeated = made.kind === "repeated";
  return {
    kind: "ok",
    headers: {
      location: `/v1/operations/${showId("op", made.operation.id)}`,
      ...(isRepeated ? { "idempotency-replayed": "true" } : {}),
    },
    body: { dryRun, plan: isRepeated ? null : plan, operation: presentOperation(made.operation) },
  };
}
