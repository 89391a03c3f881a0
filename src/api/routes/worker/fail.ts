import { z } from "zod";
import { failRuns } from "../../../authority/attempts/fail.ts";
import { RETRY_AFTER_LIMIT_MS } from "../../../domain/retry.ts";
import { showId } from "../../../kernel/ids.ts";
import { FAIL_BODY } from "../../examples/workers.ts";
import { noFields } from "../../input/no-fields.ts";
import { defineRoute } from "../../route.ts";
import { spokenFields } from "../../worker/attempt-fields.ts";
import { attemptOf, staleFence } from "../../worker/speaker.ts";

export const failAttemptRoute = defineRoute({
  method: "post",
  path: "/v1/worker/fail",
  tag: "workers",
  summary: "Say that an attempt has failed",
  description:
    "A transient failure is tried again as the run's `retry` says, any other ends the run. Secrets of the payload are taken out of code and message. The same attempt is answered the same again.",
  roles: ["worker"],
  callbacks: true,
  whileSuspended: true,
  keepsRunsGoing: true,
  params: noFields,
  query: noFields,
  body: z.strictObject({
    ...spokenFields,
    transient: z.boolean().default(true).describe("Whether another try may help"),
    code: z.string().min(1).default("job-failed").describe("Yours, up to 100 characters; what is longer is cut"),
    message: z.string().default("").describe("For people, up to 4,000 characters; what is longer is cut"),
    retryAfterMs: z
      .int()
      .min(0)
      .max(RETRY_AFTER_LIMIT_MS)
      .optional()
      .describe("Another try before this would not help"),
  }),
  example: FAIL_BODY,
  answer: {
    kind: "ok",
    description: "It stands in the run's history; `canceled`: the run was to be canceled, and is",
    schema: z.strictObject({ runId: z.string(), outcome: z.enum(["recorded", "canceled"]) }),
  },
  problems: ["not-found", "stale-fence", "not-holder"],
  async handle({ body }, context, caller) {
    const attempt = await attemptOf(context, caller, body);
    const { runId, fence } = attempt;
    const secrets = await context.workers.scrubbing.of(attempt);
    const { transient, retryAfterMs } = body;
    const failure = {
      transient,
      code: secrets.scrub(body.code),
      message: secrets.scrub(body.message),
      ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
    };
    const [outcome] = await failRuns(context.authority, [{ runId, fence, failure }]);
    if (outcome!.kind === "stale-fence") throw staleFence();
    // What became of the run is not this attempt's business, and would not be the same at a repeat.
    const canceled = outcome!.kind === "canceled";
    return { kind: "ok", body: { runId: showId("run", runId), outcome: canceled ? "canceled" : "recorded" } };
  },
});
