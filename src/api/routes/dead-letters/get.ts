import { findLetters, hasOwnPayload, readLetterHistory } from "../../../store/reads/dead-letters.ts";
import { findRun, listAttempts } from "../../../store/reads/runs.ts";
import { labelsOf } from "../../actors.ts";
import { READERS } from "../../context.ts";
import { runParams } from "../../input/fields.ts";
import { noFields } from "../../input/no-fields.ts";
import { letterDetailSchema, presentDetail } from "../../present/dead-letter.ts";
import { getRunId } from "../../resolve.ts";
import { defineRoute } from "../../route.ts";
import { noSuchLetter } from "./filters.ts";

export const getDeadLetterRoute = defineRoute({
  method: "get",
  path: "/v1/dead-letters/{run}",
  tag: "dead-letters",
  summary: "Show a run that was given up: why, its attempts, and what was decided about it",
  roles: READERS,
  params: runParams,
  query: noFields,
  answer: { kind: "ok", description: "The dead letter with its run", schema: letterDetailSchema },
  problems: ["not-found"],
  async handle({ params }, context, caller) {
    const { db } = context;
    const runId = getRunId(params.run);
    const [letter] = await findLetters(db, caller.tenantId, [runId]);
    if (letter === undefined) throw noSuchLetter(params.run);
    const run = await findRun(db, caller.tenantId, runId);
    const attempts = await listAttempts(db, caller.tenantId, runId);
    const history = await readLetterHistory(db, runId);
    const labelOf = await labelsOf(
      context,
      caller.tenantId,
      history.map((one) => one.resolvedBy),
    );
    const detail = { letter, run, attempts, history, hasOwnPayload: await hasOwnPayload(db, runId), labelOf };
    return { kind: "ok", body: presentDetail(detail) };
  },
});
