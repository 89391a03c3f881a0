import type { Express, NextFunction, Request, RequestHandler, Response } from "express";
import { recordBoardAction } from "../../authority/tenants/record-board-action.ts";
import type { Board } from "../../hints/board.ts";
import { readId, showId } from "../../kernel/ids.ts";
import { findTenantOf, type TenantView } from "../../store/reads/tenants/tenants.ts";
import { authorize } from "../auth.ts";
import { contextOf } from "../calls/context-of.ts";
import { type ApiContext, type Caller, type ServerContext, WRITERS } from "../context.ts";
import { noSuchTenant } from "../identity/acting.ts";
import { refuseWhileSuspended } from "../identity/tenant-bounds.ts";
import { readQuery } from "../input/read-request.ts";
import { mayChange } from "../sessions/same-origin.ts";
import { sendFrontPage } from "./front-page.ts";
import { visitorOf } from "./visitor.ts";

/** Bull Board's own page: its styles stand in the elements, its scripts in files. */
const POLICY =
  "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; frame-ancestors 'none'; base-uri 'self'; form-action 'self'";

type Page = (request: Request, response: Response, next: NextFunction, caller: Caller) => Promise<unknown>;

/**
 * `/queues` leads to a tenant's board, `/queues/ten_…` is one: the page, and below it the API that the page asks. Which
 * tenant is in the address, so that nothing an answer depends on is kept between requests. Admins see any tenant, all
 * others their own; viewers look, and the server refuses them the rest.
 */
export function mountBoard(app: Express, context: ServerContext, board: Board): void {
  const guarded =
    (page: Page): RequestHandler =>
    (request, response, next) => {
      const answer = async () => {
        const caller = await visitorOf(context, request, response);
        if (caller !== undefined) await page(request, response, next, caller);
      };
      answer().catch(next);
    };

  app.get(
    "/queues",
    guarded(async (request, response, _next, caller) => {
      const { tenant, search } = readQuery(request.url);
      if (tenant === undefined && caller.role === "admin") return sendFrontPage(context, response, search);
      const { id } = await tenantOf(context, caller, tenant ?? showId("ten", caller.tenantId));
      response.redirect(303, pathOf(id));
    }),
  );

  app.use(
    "/queues/:tenant",
    guarded(async (request, response, next, caller) => {
      const { id, name } = await tenantOf(context, caller, String(request.params.tenant));
      if (mayChange(request.method)) {
        authorize(caller, WRITERS);
        refuseWhileSuspended({ method: "put" }, caller);
      }
      const { authority } = contextOf(context, request, caller);
      response.set({ "content-security-policy": POLICY, "cache-control": "no-store" });
      const view = {
        tenantId: id,
        title: name,
        basePath: pathOf(id),
        mayAct: WRITERS.includes(caller.role),
        showServer: caller.role === "admin",
        links: [
          ...(caller.role === "admin" ? [{ text: "All tenants", url: "/queues" }] : []),
          { text: "Sign out", url: "/sign-out" },
        ],
        onAction: ({ action, class: class_, ...details }: Parameters<Parameters<Board["answer"]>[0]["onAction"]>[0]) =>
          recordBoardAction(authority, { tenantId: id, actor: caller.actor, action, class: class_, details }),
      };
      await board.answer(view, request as never, response as never, next);
    }),
  );
}

function pathOf(tenantId: string): string {
  return `/queues/${showId("ten", tenantId)}`;
}

/** The tenant of this id or name, where the caller may see it. To all others it is not there. */
async function tenantOf({ db }: ApiContext, caller: Caller, ref: string): Promise<Pick<TenantView, "id" | "name">> {
  if (caller.role !== "admin") {
    const id = readId("ten", ref);
    const isOwn = id === undefined ? ref === caller.tenantName : id === caller.tenantId;
    if (!isOwn) throw noSuchTenant(ref);
    return { id: caller.tenantId, name: caller.tenantName };
  }
  const found = await findTenantOf(db, ref);
  if (found === undefined) throw noSuchTenant(ref);
  return found;
}
