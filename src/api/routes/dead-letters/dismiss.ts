import { z } from "zod";
import { dismissLetter } from "../../../authority/dead-letters/dismiss.ts";
import { LETTER_STATES } from "../../../domain/dead-letters.ts";
import { showId } from "../../../kernel/ids.ts";
import { WRITERS } from "../../context.ts";
import { DECISION_BODY } from "../../examples/dead-letters.ts";
import { noteSchema, runParams } from "../../input/fields.ts";
import { noFields } from "../../input/no-fields.ts";
import { Problem } from "../../problems/problem.ts";
import { getRunId } from "../../resolve.ts";
import { defineRoute } from "../../route.ts";
import { noSuchLetter } from "./filters.ts";

export const dismissDeadLetterRoute = defineRoute({
  method: "post",
  path: "/v1/dead-letters/{run}/dismiss",
  tag: "dead-letters",
  summary: "Resolve a dead letter without running anything",
  description: "The run stays failed. Dismissing a dismissed letter changes nothing.",
  roles: WRITERS,
  params: runParams,
  query: noFields,
  body: z.strictObject({ reason: noteSchema.optional() }),
  example: DECISION_BODY,
  answer: {
    kind: "ok",
    description: "The letter is resolved",
    schema: z.strictObject({ runId: z.string(), state: z.enum(LETTER_STATES), changed: z.boolean() }),
  },
  problems: ["not-found", "dead-letter-replayed"],
  async handle({ params, body }, context, caller) {
    const runId = getRunId(params.run);
    const request = { tenantId: caller.tenantId, actor: caller.actor, runId, reason: body.reason ?? null };
    const outcome = await dismissLetter(context.authority, request);
    if (outcome.kind === "not-found") throw noSuchLetter(params.run);
    if (outcome.kind === "resolved" && outcome.state !== "dismissed") {
      throw new Problem("dead-letter-replayed", "The run was opened again: there is nothing to dismiss");
    }
    const changed = outcome.kind === "dismissed";
    return { kind: "ok", body: { runId: showId("run", runId), state: "dismissed", changed } };
  },
});
