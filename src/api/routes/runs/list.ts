import { z } from "zod";
import { findRun } from "../../../store/reads/runs.ts";
import { findSubjectOfRequest } from "../../../store/reads/schedules.ts";
import { readWatermark } from "../../../store/reads/status.ts";
import { READERS } from "../../context.ts";
import { noFields } from "../../input/no-fields.ts";
import { storedKey } from "../../input/request-key.ts";
import { showInstant } from "../../present/instant.ts";
import { presentListedRun } from "../../present/run.ts";
import { Problem } from "../../problems/problem.ts";
import { getScheduleId } from "../../resolve.ts";
import { defineRoute } from "../../route.ts";
import { pageOfRuns, runFilters, runPageAnswer } from "./page.ts";

export const listRunsRoute = defineRoute({
  method: "get",
  path: "/v1/runs",
  tag: "runs",
  summary: "List runs by nominal instant, latest first",
  description:
    "With `requestKey` (and `scheduleId` for a run-now): what a request with that Idempotency-Key made, or 404 when it was not accepted.",
  roles: READERS,
  params: noFields,
  query: runFilters.extend({
    scheduleId: z.string().max(300).optional().describe("Only runs of this schedule"),
    requestKey: z.string().max(200).optional(),
  }),
  answer: runPageAnswer,
  problems: ["invalid-cursor", "not-accepted", "not-found", "busy"],
  async handle({ query }, context, caller) {
    const { scheduleId: ref, requestKey, ...filters } = query;
    const scheduleId = ref === undefined ? undefined : await getScheduleId(context, caller, ref);
    if (requestKey === undefined) return pageOfRuns(context, caller, filters, scheduleId);
    const key = storedKey(scheduleId === undefined ? "run" : "run-now", requestKey);
    const runId = await findSubjectOfRequest(context.db, scheduleId ?? caller.tenantId, key);
    // The run is looked up within the tenant, so a foreign schedule's key finds nothing.
    const run = runId && (await findRun(context.db, caller.tenantId, runId));
    if (!run) throw new Problem("not-accepted", "No run was created under this key: repeating the request is safe");
    const watermark = showInstant(await readWatermark(context.db));
    return { kind: "ok", body: { items: [presentListedRun(run)], next: null, watermark, source: "authority" } };
  },
});
