import { createHmac } from "node:crypto";
import type { NextFunction, Request, RequestHandler, Response } from "express";
import type { Clock } from "../kernel/clock.ts";
import { type Authenticator, authorize, keyFromAuthorization } from "./auth.ts";
import type { Role } from "./context.ts";
import { sameHash } from "./keys.ts";
import { Problem } from "./problem.ts";

/**
 * The board opens in a browser, which sends no bearer token: the key comes as a Basic password or once as `?key=`, and
 * is exchanged for a signed, short cookie that scripts cannot read and other sites cannot send.
 *
 * It shows the queues of every tenant, so only the platform's own people see it.
 */
const BOARD_ROLES: readonly Role[] = ["admin"];
const COOKIE = "punctual_board";
const SESSION_MS = 8 * 3_600_000;

export function guardBoard(deps: {
  authenticator: Authenticator;
  clock: Clock;
  secret: string | Buffer;
}): RequestHandler {
  const sign = (expires: string) => createHmac("sha256", deps.secret).update(`board\n${expires}`).digest("base64url");

  const hasSession = (request: Request) => {
    const value = new RegExp(`(?:^|;\\s*)${COOKIE}=([\\d]{1,15})\\.([\\w-]{43})(?:;|$)`).exec(
      request.headers.cookie ?? "",
    );
    if (value === null || Number(value[1]) < deps.clock.now()) return false;
    return sameHash(Buffer.from(value[2]!), Buffer.from(sign(value[1]!)));
  };

  const startSession = (request: Request, response: Response) => {
    const expires = String(Math.floor(deps.clock.now() + SESSION_MS));
    const secure = request.secure || request.get("x-forwarded-proto") === "https" ? "; Secure" : "";
    response.append(
      "set-cookie",
      `${COOKIE}=${expires}.${sign(expires)}; Path=/queues; HttpOnly; SameSite=Strict; Max-Age=${SESSION_MS / 1000}${secure}`,
    );
  };

  return (request: Request, response: Response, next: NextFunction) => {
    if (hasSession(request)) return next();
    const url = new URL(request.originalUrl, "http://localhost");
    const given = url.searchParams.get("key") ?? keyFromAuthorization(request.headers.authorization);
    deps.authenticator
      .authenticate(given)
      .then((caller) => {
        authorize(caller, BOARD_ROLES);
        startSession(request, response);
        if (!url.searchParams.has("key")) return next();
        // The key must not stay in the address bar, in the history, or in what the page's links send on.
        url.searchParams.delete("key");
        response.set("referrer-policy", "no-referrer").redirect(303, `${url.pathname}${url.search}`);
      })
      .catch((error: unknown) => next(asksForBasic(error)));
  };
}

function asksForBasic(error: unknown): unknown {
  if (!(error instanceof Problem) || error.code !== "unauthenticated") return error;
  return new Problem("unauthenticated", "Give an API key of the role admin as the password, or once as ?key=", {
    headers: { "www-authenticate": 'Basic realm="Punctual queues", charset="UTF-8"' },
  });
}
