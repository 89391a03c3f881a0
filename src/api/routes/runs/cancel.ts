import { z } from "zod";
import { cancelRuns } from "../../../authority/runs/cancel.ts";
import { showId } from "../../../kernel/ids.ts";
import { WRITERS } from "../../context.ts";
import { runParams } from "../../input/fields.ts";
import { noFields } from "../../input/no-fields.ts";
import { Problem } from "../../problems/problem.ts";
import { getRunId, noSuchRun } from "../../resolve.ts";
import { defineRoute } from "../../route.ts";

export const cancelRunRoute = defineRoute({
  method: "post",
  path: "/v1/runs/{run}/cancel",
  tag: "runs",
  summary: "Ask for a run to be canceled",
  description:
    "A waiting run is canceled at once (`accepted`); a running one when its worker yields or its lease ends.",
  roles: WRITERS,
  params: runParams,
  query: noFields,
  body: z.strictObject({}),
  answer: {
    kind: "ok",
    description: "The request stands",
    schema: z.strictObject({ runId: z.string(), requested: z.literal(true), accepted: z.boolean() }),
  },
  problems: ["not-found", "run-ended"],
  async handle({ params }, context, caller) {
    const runId = getRunId(params.run);
    const { tenantId, actor } = caller;
    const [outcome] = await cancelRuns(context.authority, [{ tenantId, runId, actor }]);
    if (outcome === undefined || outcome.kind === "not-found") throw noSuchRun(params.run);
    if (outcome.kind === "too-late") {
      throw new Problem("run-ended", `The run is ${outcome.state}`, { more: { state: outcome.state } });
    }
    return {
      kind: "ok",
      body: { runId: showId("run", runId), requested: true, accepted: outcome.kind === "accepted" },
    };
  },
});
