import { z } from "zod";
import { cancelOperation } from "../../../authority/operations/cancel-operation.ts";
import { WRITERS } from "../../context.ts";
import { noFields } from "../../input/no-fields.ts";
import { operationSchema, presentOperation } from "../../present/operation.ts";
import { Problem } from "../../problems/problem.ts";
import { getOperationId, noSuchOperation } from "../../resolve.ts";
import { defineRoute } from "../../route.ts";
import { operationParams } from "./params.ts";

export const cancelOperationRoute = defineRoute({
  method: "post",
  path: "/v1/operations/{operation}/cancel",
  tag: "operations",
  summary: "End a long operation before it is done",
  description:
    "It ends between two steps, and what it has done stays done. Canceling a canceled operation changes nothing.",
  roles: WRITERS,
  params: operationParams,
  query: noFields,
  body: z.strictObject({}),
  answer: {
    kind: "ok",
    description: "The canceled operation",
    schema: z.strictObject({ operation: operationSchema, changed: z.boolean() }),
  },
  problems: ["not-found", "operation-ended", "busy"],
  async handle({ params }, context, caller) {
    const outcome = await cancelOperation(context.authority, {
      tenantId: caller.tenantId,
      actor: caller.actor,
      operationId: getOperationId(params.operation),
    });
    if (outcome.kind === "not-found") throw noSuchOperation(params.operation);
    const { operation } = outcome;
    if (outcome.kind === "ended") {
      throw new Problem("operation-ended", `The operation is ${operation.state}`, { more: { state: operation.state } });
    }
    return { kind: "ok", body: { operation: presentOperation(operation), changed: outcome.kind === "canceled" } };
  },
});
