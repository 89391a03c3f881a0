import type { Request, Response } from "express";
import { authorize } from "../auth.ts";
import { type ApiContext, type Caller, READERS } from "../context.ts";
import { escapeHtml, sendPage } from "../html.ts";
import { limitCalls } from "../limits/limit-calls.ts";
import { Problem, statusOf } from "../problems/problem.ts";
import { localPath, NO_GOOD_KEY, sendSignIn, startSession } from "../sessions/sign-in.ts";

/**
 * Who opens the board, counted like every caller. Undefined: the answer is out already, a page to sign in or the way on. A key that came as `?key=`
 * is exchanged for a session, and taken out of the address bar, the history, and what the page's links send on.
 */
export async function visitorOf(
  context: ApiContext,
  request: Request,
  response: Response,
): Promise<Caller | undefined> {
  const url = new URL(request.originalUrl, "http://localhost");
  const reads = request.method === "GET";
  const here = () => localPath(`${url.pathname}${url.search}`);
  const fromElsewhere = request.get("sec-fetch-site") === "cross-site";
  const key = url.searchParams.get("key");
  url.searchParams.delete("key");
  const isTraded = reads && key !== null && !fromElsewhere;
  try {
    if (isTraded) {
      await startSession(context, request, response, key);
      response.set("referrer-policy", "no-referrer").redirect(303, here());
      return undefined;
    }
    const { caller } = await context.entrance.enterWithoutToken(request);
    await limitCalls(context, caller, response);
    authorize(caller, READERS);
    return caller;
  } catch (error) {
    if (!(error instanceof Problem) || error.code !== "unauthenticated") throw error;
    if (!reads || request.accepts(["json", "html"]) !== "html") throw asksForKey(error);
    response.set("cache-control", "no-store");
    // Who follows a link from elsewhere comes without the cookie. Asked again by a page of ours, the browser sends it; a key
    // in the link is left behind, for now it would look as if a page of ours had sent it.
    const again = `<meta http-equiv="refresh" content="0;url=${escapeHtml(here())}">`;
    if (fromElsewhere) sendPage(response, "Punctual", "", again);
    else sendSignIn(response.status(statusOf(error.code)), here(), isTraded ? NO_GOOD_KEY : "");
    return undefined;
  }
}

function asksForKey(error: Problem): Problem {
  return new Problem("unauthenticated", `${error.message}; or give an API key as the password, or once as ?key=`, {
    headers: { "www-authenticate": 'Basic realm="Punctual queues", charset="UTF-8"' },
  });
}
