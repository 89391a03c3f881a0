import { z } from "zod";
import { OPERATION_STATES } from "../../../domain/operation.ts";
import { findOperationsOfRequest, listOperations } from "../../../store/reads/operations.ts";
import { READERS } from "../../context.ts";
import { afterSchema, limitSchema } from "../../input/fields.ts";
import { noFields } from "../../input/no-fields.ts";
import { storedOperationKeys } from "../../input/request-key.ts";
import { operationSchema, presentOperation } from "../../present/operation.ts";
import { pageAnswer, replyWithPage } from "../../present/page.ts";
import { Problem } from "../../problems/problem.ts";
import { getScheduleId } from "../../resolve.ts";
import { defineRoute } from "../../route.ts";

export const listOperationsRoute = defineRoute({
  method: "get",
  path: "/v1/operations",
  tag: "operations",
  summary: "List long operations, open and ended, newest first",
  description:
    "With `requestKey` (and `scheduleId` for a backfill): what a request with that Idempotency-Key began, or 404 when it was not accepted.",
  roles: READERS,
  params: noFields,
  query: z.strictObject({
    state: z.enum(OPERATION_STATES).optional(),
    scheduleId: z.string().max(300).optional().describe("Only operations on this schedule"),
    requestKey: z.string().max(200).optional(),
    limit: limitSchema,
    after: afterSchema,
  }),
  answer: pageAnswer(operationSchema),
  problems: ["invalid-cursor", "not-accepted", "not-found"],
  async handle({ query }, context, caller) {
    const { state, limit } = query;
    const scheduleId =
      query.scheduleId === undefined ? undefined : await getScheduleId(context, caller, query.scheduleId);
    if (query.requestKey !== undefined) {
      const scope = scheduleId === undefined ? "tenant" : "schedule";
      const keys = storedOperationKeys(scope, query.requestKey);
      const items = await findOperationsOfRequest(context.db, caller.tenantId, scheduleId ?? caller.tenantId, keys);
      if (items.length > 0)
        return { kind: "ok", body: { items: items.map(presentOperation), next: null, source: "authority" } };
      throw new Problem("not-accepted", "No operation was begun under this key: repeating the request is safe");
    }
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
