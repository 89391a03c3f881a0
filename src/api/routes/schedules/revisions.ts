import { z } from "zod";
import { listRevisions } from "../../../store/reads/schedules.ts";
import { READERS } from "../../context.ts";
import { afterSchema, limitSchema, scheduleParams } from "../../input/fields.ts";
import { pageAnswer, replyWithPage } from "../../present/page.ts";
import { presentRevision, revisionSchema } from "../../present/schedule.ts";
import { getSchedule } from "../../resolve.ts";
import { defineRoute } from "../../route.ts";

export const listRevisionsRoute = defineRoute({
  method: "get",
  path: "/v1/schedules/{schedule}/revisions",
  tag: "schedules",
  summary: "List a schedule's revisions, newest first",
  roles: READERS,
  params: scheduleParams,
  query: z.strictObject({ limit: limitSchema, after: afterSchema }),
  answer: pageAnswer(revisionSchema),
  problems: ["not-found", "invalid-cursor"],
  async handle({ params, query }, context, caller) {
    const { id } = await getSchedule(context, caller, params.schedule);
    const list = JSON.stringify(["revisions", id]);
    const before = query.after === undefined ? undefined : Number(context.cursors.read(list, query.after)[0]);
    const rows = await listRevisions(context.db, caller.tenantId, id, {
      limit: query.limit + 1,
      ...(before === undefined ? {} : { beforeRevision: before }),
    });
    return replyWithPage(context, list, {
      rows,
      limit: query.limit,
      positionOf: (row) => row.revision,
      present: presentRevision,
    });
  },
});
