import { z } from "zod";
import { replayRun } from "../../../authority/dead-letters/replay.ts";
import { showId } from "../../../kernel/ids.ts";
import { WRITERS } from "../../context.ts";
import { DECISION_BODY } from "../../examples/dead-letters.ts";
import { idempotencyHeaders, noteSchema, runParams } from "../../input/fields.ts";
import { noFields } from "../../input/no-fields.ts";
import { keyReused, requestKeyOf } from "../../input/request-key.ts";
import { RUN_STATES } from "../../present/run.ts";
import { Problem } from "../../problems/problem.ts";
import { quotaProblem } from "../../problems/quota.ts";
import { getRunId } from "../../resolve.ts";
import { defineRoute } from "../../route.ts";
import { noSuchLetter } from "./filters.ts";

export const replayDeadLetterRoute = defineRoute({
  method: "post",
  path: "/v1/dead-letters/{run}/replay",
  tag: "dead-letters",
  summary: "Run again what was given up",
  description:
    "The same run, of the revision it was made under, with a fresh retry budget; attempts are numbered on. It waits its turn behind whatever is open, and its start deadline does not count. Also where its schedule is paused or finished, and where the letter was dismissed.",
  roles: WRITERS,
  params: runParams,
  query: noFields,
  headers: idempotencyHeaders,
  body: z.strictObject({ reason: noteSchema.optional() }),
  example: DECISION_BODY,
  answer: {
    kind: "ok",
    description: "The run is open again, also when an earlier request with this key opened it",
    schema: z.strictObject({ runId: z.string(), state: z.enum(RUN_STATES) }),
  },
  problems: [
    "not-found",
    "run-not-failed",
    "schedule-not-active",
    "history-removed",
    "request-key-reused",
    "quota-exceeded",
    "busy",
  ],
  async handle(call, context, caller) {
    const runId = getRunId(call.params.run);
    const outcome = await replayRun(context.authority, {
      tenantId: caller.tenantId,
      actor: caller.actor,
      runId,
      reason: call.body.reason ?? null,
      ...requestKeyOf("replay", call.header("idempotency-key"), call.sentBody),
    });
    switch (outcome.kind) {
      case "replayed":
        return { kind: "ok", body: { runId: showId("run", runId), state: outcome.state } };
      case "repeated": {
        const headers = { "idempotency-replayed": "true" };
        return { kind: "ok", headers, body: { runId: showId("run", runId), state: outcome.state } };
      }
      case "not-failed":
        throw new Problem("run-not-failed", `The run is ${outcome.state}: only a failed one can be replayed`, {
          more: { state: outcome.state },
        });
      case "schedule-deleted":
        throw new Problem("schedule-not-active", "The schedule is deleted: it makes no more runs", {
          more: { status: "deleted" },
        });
      case "history-removed":
        throw new Problem("history-removed", "The run is older than the history that is kept");
      case "quota":
      case "unfit":
        throw quotaProblem(context, outcome);
      case "key-reused":
        throw keyReused();
      case "not-found":
        throw noSuchLetter(call.params.run);
    }
  },
});
