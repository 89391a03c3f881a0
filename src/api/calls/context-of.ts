import type { Request } from "express";
import type { ApiContext, Caller } from "../context.ts";
import type { ProblemCode } from "../problems/catalogue.ts";
import { requestIdOf } from "../request-id.ts";
import { addressOf } from "./address.ts";

/** What one call's handler may reach: what its verbs write down says where they were asked. */
export function contextOf(context: ApiContext, request: Request, caller?: Caller): ApiContext {
  const credential = caller?.credential;
  const authority = context.authority.from({
    requestId: requestIdOf(request.res!),
    address: addressOf(request),
    keyId: credential?.kind === "key" ? credential.keyId : null,
    actingFor: caller?.actingFor ?? false,
  });
  return Object.create(context, { authority: { value: authority, enumerable: true } }) as ApiContext;
}

/** Who was turned away: counted and logged, never a row, for anybody could fill a table with those. */
export function noteRefusal(context: ApiContext, request: Request, code: ProblemCode): void {
  context.metrics.httpRefusals.inc({ code });
  const { method, path } = request;
  const requestId = requestIdOf(request.res!);
  context.log.info(
    { requestId, address: addressOf(request), method, path: path.slice(0, 200), code },
    "a call was refused",
  );
}
