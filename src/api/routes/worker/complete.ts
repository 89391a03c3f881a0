import { z } from "zod";
import { completeRuns } from "../../../authority/attempts/complete.ts";
import { readId, showId } from "../../../kernel/ids.ts";
import { COMPLETE_BODY } from "../../examples/workers.ts";
import { noFields } from "../../input/no-fields.ts";
import { Problem } from "../../problems/problem.ts";
import { defineRoute } from "../../route.ts";
import { sha256Schema, spokenFields } from "../../worker/attempt-fields.ts";
import { unusable } from "../../worker/outputs.ts";
import { attemptOf, leaseLapsed, staleFence } from "../../worker/speaker.ts";

export const completeAttemptRoute = defineRoute({
  method: "post",
  path: "/v1/worker/complete",
  tag: "workers",
  summary: "Say that an attempt has succeeded",
  description:
    "Publishes its staged output, if it has one, as the run's one result. The same attempt with the same checksum is answered the same again.",
  roles: ["worker"],
  callbacks: true,
  whileSuspended: true,
  keepsRunsGoing: true,
  params: noFields,
  query: noFields,
  body: z.strictObject({
    ...spokenFields,
    output: z
      .strictObject({ objectId: z.string().max(100).describe("As staging it answered"), sha256: sha256Schema })
      .nullable()
      .default(null)
      .describe("What was staged; null: the run has no result"),
  }),
  example: COMPLETE_BODY,
  answer: {
    kind: "ok",
    description: "The run has succeeded",
    schema: z.strictObject({ runId: z.string(), outcome: z.literal("accepted") }),
  },
  problems: ["not-found", "stale-fence", "result-conflict", "lease-lapsed", "not-holder", "output-unusable"],
  async handle({ body }, context, caller) {
    const { runId, fence } = await attemptOf(context, caller, body);
    const output = body.output && { objectId: readObjectId(body.output.objectId), sha256: body.output.sha256 };
    const [outcome] = await completeRuns(context.authority, [{ runId, fence, output }]);
    switch (outcome!.kind) {
      case "accepted":
      case "already-accepted":
        return { kind: "ok", body: { runId: showId("run", runId), outcome: "accepted" } };
      case "result-conflict":
        throw new Problem("result-conflict", "This attempt's result was accepted before, with another checksum");
      case "stale-fence":
        throw staleFence();
      case "lease-lapsed":
        throw leaseLapsed();
      case "object-unusable":
        throw unusable(outcome!.found);
    }
  },
});

function readObjectId(shown: string) {
  const id = readId("obj", shown);
  if (id === undefined) throw unusable("no such object");
  return id;
}
