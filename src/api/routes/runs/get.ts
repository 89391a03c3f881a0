import { findLetters } from "../../../store/reads/dead-letters.ts";
import { listEffectsOfRun } from "../../../store/reads/effects.ts";
import { READERS } from "../../context.ts";
import { runParams } from "../../input/fields.ts";
import { noFields } from "../../input/no-fields.ts";
import { presentRun, runSchema } from "../../present/run.ts";
import { getRun } from "../../resolve.ts";
import { defineRoute } from "../../route.ts";

export const getRunRoute = defineRoute({
  method: "get",
  path: "/v1/runs/{run}",
  tag: "runs",
  summary: "Read a run as the authority has it",
  roles: READERS,
  params: runParams,
  query: noFields,
  answer: { kind: "ok", description: "The run", schema: runSchema },
  problems: ["not-found", "history-removed"],
  async handle({ params }, context, caller) {
    const run = await getRun(context, caller, params.run);
    // Only a success has any.
    const effects = run.state === "succeeded" ? await listEffectsOfRun(context.db, caller.tenantId, run.id) : [];
    // Only a run that was tried can have been given up.
    const [letter] = run.attempt === 0 ? [] : await findLetters(context.db, caller.tenantId, [run.id]);
    return { kind: "ok", body: presentRun(run, effects, letter) };
  },
});
