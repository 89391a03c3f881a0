import express, { type Express, type Request, type Response } from "express";
import type { ApiContext } from "../context.ts";
import { escapeHtml, sendPage } from "../html.ts";
import { readQuery } from "../input/read-request.ts";
import { Problem, statusOf } from "../problems/problem.ts";
import { clearCookie, setCookie } from "./cookie.ts";
import { refuseOtherOrigins } from "./same-origin.ts";

export const NO_GOOD_KEY = "This key is unknown, expired or revoked.";
const LONGEST_FORM_BYTES = 4_096;

/** Pages to sign in and out by plain forms, for whoever opens something of ours without a session. */
export function mountSignIn(app: Express, context: ApiContext): void {
  const { entrance } = context;
  const form = express.urlencoded({
    extended: false,
    inflate: false,
    limit: LONGEST_FORM_BYTES,
    // As many as fit: the limit in bytes is limit enough, and has a problem of its own.
    parameterLimit: LONGEST_FORM_BYTES,
  });

  app.get("/sign-in", (request, response) => {
    sendSignIn(response, localPath(readQuery(request.url).to));
  });

  app.post("/sign-in", form, (request, response, next) => {
    signIn(request, response).catch(next);
  });

  async function signIn(request: Request, response: Response): Promise<void> {
    // Else a page of somebody else could sign people in as itself, and be told what they do.
    refuseOtherOrigins(entrance.arrivalOf(request), context.publicUrl());
    const { key, to } = (request.body ?? {}) as { key?: unknown; to?: unknown };
    try {
      await startSession(context, request, response, typeof key === "string" ? key.trim() : "");
    } catch (error) {
      if (!(error instanceof Problem) || error.code !== "unauthenticated") throw error;
      response.status(statusOf(error.code));
      return sendSignIn(response, localPath(to), NO_GOOD_KEY);
    }
    response.redirect(303, localPath(to));
  }

  app.get("/sign-out", (_request, response) => {
    noStore(response);
    sendPage(
      response,
      "Punctual: sign out",
      `<h1>Sign out</h1><p>This browser forgets its session.</p><form method="post" action="/sign-out"><button>Sign out</button></form>`,
    );
  });

  app.post("/sign-out", (request, response) => {
    const arrival = entrance.arrivalOf(request);
    refuseOtherOrigins(arrival, context.publicUrl());
    response.append("set-cookie", clearCookie(arrival.secure)).redirect(303, "/sign-in");
  });
}

/** Begins a session for this credential, and gives the browser its cookie. Throws `unauthenticated`. */
export async function startSession(
  context: ApiContext,
  request: Request,
  response: Response,
  credential: string,
): Promise<void> {
  const arrival = context.entrance.arrivalOf(request);
  const { session, cookie } = await context.entrance.begin(arrival, credential);
  response.append("set-cookie", setCookie(cookie, session.endsAt - context.clock.now(), arrival.secure));
}

/** The page that asks for a key, and then leads to `to`. */
export function sendSignIn(response: Response, to: string, fault = ""): void {
  noStore(response);
  sendPage(
    response,
    "Punctual: sign in",
    `<h1>Sign in</h1>${fault === "" ? "" : `<p role="alert">${escapeHtml(fault)}</p>`}
<form method="post" action="/sign-in"><input type="hidden" name="to" value="${escapeHtml(to)}">
<p><label>API key<br><input type="password" name="key" required autofocus autocomplete="current-password" size="64"></label></p>
<p><button>Sign in</button></p></form><p>The session ends after eight hours, or as soon as the key is revoked.</p>`,
  );
}

function noStore(response: Response): void {
  response.set("cache-control", "no-store");
}

/** Only what leads to a page of ours: `//host` and `/\host` lead elsewhere, and so does what browsers make of tabs. */
export function localPath(to: unknown): string {
  return typeof to === "string" && /^\/(?![/\\])[\x21-\x5b\x5d-\x7e]*$/.test(to) ? to : "/";
}
