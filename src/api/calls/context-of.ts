import type { Request, Response } from "express";
import type { Authority } from "../../authority/authority.ts";
import { showId } from "../../kernel/ids.ts";
import type { ApiContext, Caller, ServerContext } from "../context.ts";
import { type Problem, statusOf } from "../problems/problem.ts";
import { requestIdOf } from "../request-id.ts";
import type { Route } from "../route.ts";
import { addressOf } from "./address.ts";
import { readsInTurn, turnOf } from "./in-turn.ts";

/**
 * What one call's handler may reach. What its verbs write down says where they were asked; what it reads is the caller's
 * tenant's, also through the authority, and all of it takes turns with its tenant's other calls. Without a caller, and where the route says so, reads see
 * everything.
 */
export function contextOf(context: ServerContext, request: Request, caller?: Caller, route?: Route): ApiContext {
  const credential = caller?.credential;
  const authority = context.authority.from({
    requestId: requestIdOf(request.res!),
    address: addressOf(request),
    keyId: credential?.kind === "key" ? credential.keyId : null,
    homeTenantId: caller?.homeTenantId ?? null,
  });
  if (caller === undefined) return beside(context, { authority });
  const turn = turnOf(context, request.res!, caller, route);
  const seesAll = route?.sees === "every-tenant";
  const db = readsInTurn(seesAll ? context.db : context.readers(caller.tenantId), turn);
  const transact: Authority["transact"] = (verb, work) => turn(() => authority.transact(verb, work));
  // What verbs read outside of their transactions is the tenant's, too.
  return beside(context, {
    db,
    authority: beside(authority, seesAll ? { transact } : { transact, db: db as Authority["db"] }),
  });
}

/** The same, but for some of it, and also as it changes. */
function beside<T extends object>(all: T, some: Partial<T>): T {
  return Object.create(all, Object.getOwnPropertyDescriptors(some)) as T;
}

/** Remembers whose call this is, for what is said of it after it has failed. */
export function noteCaller(response: Response, caller: Caller): void {
  response.locals[CALLER] = caller;
}
const CALLER = "punctualCaller";

/**
 * Who was turned away, or held to a quota: logged, and never a row, for anybody could fill a table with those. Those whom
 * we do not know, and those who may not, are counted here; the others where their quota is.
 */
export function noteRefusal(context: ApiContext, request: Request, problem: Problem): void {
  const { code } = problem;
  const isTurnedAway = [401, 403].includes(statusOf(code));
  if (isTurnedAway) context.metrics.httpRefusals.inc({ code });
  if (!isTurnedAway && problem.more.quota === undefined) return;
  const { method, path } = request;
  const response = request.res!;
  const caller = response.locals[CALLER] as Caller | undefined;
  context.log.info(
    {
      requestId: requestIdOf(response),
      address: addressOf(request),
      method,
      path: path.slice(0, 200),
      code,
      ...(problem.more.quota === undefined ? {} : { quota: problem.more.quota }),
      ...(caller === undefined ? {} : { tenant: showId("ten", caller.tenantId), actor: caller.actor }),
    },
    "a call was refused",
  );
}
