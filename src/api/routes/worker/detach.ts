import { z } from "zod";
import { detachRuns } from "../../../authority/attempts/detach.ts";
import { showId } from "../../../kernel/ids.ts";
import { DETACH_BODY } from "../../examples/workers.ts";
import { shownInstant } from "../../input/fields.ts";
import { noFields } from "../../input/no-fields.ts";
import { showInstant } from "../../present/instant.ts";
import { Problem } from "../../problems/problem.ts";
import { defineRoute } from "../../route.ts";
import { attemptSchema, fenceSchema, runIdSchema, workerSchema } from "../../worker/attempt-fields.ts";
import { attemptOf, notHolder, staleFence } from "../../worker/speaker.ts";

const LONGEST_MS = 30 * 86_400_000;
/** Who calls back too late is told so, and not that we do not know the token. */
const TOLD_LATE_MS = 3_600_000;

export const detachRoute = defineRoute({
  method: "post",
  path: "/v1/worker/detach",
  tag: "workers",
  summary: "Let an attempt's work go on without its worker",
  description:
    "The attempt stays running, and takes no slot. Whoever does its work says how it ended with the token in the answer, by `callbackDueAt`; or another worker adopts it.",
  roles: ["worker"],
  whileSuspended: true,
  keepsRunsGoing: true,
  params: noFields,
  query: noFields,
  body: z.strictObject({
    runId: runIdSchema,
    attempt: attemptSchema,
    fence: fenceSchema,
    worker: workerSchema,
    callbackWithinMs: z
      .int()
      .min(1_000)
      .max(LONGEST_MS)
      .optional()
      .describe("How long the callback may take; the attempt's deadline where nothing is said, and never beyond that"),
  }),
  example: DETACH_BODY,
  answer: {
    kind: "ok",
    description: "The work is in other hands",
    schema: z.strictObject({
      runId: z.string(),
      callbackDueAt: shownInstant,
      cancelRequested: z.boolean(),
      callback: z.strictObject({
        url: z.url().describe("`/complete`, `/fail`, `/progress`, `/log`, `/upload` and `/stage` follow"),
        token: z.string().describe("`Authorization: Bearer cb_…`, good for this attempt and nothing else"),
      }),
    }),
  },
  problems: ["not-found", "stale-fence", "not-holder", "lease-lapsed"],
  async handle({ body }, context, caller) {
    const { callbackWithinMs, worker } = body;
    // A repeat finds the attempt detached already: that it was this worker's, its fence says.
    const { runId, attempt, fence } = await attemptOf(context, caller, body, "or-detached");
    const [outcome] = await detachRuns(context.authority, [{ runId, fence, worker, callbackWithinMs }]);
    if (outcome!.kind === "stale-fence") throw staleFence();
    if (outcome!.kind === "not-holder") throw notHolder("another", worker);
    if (outcome!.kind === "deadline") throw new Problem("lease-lapsed", "The attempt's deadline has passed");
    const { callbackDueAt, cancelRequested } = outcome!;
    const { tenantId } = caller;
    const endsAt = callbackDueAt + TOLD_LATE_MS;
    return {
      kind: "ok",
      body: {
        runId: showId("run", runId),
        callbackDueAt: showInstant(callbackDueAt),
        cancelRequested,
        callback: {
          url: `${context.publicUrl()}/v1/worker`,
          token: context.workers.callbackTokens.issue({ tenantId, runId, attempt, fence, endsAt }),
        },
      },
    };
  },
});
