import { z } from "zod";
import { claimRuns } from "../../../authority/attempts/claim.ts";
import { CLAIM_BODY } from "../../examples/workers.ts";
import { noFields } from "../../input/no-fields.ts";
import { defineRoute } from "../../route.ts";
import { workerSchema } from "../../worker/attempt-fields.ts";
import { grantSchema, showGrants, termsOf, termsSchema } from "../../worker/grants.ts";
import { readHint } from "../../worker/hints.ts";

export const claimRoute = defineRoute({
  method: "post",
  path: "/v1/worker/claim",
  tag: "workers",
  summary: "Turn hints into attempts",
  description:
    "Grants as many runs as `slots`; the others go to whoever asks next. Hints that others were faster with, or that are none, grant nothing. A claim whose answer was lost is sent again with its `claimId`, and answered the same.",
  roles: ["worker"],
  whileSuspended: true,
  params: noFields,
  query: noFields,
  body: z.strictObject({
    worker: workerSchema,
    claimId: z.uuid().describe("A fresh UUID for each claim, the same when it is sent again"),
    hints: z.array(z.string().max(1_000)).min(1).max(100).describe("Of the answer to a poll"),
    slots: z.int().min(1).max(100).default(1).describe("How many runs the worker can begin now"),
  }),
  example: CLAIM_BODY,
  answer: {
    kind: "ok",
    description: "Leave to run these attempts, each on a lease",
    schema: z.strictObject({ grants: z.array(grantSchema), terms: termsSchema }),
  },
  problems: [],
  async handle({ body }, context, { tenantId }) {
    const { worker, claimId, slots } = body;
    const hints = body.hints.flatMap((text) => readHint(context.cursors, tenantId, text) ?? []);
    context.workers.presence.works({ tenantId, name: worker });
    const { grants } = await claimRuns(context.authority, {
      claimId,
      worker,
      slots: { remote: slots },
      hints,
      // Whether it is one is not for callers to know: what they send twice is found by its id.
      repeated: true,
      only: { tenantId, class: "remote" },
    });
    return { kind: "ok", body: { grants: await showGrants(context, grants), terms: termsOf(context) } };
  },
});
