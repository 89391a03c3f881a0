import { z } from "zod";
import { cancelRuns } from "../../../authority/runs/cancel.ts";
import { showId } from "../../../kernel/ids.ts";
import { WRITERS } from "../../context.ts";
import { runParams, shownInstant } from "../../input/fields.ts";
import { noFields } from "../../input/no-fields.ts";
import { showInstantOrNull } from "../../present/instant.ts";
import { Problem } from "../../problems/problem.ts";
import { getRunId, noSuchRun } from "../../resolve.ts";
import { defineRoute } from "../../route.ts";

export const cancelRunRoute = defineRoute({
  method: "post",
  path: "/v1/runs/{run}/cancel",
  tag: "runs",
  summary: "Ask for a run to be canceled",
  description:
    "A waiting run is canceled at once (`accepted`); a running one when its worker yields or its lease ends. Of a detached one no worker hears: it ends when whoever does the work says so, or at `callbackDueAt`; a `complete` before that still counts.",
  roles: WRITERS,
  params: runParams,
  query: noFields,
  body: z.strictObject({}),
  answer: {
    kind: "ok",
    description: "The request stands",
    schema: z.strictObject({
      runId: z.string(),
      requested: z.literal(true),
      accepted: z.boolean(),
      callbackDueAt: shownInstant
        .nullable()
        .describe("When a detached run ends at the latest; null: it is not detached"),
    }),
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
    const accepted = outcome.kind === "accepted";
    const callbackDueAt = outcome.kind === "requested" ? showInstantOrNull(outcome.callbackDueAt ?? null) : null;
    return { kind: "ok", body: { runId: showId("run", runId), requested: true, accepted, callbackDueAt } };
  },
});
