import { z } from "zod";
import { SCHEDULE_STATUSES } from "../../../domain/states.ts";
import { findSchedule, findSubjectOfRequest, listSchedules } from "../../../store/reads/schedules.ts";
import { READERS } from "../../context.ts";
import { afterSchema, limitSchema } from "../../input/fields.ts";
import { readLabel } from "../../input/label.ts";
import { noFields } from "../../input/no-fields.ts";
import { storedKey } from "../../input/request-key.ts";
import { pageAnswer, replyWithPage } from "../../present/page.ts";
import { presentSchedule, scheduleSchema } from "../../present/schedule.ts";
import { Problem } from "../../problems/problem.ts";
import { defineRoute } from "../../route.ts";

export const listSchedulesRoute = defineRoute({
  method: "get",
  path: "/v1/schedules",
  tag: "schedules",
  summary: "List schedules, newest first",
  description: "With `requestKey`: what a create with that Idempotency-Key made, or 404 when it was not accepted.",
  roles: READERS,
  params: noFields,
  query: z.strictObject({
    status: z.enum(SCHEDULE_STATUSES).optional().describe("Default: all but deleted"),
    fault: z
      .enum(["true", "false"])
      .optional()
      .describe("`true`: only those whose rule cannot be computed at the moment; `false`: only the others"),
    label: z.string().max(300).optional().describe("`name=value`"),
    requestKey: z.string().max(200).optional(),
    limit: limitSchema,
    after: afterSchema,
  }),
  answer: pageAnswer(scheduleSchema),
  problems: ["invalid-cursor", "not-accepted"],
  async handle({ query }, context, caller) {
    if (query.requestKey !== undefined) {
      const id = await findSubjectOfRequest(context.db, caller.tenantId, storedKey("schedule", query.requestKey));
      const schedule = id && (await findSchedule(context.db, caller.tenantId, id));
      if (!schedule)
        throw new Problem("not-accepted", "No schedule was created under this key: repeating the request is safe");
      return {
        kind: "ok",
        body: { items: [presentSchedule(schedule, context.zones)], next: null, source: "authority" },
      };
    }
    const list = JSON.stringify(["schedules", caller.tenantId, query.status, query.label, query.fault]);
    const afterId = query.after === undefined ? undefined : String(context.cursors.read(list, query.after)[0]);
    const rows = await listSchedules(context.db, caller.tenantId, {
      limit: query.limit + 1,
      ...(afterId === undefined ? {} : { afterId }),
      ...(query.status === undefined ? {} : { status: query.status }),
      ...(query.fault === undefined ? {} : { fault: query.fault === "true" }),
      ...(query.label === undefined ? {} : { label: readLabel(query.label) }),
    });
    return replyWithPage(context, list, {
      rows,
      limit: query.limit,
      positionOf: (row) => row.id,
      present: (row) => presentSchedule(row, context.zones),
    });
  },
});
