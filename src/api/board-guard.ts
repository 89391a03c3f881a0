import { createHmac } from "node:crypto";
import type { NextFunction, Request, RequestHandler, Response } from "express";
import type { Clock } from "../kernel/clock.ts";
import { type Authenticator, authorize, credentialFromAuthorization } from "./auth.ts";
import type { Caller, Role } from "./context.ts";
import { sameHash } from "./keys.ts";
import { Problem } from "./problems/problem.ts";

/**
 * The board opens in a browser, which sends no bearer token: the key comes as a Basic password or once as `?key=`, and
 * is exchanged for a signed, short cookie that scripts cannot read and other sites cannot send. The cookie names the
 * key, not its secret: it opens nothing once the key is revoked.
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
  const sign = (session: string) => createHmac("sha256", deps.secret).update(`board\n${session}`).digest("base64url");

  /** The prefix of the key that opened this session; undefined without one. */
  const sessionOf = (request: Request): string | undefined => {
    const value = new RegExp(`(?:^|;\\s*)${COOKIE}=(([\\d]{1,15})\\.([0-9a-f]{12}))\\.([\\w-]{43})(?:;|$)`).exec(
      request.headers.cookie ?? "",
    );
    if (value === null || Number(value[2]) < deps.clock.now()) return undefined;
    return sameHash(Buffer.from(value[4]!), Buffer.from(sign(value[1]!))) ? value[3] : undefined;
  };

  const startSession = (request: Request, response: Response, { credential }: Caller) => {
    // A session names the key that opened it; a token opens the page it came with and no more.
    if (credential.kind !== "key") return;
    const session = `${Math.floor(deps.clock.now() + SESSION_MS)}.${credential.prefix}`;
    const secure = request.secure || request.get("x-forwarded-proto") === "https" ? "; Secure" : "";
    response.append(
      "set-cookie",
      `${COOKIE}=${session}.${sign(session)}; Path=/queues; HttpOnly; SameSite=Strict; Max-Age=${SESSION_MS / 1000}${secure}`,
    );
  };

  /** Opens the board to the session's key, or else to the key that came along, which begins a session. */
  async function enter(request: Request, response: Response, next: NextFunction): Promise<void> {
    const session = sessionOf(request);
    if (session !== undefined && (await isStillWelcome(session))) return next();
    const url = new URL(request.originalUrl, "http://localhost");
    const given = url.searchParams.get("key") ?? credentialFromAuthorization(request.headers.authorization);
    const caller = await deps.authenticator.authenticate(given);
    authorize(caller, BOARD_ROLES);
    startSession(request, response, caller);
    if (!url.searchParams.has("key")) return next();
    // The key must not stay in the address bar, in the history, or in what the page's links send on.
    url.searchParams.delete("key");
    response.set("referrer-policy", "no-referrer").redirect(303, `${url.pathname}${url.search}`);
  }

  async function isStillWelcome(prefix: string): Promise<boolean> {
    try {
      authorize(await deps.authenticator.authenticateAgain(prefix), BOARD_ROLES);
      return true;
    } catch (error) {
      if (error instanceof Problem) return false;
      throw error;
    }
  }

  return (request: Request, response: Response, next: NextFunction) => {
    enter(request, response, next).catch((error: unknown) => next(asksForBasic(error)));
  };
}

function asksForBasic(error: unknown): unknown {
  if (!(error instanceof Problem) || error.code !== "unauthenticated") return error;
  return new Problem("unauthenticated", "Give an API key of the role admin as the password, or once as ?key=", {
    headers: { "www-authenticate": 'Basic realm="Punctual queues", charset="UTF-8"' },
  });
}
