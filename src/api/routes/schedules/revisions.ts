import { z } from "zod";
import { listRevisions } from "../../../store/reads/schedules.ts";
import { READERS } from "../../context.ts";
import { afterSchema, limitSchema, scheduleParams } from "../../input/fields.ts";
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
  answer: {
    kind: "ok",
    description: "A page",
    schema: z.strictObject({
      items: z.array(revisionSchema),
      next: z.string().nullable(),
      source: z.literal("authority"),
    }),
  },
  problems: ["not-found", "invalid-cursor"],
  async handle({ params, query }, context, caller) {
    const { id } = await getSchedule(context, caller, params.schedule);
    const list = JSON.stringify(["revisions", id]);
    const before = query.after === undefined ? undefined : Number(context.cursors.read(list, query.after)[0]);
    const rows = await listRevisions(context.db, caller.tenantId, id, {
      limit: query.limit + 1,
      ...(before === undefined ? {} : { beforeRevision: before }),
    });
    const items = rows.slice(0, query.limit);
    const next = rows.length > items.length ? context.cursors.write(list, [items.at(-1)!.revision]) : null;
    return { kind: "ok", body: { items: items.map(presentRevision), next, source: "authority" } };
  },
});
