import type { Request } from "express";
import { type Authenticator, credentialFromAuthorization } from "../auth.ts";
import { addressOf } from "../calls/address.ts";
import type { Caller } from "../context.ts";
import type { Callbacks } from "../identity/callbacks.ts";
import { Problem } from "../problems/problem.ts";
import { cookieOf } from "./cookie.ts";
import { type Arrival, isFromBrowser, mayChange, refuseOtherOrigins } from "./same-origin.ts";
import type { Session, Sessions, Standing } from "./session.ts";

export type Entered = { caller: Caller; session: Session | undefined };

/** Where callers say who they are: by an `Authorization` header, or by the cookie of a session that a credential began. */
export type Entrance = {
  /** Throws `unauthenticated`, or `cross-origin` or `csrf-token` for what a page of somebody else could have made a browser send. */
  enter(request: Request): Promise<Entered>;
  /** The same without asking for the token, for forms that have none: that the page was ours is asked always. */
  enterWithoutToken(request: Request): Promise<Entered>;
  /** The same as `enter`, also for who brings the callback token of an attempt. */
  enterOrCallBack(request: Request): Promise<Entered>;
  /** Begins a session for who brings this credential. Throws `unauthenticated`. */
  begin(
    arrival: Arrival,
    credential: string | undefined,
  ): Promise<{ caller: Caller; session: Session; cookie: string }>;
  sessions: Sessions;
  arrivalOf(request: Request): Arrival;
};

export function createEntrance(deps: {
  authenticator: Authenticator;
  callbacks: Callbacks;
  sessions: Sessions;
  publicUrl(): string;
}): Entrance {
  const { authenticator, callbacks, sessions, publicUrl } = deps;

  const arrivalOf = (request: Request): Arrival => ({
    header: (name) => request.get(name),
    secure: request.secure || publicUrl().startsWith("https:"),
    address: addressOf(request),
  });

  async function identify(request: Request): Promise<Entered> {
    const arrival = arrivalOf(request);
    const { authorization, cookie } = request.headers;
    if (authorization !== undefined) {
      // A browser that was once given a password sends it to us from every site.
      const unasked = /^basic /i.test(authorization) && isFromBrowser(arrival);
      if (unasked && mayChange(request.method)) refuseOtherOrigins(arrival, publicUrl());
      return {
        caller: await authenticator.authenticate(credentialFromAuthorization(authorization)),
        session: undefined,
      };
    }
    const session = sessions.read(cookieOf(cookie, arrival.secure));
    if (session === undefined) return { caller: await authenticator.authenticate(undefined), session };
    if (mayChange(request.method)) refuseOtherOrigins(arrival, publicUrl());
    return { caller: await authenticator.authenticateAgain(session.standing), session };
  }

  async function enter(request: Request): Promise<Entered> {
    const entered = await identify(request);
    const { session } = entered;
    if (session !== undefined && mayChange(request.method)) {
      if (!sessions.isCsrfToken(session, request.get("x-csrf-token"))) throw noToken();
    }
    return entered;
  }

  return {
    sessions,
    arrivalOf,
    enterWithoutToken: identify,
    enter,
    async enterOrCallBack(request) {
      const credential = credentialFromAuthorization(request.headers.authorization);
      if (!callbacks.isToken(credential)) return enter(request);
      return { caller: await callbacks.authenticate(credential), session: undefined };
    },
    async begin(_arrival, credential) {
      const caller = await authenticator.authenticate(credential);
      const begun = sessions.begin(standingOf(caller), caller.credential.endsAt);
      // Tokens are believed some seconds longer than they say; a session of none would be of no use.
      if (sessions.read(begun.cookie) === undefined)
        throw new Problem("unauthenticated", "The credential ends just now");
      return { caller, ...begun };
    },
  };
}

function standingOf({ credential, tenantId, role }: Caller): Standing {
  if (credential.kind === "key") return { kind: "key", prefix: credential.prefix };
  if (credential.kind === "callback") throw new Problem("unauthenticated", "No session begins with a callback token");
  return { ...credential, tenantId, role };
}

function noToken(): Problem {
  return new Problem("csrf-token", "X-CSRF-Token: is missing or of another session; GET /v1/session says it");
}
