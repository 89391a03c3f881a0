import { z } from "zod";
import { noteProgress } from "../../../authority/attempts/note-progress.ts";
import { showId } from "../../../kernel/ids.ts";
import { STORABLE_LIMIT, storableJson } from "../../../kernel/storable.ts";
import { PROGRESS_BODY } from "../../examples/workers.ts";
import { noFields } from "../../input/no-fields.ts";
import { fieldProblem } from "../../problems/problem.ts";
import { defineRoute } from "../../route.ts";
import { cancelRequestedSchema, spokenFields } from "../../worker/attempt-fields.ts";
import { attemptOf, readCancelRequested, staleFence } from "../../worker/speaker.ts";

export const progressRoute = defineRoute({
  method: "post",
  path: "/v1/worker/progress",
  tag: "workers",
  summary: "Say how far an attempt is",
  description:
    "The last value is kept with the attempt, without the secrets of its payload. Without a value nothing is noted: it asks whether to go on.",
  roles: ["worker"],
  callbacks: true,
  whileSuspended: true,
  params: noFields,
  query: noFields,
  body: z.strictObject({
    ...spokenFields,
    progress: z
      .unknown()
      .meta({ description: `Any JSON, at most ${STORABLE_LIMIT} characters; none: only a question`, override: {} })
      .optional(),
  }),
  example: PROGRESS_BODY,
  answer: {
    kind: "ok",
    description: "It is noted",
    schema: z.strictObject({
      runId: z.string(),
      outcome: z.literal("noted"),
      cancelRequested: cancelRequestedSchema,
    }),
  },
  problems: ["not-found", "stale-fence", "not-holder"],
  async handle({ body }, context, caller) {
    const attempt = await attemptOf(context, caller, body);
    const noted = (cancelRequested: boolean) =>
      ({ kind: "ok", body: { runId: showId("run", attempt.runId), outcome: "noted", cancelRequested } }) as const;
    if (body.progress === undefined) {
      const cancelRequested = await readCancelRequested(context, caller, attempt);
      if (cancelRequested === undefined) throw staleFence();
      return noted(cancelRequested);
    }
    const secrets = await context.workers.scrubbing.of(attempt);
    const progress = storableJson(secrets.count === 0 ? body.progress : secrets.scrubJson(body.progress));
    if (progress === undefined) {
      const allowed = `at most ${STORABLE_LIMIT} characters of JSON`;
      throw fieldProblem({ field: "progress", message: "is too long", found: "more", allowed });
    }
    const outcome = await noteProgress(context.authority, { ...attempt, progress });
    if (outcome.kind === "stale-fence") throw staleFence();
    return noted(outcome.cancelRequested);
  },
});
