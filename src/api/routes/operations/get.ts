import { findOperation } from "../../../store/reads/operations.ts";
import { READERS } from "../../context.ts";
import { noFields } from "../../input/no-fields.ts";
import { operationSchema, presentOperation } from "../../present/operation.ts";
import { getOperationId, noSuchOperation } from "../../resolve.ts";
import { defineRoute } from "../../route.ts";
import { operationParams } from "./params.ts";

export const getOperationRoute = defineRoute({
  method: "get",
  path: "/v1/operations/{operation}",
  tag: "operations",
  summary: "Say how far a long operation is",
  roles: READERS,
  params: operationParams,
  query: noFields,
  answer: { kind: "ok", description: "The operation as it stands", schema: operationSchema },
  problems: ["not-found"],
  async handle({ params }, context, caller) {
    const found = await findOperation(context.db, caller.tenantId, getOperationId(params.operation));
    if (found === undefined) throw noSuchOperation(params.operation);
    return { kind: "ok", body: presentOperation(found) };
  },
});
