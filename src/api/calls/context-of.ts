import type { Request } from "express";
import type { Authority } from "../../authority/authority.ts";
import type { ApiContext, Caller, ServerContext } from "../context.ts";
import type { ProblemCode } from "../problems/catalogue.ts";
import { requestIdOf } from "../request-id.ts";
import type { Route } from "../route.ts";
import { addressOf } from "./address.ts";

/**
 * What one call's handler may reach. What its verbs write down says where they were asked; what it reads is the caller's
 * tenant's, also through the authority. Without a caller, and where the route says so, reads see everything.
 */
export function contextOf(context: ServerContext, request: Request, caller?: Caller, route?: Route): ApiContext {
  const credential = caller?.credential;
  const authority = context.authority.from({
    requestId: requestIdOf(request.res!),
    address: addressOf(request),
    keyId: credential?.kind === "key" ? credential.keyId : null,
    actingFor: caller?.actingFor ?? false,
  });
  if (caller === undefined || route?.sees === "every-tenant") return beside(context, { authority });
  const db = context.readers(caller.tenantId);
  return beside(context, { db, authority: beside(authority, { db: db as Authority["db"] }) });
}

/** The same, but for some of it, and also as it changes. */
function beside<T extends object>(all: T, some: Partial<T>): T {
  return Object.create(all, Object.getOwnPropertyDescriptors(some)) as T;
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
