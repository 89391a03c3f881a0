import { z } from "zod";
import { listAttempts } from "../../../store/reads/runs.ts";
import { READERS } from "../../context.ts";
import { runParams } from "../../input/fields.ts";
import { noFields } from "../../input/no-fields.ts";
import { attemptSchema, presentAttempt } from "../../present/run.ts";
import { getRun } from "../../resolve.ts";
import { defineRoute } from "../../route.ts";

export const listAttemptsRoute = defineRoute({
  method: "get",
  path: "/v1/runs/{run}/attempts",
  tag: "runs",
  summary: "List a run's attempts, first to last",
  roles: READERS,
  params: runParams,
  query: noFields,
  answer: {
    kind: "ok",
    description: "All attempts",
    schema: z.strictObject({ items: z.array(attemptSchema), source: z.literal("authority") }),
  },
  problems: ["not-found", "history-removed"],
  async handle({ params }, context, caller) {
    const run = await getRun(context, caller, params.run);
    const attempts = await listAttempts(context.db, caller.tenantId, run.id);
    return { kind: "ok", body: { items: attempts.map(presentAttempt), source: "authority" } };
  },
});
