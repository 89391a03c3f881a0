import { pipeline } from "node:stream/promises";
import type { Express, NextFunction, Request, Response } from "express";
import { messageOf } from "../kernel/errors.ts";
import { authorize } from "./auth.ts";
import { contextOf, noteCaller, noteRefusal } from "./calls/context-of.ts";
import { goneOf } from "./calls/in-turn.ts";
import type { ApiContext, ServerContext } from "./context.ts";
import { actFor, TENANT_HEADER } from "./identity/acting.ts";
import { refuseWhileSuspended } from "./identity/tenant-bounds.ts";
import { parseWith } from "./input/issues.ts";
import { readBody, readQuery, refuseUnstorable } from "./input/read-request.ts";
import { limitCalls } from "./limits/limit-calls.ts";
import { jsonOf } from "./present/shown-json.ts";
import { PROBLEMS, SUCCESS } from "./problems/catalogue.ts";
import { documentOf, Problem } from "./problems/problem.ts";
import { problemOf } from "./problems/problem-of.ts";
import { requestIdOf } from "./request-id.ts";
import type { Call, Reply, Route } from "./route.ts";
import type { Session } from "./sessions/session.ts";

type Server = { app: Express; context: ServerContext };

/** Hangs the routes into Express; what is known of a path's other methods is answered with 405. */
export function mountRoutes(server: Server, routes: readonly Route[]): void {
  for (const route of routes) {
    server.app[route.method](expressPath(route.path), (request: Request, response: Response, next: NextFunction) => {
      answer(server, route, request, response).catch(next);
    });
  }
  for (const [path, methods] of Map.groupBy(routes, (route) => route.path)) {
    const allow = methods.map((route) => route.method.toUpperCase()).join(", ");
    server.app.all(expressPath(path), (request) => {
      throw new Problem("method-not-allowed", `${request.method} is not answered here; allowed: ${allow}`, {
        headers: { allow },
      });
    });
  }
}

async function answer(server: Server, route: Route, request: Request, response: Response): Promise<void> {
  const startedAt = server.context.clock.monotonic();
  response.on("finish", () => {
    server.context.metrics.httpSeconds.observe(
      { route: `${route.method.toUpperCase()} ${route.path}`, status: `${Math.floor(response.statusCode / 100)}xx` },
      (server.context.clock.monotonic() - startedAt) / 1000,
    );
  });
  if (route.roles === "everybody") {
    const call = await readCall(server, route, request, response);
    return send(await route.handle(call, contextOf(server.context, request)), response);
  }
  const { entrance } = server.context;
  const { caller: entered, session } = await (route.callbacks
    ? entrance.enterOrCallBack(request)
    : entrance.enter(request));
  noteCaller(response, entered);
  // Of the tenant whose credential it is, also where it acts for another; before the body is read.
  await limitCalls(server.context, entered, response, route);
  const caller = await actFor(server.context.db, entered, request.get(TENANT_HEADER));
  noteCaller(response, caller);
  authorize(caller, route.roles);
  refuseWhileSuspended(route, caller);
  const context = contextOf(server.context, request, caller, route);
  const reply = await route.handle(await readCall(server, route, request, response, session), context, caller);
  return send(reply, response);
}

async function readCall(
  server: Server,
  route: Route,
  request: Request,
  response: Response,
  session?: Session,
): Promise<Call<never, never, never>> {
  for (const [name, value] of Object.entries(request.params)) refuseUnstorable(name, String(value));
  const query = parseWith(route.query, readQuery(request.url), "query");
  const params = parseWith(route.params, { ...request.params }, "path");
  const sentBody =
    route.body === undefined ? undefined : ((await readBody(request, response, server.context.clock)) ?? {});
  const body = route.body === undefined ? undefined : parseWith(route.body, sentBody, "body");
  return {
    params: params as never,
    query: query as never,
    body: body as never,
    sentBody,
    ...server.context.entrance.arrivalOf(request),
    session,
    requestId: requestIdOf(response),
    get gone() {
      return goneOf(response);
    },
    stream: route.streams ? request : undefined,
  };
}

async function send(reply: Reply, response: Response): Promise<void> {
  response.status(SUCCESS[reply.kind]);
  response.set({ "cache-control": "no-store", ...reply.headers });
  if (reply.stream !== undefined) {
    // The status is out: a stream that breaks can only end the connection, and pipeline does so.
    await pipeline(reply.stream, response).catch(() => response.destroy());
    return;
  }
  if (reply.text !== undefined) response.end(reply.text);
  else if (reply.body === undefined) response.end();
  else response.set("content-type", "application/json; charset=utf-8").end(jsonOf(reply.body));
}

/** Behind everything: unknown routes and whatever was thrown become problem documents. */
export function mountProblems(app: Express, context: ApiContext): void {
  app.use((request: Request) => {
    throw new Problem(
      "unknown-route",
      `${request.method} ${request.path.slice(0, 200)} is not known; ${context.publicUrl()}/docs lists what is`,
    );
  });
  app.use((error: unknown, request: Request, response: Response, _next: NextFunction) => {
    const problem = problemOf(error);
    const requestId = requestIdOf(response);
    const { status } = PROBLEMS[problem.code];
    noteRefusal(context, request, problem);
    // Without Redis nothing is broken: whoever set this up wanted it so.
    if (status >= 500 && problem.code !== "no-redis") {
      context.log.error(
        {
          requestId,
          method: request.method,
          path: request.path,
          code: problem.code,
          err: problem.cause ?? problem,
          reason: messageOf(problem.cause ?? problem),
        },
        "a call failed on our side",
      );
    } else if (response.closed) {
      const { method, path } = request;
      context.log.debug({ requestId, method, path, code: problem.code }, "a caller has gone before its answer");
    }
    if (response.headersSent) {
      response.destroy();
      return;
    }
    response.status(status).set({ "cache-control": "no-store", ...problem.headers });
    response.set("content-type", "application/problem+json; charset=utf-8");
    response.end(
      jsonOf(
        documentOf(problem, {
          publicUrl: context.publicUrl(),
          instance: request.originalUrl.split("?")[0]!,
          requestId,
        }),
      ),
    );
  });
}

/** `/v1/runs/{run}` → `/v1/runs/:run` */
function expressPath(path: string): string {
  return path.replaceAll(/\{(\w+)\}/g, ":$1");
}
