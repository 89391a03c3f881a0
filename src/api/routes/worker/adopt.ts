import { z } from "zod";
import { adoptRuns } from "../../../authority/attempts/adopt.ts";
import { ADOPT_BODY } from "../../examples/workers.ts";
import { noFields } from "../../input/no-fields.ts";
import { Problem } from "../../problems/problem.ts";
import { defineRoute } from "../../route.ts";
import { attemptSchema, fenceSchema, runIdSchema, workerSchema } from "../../worker/attempt-fields.ts";
import { grantSchema, showGrants, termsOf, termsSchema } from "../../worker/grants.ts";
import { attemptOf, leaseLapsed, staleFence } from "../../worker/speaker.ts";

export const adoptRoute = defineRoute({
  method: "post",
  path: "/v1/worker/adopt",
  tag: "workers",
  summary: "Take over an attempt that was detached",
  description:
    "With the same attempt and fence, and a fresh lease: the worker sends heartbeats for it and says how it ended. The same worker is answered the same again.",
  roles: ["worker"],
  whileSuspended: true,
  keepsRunsGoing: true,
  params: noFields,
  query: noFields,
  body: z.strictObject({ runId: runIdSchema, attempt: attemptSchema, fence: fenceSchema, worker: workerSchema }),
  example: ADOPT_BODY,
  answer: {
    kind: "ok",
    description: "The attempt is this worker's",
    schema: z.strictObject({ grant: grantSchema, terms: termsSchema, cancelRequested: z.boolean() }),
  },
  problems: ["not-found", "stale-fence", "not-detached", "lease-lapsed"],
  async handle({ body }, context, caller) {
    const { worker } = body;
    const { runId, fence } = await attemptOf(context, caller, body, "anybodys");
    const [outcome] = await adoptRuns(context.authority, [{ runId, fence, worker }]);
    switch (outcome!.kind) {
      case "stale-fence":
        throw staleFence();
      case "lease-lapsed":
        throw leaseLapsed();
      case "not-detached":
        throw new Problem("not-detached", "Another worker holds the attempt, and has not detached it");
      case "adopted": {
        const { grant, cancelRequested } = outcome!;
        context.workers.presence.works({ tenantId: caller.tenantId, name: worker });
        const [shown] = await showGrants(context, [grant]);
        // Its payload could not be opened, and so it has failed.
        if (shown === undefined) throw staleFence();
        return { kind: "ok", body: { grant: shown, terms: termsOf(context), cancelRequested } };
      }
    }
  },
});
