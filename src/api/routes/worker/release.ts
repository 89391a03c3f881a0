import { z } from "zod";
import { releaseRuns } from "../../../authority/attempts/release.ts";
import { showId } from "../../../kernel/ids.ts";
import { RELEASE_BODY } from "../../examples/workers.ts";
import { noFields } from "../../input/no-fields.ts";
import { defineRoute } from "../../route.ts";
import { attemptSchema, fenceSchema, runIdSchema, workerSchema } from "../../worker/attempt-fields.ts";
import { attemptOf, notHolder, staleFence } from "../../worker/speaker.ts";

export const releaseRoute = defineRoute({
  method: "post",
  path: "/v1/worker/release",
  tag: "workers",
  summary: "Give an attempt back untried",
  description:
    "For a worker that stops, once the attempt's work has: the run starts again at once elsewhere and spends no try. The same attempt is answered the same again.",
  roles: ["worker"],
  whileSuspended: true,
  keepsRunsGoing: true,
  params: noFields,
  query: noFields,
  body: z.strictObject({ runId: runIdSchema, attempt: attemptSchema, fence: fenceSchema, worker: workerSchema }),
  example: RELEASE_BODY,
  answer: {
    kind: "ok",
    description: "It is nobody's any more; `canceled`: the run was to be canceled, and is",
    schema: z.strictObject({ runId: z.string(), outcome: z.enum(["released", "canceled"]) }),
  },
  problems: ["not-found", "stale-fence", "not-holder"],
  async handle({ body }, context, caller) {
    const { runId, fence } = await attemptOf(context, caller, body);
    const [outcome] = await releaseRuns(context.authority, [{ runId, fence, worker: body.worker }]);
    if (outcome!.kind === "stale-fence") throw staleFence();
    if (outcome!.kind === "not-holder") throw notHolder(null, body.worker);
    // That it was given back too often, and has failed, is the run's matter.
    const canceled = outcome!.kind === "canceled";
    return { kind: "ok", body: { runId: showId("run", runId), outcome: canceled ? "canceled" : "released" } };
  },
});
