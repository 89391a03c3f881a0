import { z } from "zod";
import { OPERATION_STATES } from "../../../domain/operation.ts";
import { listOperations } from "../../../store/reads/operations.ts";
import { READERS } from "../../context.ts";
import { afterSchema, limitSchema } from "../../input/fields.ts";
import { noFields } from "../../input/no-fields.ts";
import { operationSchema, presentOperation } from "../../present/operation.ts";
import { pageAnswer, replyWithPage } from "../../present/page.ts";
import { getScheduleId } from "../../resolve.ts";
import { defineRoute } from "../../route.ts";

export const listOperationsRoute = defineRoute({
  method: "get",
  path: "/v1/operations",
  tag: "operations",
  summary: "List long operations, open and ended, newest first",
  roles: READERS,
  params: noFields,
  query: z.strictObject({
    state: z.enum(OPERATION_STATES).optional(),
    scheduleId: z.string().max(300).optional().describe("Only operations on this schedule"),
    limit: limitSchema,
    after: afterSchema,
  }),
  answer: pageAnswer(operationSchema),
  problems: ["invalid-cursor", "not-found"],
  async handle({ query }, context, caller) {
    const { state, limit } = query;
    const scheduleId =
      query.scheduleId === undefined ? undefined : await getScheduleId(context, caller, query.scheduleId);
    const list = JSON.stringify(["operations", caller.tenantId, state, scheduleId]);
    const afterId = query.after === undefined ? undefined : String(context.cursors.read(list, query.after)[0]);
    const rows = await listOperations(context.db, caller.tenantId, {
      limit: limit + 1,
      ...(afterId === undefined ? {} : { afterId }),
      ...(state === undefined ? {} : { state }),
      ...(scheduleId === undefined ? {} : { scheduleId }),
    });
    return replyWithPage(context, list, { rows, limit, positionOf: (row) => row.id, present: presentOperation });
  },
});
